import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { marked } from 'marked'
import { commandsOf } from '../../server/cli/help.ts'
import { createProgram } from '../../server/cli/program.ts'
import { fake } from './fake.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const COMMAND = /(?:^|[\s(/])(?:clusterdeck|curl) +\S/
const PROGRAM = await createProgram(['help'], fake({}), { exitCode: 0 })

/** `line`: of a shell, without its comment */
type Example = { from: string, line: string }

/**
 * The command lines of all code blocks of the manual and the README, and those of `--help`; each once. What a sentence
 * names is no example.
 */
export function examples (): Example[] {
  const pages = ['README.md',
    ...readdirSync(path.join(ROOT, 'views/docs')).map((name) => path.join('views/docs', name))]
  const ofPages = pages.flatMap((page) =>
    linesOf(readFileSync(path.join(ROOT, page), 'utf8')).map((line) => ({ from: page, line }))
  )
  const ofHelp = commandsOf(PROGRAM).flatMap((command) =>
    command.examples.map(([, line]) => ({ from: `${command.name()} --help`, line }))
  )
  return [...new Map([...ofHelp, ...ofPages].map((example) => [example.line, example])).values()]
}

function linesOf (markdown: string): string[] {
  const blocks: string[] = []
  marked.walkTokens(marked.lexer(markdown), (token) => {
    if (token.type === 'code') blocks.push(token.text)
  })
  return blocks.flatMap((block) => block.replace(/\\\n\s*/g, '').split('\n')).map((line) =>
    line.replace(/(^|\s+)#.*$/, '').trim()
  ).filter((line) => COMMAND.test(line))
}

/** What the shell hands to clusterdeck. */
export function wordsOf (line: string): string[] {
  const [, own] = /(?:^|\()clusterdeck (.+?)(?:\)| [|>] .*)?$/.exec(line) ?? []
  return split(own)
}

/**
 * A request as curl would send it. `variables`: what the shell puts in place of them.
 * @throws {Error} for an option that is not known here
 */
export function requestOf (line: string,
  variables: Record<string, string>
): { url: string, method: string, headers: Record<string, string>, body: string | undefined } {
  const filled = Object.entries(variables).reduce((text, [name, value]) => text.replaceAll(name, value), line)
  const [, ...words] = split(filled)
  const given: Record<string, string[]> = { '-X': [], '-H': [], '-d': [], url: [] }
  while (words.length > 0) {
    const word = words.shift() as string
    if (/^-[fsS]+$/.test(word)) continue
    const option = word.startsWith('-') ? word : 'url'
    if (!given[option]) throw new Error(`curl: expected -X, -H, -d, -f, -s or -S, received ${word}: ${line}`)
    given[option].push(option === 'url' ? word : String(words.shift()))
  }
  const [body] = given['-d']
  return { url: given.url[0], method: given['-X'][0] ?? (body === undefined ? 'GET' : 'POST'),
    headers: Object.fromEntries(given['-H'].map((header) => header.split(/: (.*)/, 2) as [string, string])), body }
}

function split (line: string): string[] {
  return [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, single, double, plain]) => single ?? double ?? plain)
}
