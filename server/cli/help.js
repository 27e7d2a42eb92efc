import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { manualPage, manualPages } from '../manual.js'
import { examplesText } from './examples.js'

/** @typedef {import('commander').Command} Command */

/**
 * `clusterdeck help`: the help of a command or a page of the manual. A command wins over a page of its name, which
 * is then `logs.md`.
 * @param {Command} program
 */
export function addHelpCommand (program) {
  program.command('help [topic]')
    .description('print the help of a command, or a page of the manual')
    .action((topic) => help(program, topic))
  for (const command of [program, ...program.commands]) command.addHelpText('after', () => examplesText(command.name()))
  for (const command of program.commands) command.addHelpText('after', () => pointToPage(command.name()))
  program.addHelpText('after', listTopics)
}

/** @param {Command} program @param {string | undefined} topic @throws {DeckError} unknown-option */
function help (program, topic) {
  const command = topic === undefined ? program : program.commands.find((each) => each.name() === topic)
  if (command) return command.outputHelp()
  const name = String(topic)
  const page = manualPage(name.replace(/\.md$/, ''))
  if (page !== null) return program.configureOutput().writeOut?.(alignTables(page))
  const known = [...program.commands.map((each) => each.name()), ...manualPages().map((each) => each.name)]
  throw new DeckError('unknown-option', `help: no command or topic is called ${JSON.stringify(name)}${didYouMean(name, known)}`)
}

/** @param {string} command */
function pointToPage (command) {
  return manualPages().some(({ name }) => name === command) ? `\nManual: clusterdeck help ${command}.md` : ''
}

function listTopics () {
  const pages = manualPages()
  const width = Math.max(...pages.map(({ name }) => name.length))
  return `\nManual, by "clusterdeck help <topic>":\n${pages.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join('\n')}`
}

/** Columns as wide as their widest cell; the last one is left as it is. @param {string} markdown */
export function alignTables (markdown) {
  return markdown.replace(/(?:^\|.*\|\n)+/gm, (table) => {
    const [head, , ...rows] = table.trim().split('\n').map(cellsOf)
    const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column].length)))
    const line = (/** @type {string[]} */ row) => `${row.map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : widths[column])).join('  ').trimEnd()}\n`
    return [head, head.map((cell, column) => '-'.repeat(column === head.length - 1 ? cell.length : widths[column])), ...rows].map(line).join('')
  })
}

/** @param {string} row `| a | b |` */
function cellsOf (row) {
  return row.slice(1, -1).split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
}
