import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { manualPage, manualPages } from '../manual.ts'
import type { DeckCommand } from './deck-command.ts'

/** Adds `help`: of a command, or of a page of the manual. Where both have one name, the page is `logs.md`. */
export function addHelpCommand (program: DeckCommand) {
  program.told('help').action((topic) => printHelp(program, topic))
  for (const command of commandsOf(program)) command.addHelpText('after', () => command.examplesText())
  for (const command of program.commands) command.addHelpText('after', () => pointToPage(command.name()))
  program.addHelpText('after', listTopics)
}

/** @returns the program itself and its commands */
export function commandsOf (program: DeckCommand): DeckCommand[] {
  return [program, ...program.commands]
}

/** @throws {DeckError} unknown-option */
function printHelp (program: DeckCommand, topic: string | undefined) {
  const command = topic === undefined ? program : program.commands.find((each) => each.name() === topic)
  if (command) return command.outputHelp()
  const name = String(topic)
  const page = manualPage(name.replace(/\.md$/, ''))
  if (page !== null) return program.configureOutput().writeOut?.(alignTables(page))
  const known = [...program.commands.map((each) => each.name()), ...manualPages().map((each) => each.name)]
  throw new DeckError('unknown-option',
    `help: no command or topic is called ${JSON.stringify(name)}${didYouMean(name, known)}`)
}

function pointToPage (command: string) {
  return manualPages().some(({ name }) => name === command) ? `\nManual: clusterdeck help ${command}.md` : ''
}

function listTopics () {
  const pages = manualPages()
  const width = Math.max(...pages.map(({ name }) => name.length))
  return `\nManual, by "clusterdeck help <topic>":\n${
    pages.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join('\n')
  }`
}

/** Makes columns as wide as their widest cell, but for the last one. */
export function alignTables (markdown: string) {
  return markdown.replace(/(?:^\|.*\|\n)+/gm, (table) => {
    const [head, , ...rows] = table.trim().split('\n').map(cellsOf)
    const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)))
    const rule = head.map((cell, column) => '-'.repeat(column === head.length - 1 ? cell.length : widths[column]))
    return [head, rule, ...rows].map(lineOf).join('')

    function lineOf (row: string[]) {
      return `${
        row.map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : widths[column])).join('  ').trimEnd()
      }\n`
    }
  })
}

/** `row`: `| a | b |` */
function cellsOf (row: string) {
  return row.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
}
