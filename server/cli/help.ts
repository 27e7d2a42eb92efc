import { Command, Option } from 'commander'
import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { manualPage, manualPages } from '../manual.ts'
import { wordsOf } from './command-words.ts'

/** A command with the examples that its help shows. */
export class DeckCommand extends Command {
  examples: [want: string, line: string][] = []

  /** createCommand() makes them all. */
  override commands: readonly DeckCommand[] = []

  override createCommand (name?: string): DeckCommand {
    return new DeckCommand(name)
  }

  /** Adds a command with its own words. `common`: adds the options that come first */
  told (name: string, common: (command: DeckCommand) => unknown = () => {}): DeckCommand {
    const [head, ...lines] = wordsOf(name)
    const [usage, about] = splitAtColon(head)
    const command = this.command(usage).description(about).optionsGroup('Options:')
    common(command)
    command.optionsGroup('Options:')
    for (const line of lines) command.tell(line)
    return command
  }

  /** `line`: of the words: an argument, an option, a usage, a heading of options, or an example */
  tell (line: string) {
    const [first, about = ''] = splitAtColon(line)
    if (first.startsWith('[')) this.argument(first, about)
    else if (first.startsWith('-')) this.addOption(optionOf(first, about))
    else if (first === 'usage') this.usage(about)
    else if (line.endsWith(':')) this.optionsGroup(line)
    else this.example(...line.split('  # ').reverse() as [want: string, line: string])
  }

  /** `want`: what somebody wants; `line`: the command line that does it; a test parses it */
  example (want: string, line: string) {
    this.examples.push([want, line])
    return this
  }

  /** @throws {Error} where somebody has added a command without examples */
  examplesText () {
    if (this.examples.length === 0)
      throw new Error(`command "${this.name()}": expected two or three examples, received none`)
    return `\nExamples:\n${this.examples.map(([want, line]) => `  # ${want}\n  ${line}`).join('\n')}`
  }
}

/** `about`: says whether it has to be given, or may be given more than once */
function optionOf (flags: string, about: string): Option {
  const option = new Option(flags, about).makeOptionMandatory(about.endsWith('(required)'))
  return about.endsWith('; repeatable')
    ? option.argParser((value: string, before: string[] = []) => [...before, value])
    : option
}

/** `line`: `--wait: wait for the end` */
function splitAtColon (line: string): string[] {
  const index = line.indexOf(': ')
  return index === -1 ? [line] : [line.slice(0, index), line.slice(index + 2)]
}

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
