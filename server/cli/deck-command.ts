import { Command, Option } from 'commander'
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

  /** `line`: of the words: an option, a usage, a heading of options, or an example */
  tell (line: string) {
    const [first, about = ''] = splitAtColon(line)
    if (first.startsWith('-')) this.addOption(optionOf(first, about))
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
