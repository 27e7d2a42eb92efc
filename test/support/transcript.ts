import assert from 'node:assert/strict'

type Ended = { code: number, stdout: string, stderr: string }

/**
 * Types the command lines of a transcript, one after the other, and compares what comes of each. Behind a line
 * `$ words` stands what it prints; `! ` is before what goes to stderr, `> ` before what it has asked for, and `= ` before
 * an exit code that is not 0. `!! ` is before what is wrong with the line itself, which ends with 2. `…` stands for
 * anything in a line, and alone for any lines.
 */
export async function play (transcript: string, run: (words: string[]) => Promise<Ended>,
  asked: () => string[] = () => [])
{
  for (const scene of withoutMargin(transcript).split(/^\$ ?/m).slice(1)) {
    const [line, ...lines] = scene.trimEnd().replace(/^!! (.*)$/m, '! clusterdeck: $1\n= 2').split('\n')
    const { code, stdout, stderr } = await run(wordsIn(line))
    const happened = [...linesIn(stdout), ...linesIn(stderr).map((text) => `! ${text}`), ...asked().map((text) =>
      `> ${text}`
    ), ...(code === 0 ? [] : [`= ${code}`])]
    const [actual, expected] = [happened, lines].map((all) => [`$ ${line}`, ...all].join('\n').trimEnd())
    if (!patternOf(expected).test(`${actual}\n`)) assert.equal(actual, expected)
  }
}

/** The words of a line of a shell, which knows single quotes alone. */
export function wordsIn (line: string): string[] {
  return Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, word]) => quoted ?? word)
}

function linesIn (text: string): string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n').map((line) => line.trimEnd())
}

/** Without what all lines are indented by. */
function withoutMargin (text: string) {
  const [, margin] = /^\n?( *)/.exec(text) ?? []
  return text.replaceAll(`\n${margin}`, '\n')
}

function patternOf (expected: string) {
  const lines = expected.split('\n').map((line) => line === '…' ? '(?:.*\n)*?' : `${withGaps(line)}\n`)
  return new RegExp(`^${lines.join('')}$`)
}

/** @returns a pattern for the text, in which `…` stands for anything */
export function withGaps (text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll('…', '.*')
}
