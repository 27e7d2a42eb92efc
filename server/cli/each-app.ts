import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { jsonText } from './output.ts'
import { createPrefixed, type Prefixed } from './prefixed.ts'
import type { Options, Tools } from './commands.ts'
import type { Target } from './known-apps.ts'
import type { Terminal } from './program.ts'

/** What a command has come to for one of several apps; `text`: of its result; `code`: its exit code. */
export type Outcome = { target: Target, result: unknown, text: string | null, error: DeckError | null, code: number }
export type How = {
  options: Options,
  terminal: Terminal,
  /** what is printed for people; default: a line or a block for each */
  textOfAll?: (outcomes: Outcome[], tools: { prefixed: Prefixed, options: Options, env: Terminal['env'] }) => string
}

/**
 * Does the same for several apps, side by side. One that fails stops none of the others.
 * @returns the exit code: 0 if all have succeeded, else that of the first one that has not
 */
export async function runForEach (targets: readonly Target[],
  work: (target: Target, tools: Partial<Tools>) => Promise<number | void>,
  { options, terminal, textOfAll = blocksOf }: How): Promise<number>
{
  const { stdout, stderr } = terminal
  const prefixed = createPrefixed(targets.map(({ name }) => name), terminal)
  const outcomes = await Promise.all(targets.map(runFor))
  if (options.json && !options.follow)
    stdout.write(
      `${
        jsonText(
          outcomes.map(({ target: { name: app }, result, error }) =>
            error ? { app, error: { code: error.code, message: error.message } } : { app, result }
          )
        )
      }\n`
    )
  const text = options.json ? '' : textOfAll(outcomes, { prefixed, options, env: terminal.env })
  if (text !== '') stdout.write(`${text}\n`)
  return outcomes.find(({ code }) => code !== 0)?.code ?? 0

  async function runFor (target: Target): Promise<Outcome> {
    const { name } = target
    const outcome: Outcome = { target, result: null, text: null, error: null, code: 0 }
    try {
      outcome.code = await work(target, { print: (text) => {
        options.json
          ? stdout.write(`${JSON.stringify({ app: name, ...JSON.parse(text) })}\n`)
          : prefixed.print(name, text)
      }, tell: (text) => prefixed.say(name, text), keep: (result) => {
        outcome.result = result
      }, answer (result, textOf) {
        outcome.result = result
        outcome.text = options.json ? null : textOf()
      } }) ?? 0
    } catch (error) {
      if (!(error instanceof DeckError)) throw error
      outcome.error = error
      outcome.code = error.exitCode
      if (!options.json)
        stderr.write(
          `clusterdeck: ${
            oneLine(error.message.startsWith(`${name} `) ? error.message : `${name}: ${error.message}`)
          }\n`
        )
    }
    return outcome
  }
}

function blocksOf (outcomes: Outcome[]) {
  const texts = outcomes.flatMap(({ target: { name }, text }) =>
    text === null ? [] : [text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`]
  )
  return texts.join(texts.some((text) => text.includes('\n')) ? '\n\n' : '\n')
}
