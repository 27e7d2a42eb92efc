import { Command } from 'commander'

/** A command with the examples that its help shows. */
export class DeckCommand extends Command {
  /** @type {[want: string, line: string][]} */
  examples = []

  /** createCommand() makes them all. @override @type {readonly DeckCommand[]} */
  commands = []

  /** @override @param {string} [name] @returns {DeckCommand} */
  createCommand (name) {
    return new DeckCommand(name)
  }

  /** @param {string} want what somebody wants @param {string} line the command line that does it; a test parses it */
  example (want, line) {
    this.examples.push([want, line])
    return this
  }

  /** @throws {Error} where somebody has added a command without examples */
  examplesText () {
    if (this.examples.length === 0) throw new Error(`command "${this.name()}": expected two or three examples by .example(), received none`)
    return `\nExamples:\n${this.examples.map(([want, line]) => `  # ${want}\n  ${line}`).join('\n')}`
  }
}
