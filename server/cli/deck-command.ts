import { Command } from 'commander'

/** A command with the examples that its help shows. */
export class DeckCommand extends Command {
  examples: [want: string, line: string][] = []

  /** createCommand() makes them all. */
  override commands: readonly DeckCommand[] = []

  override createCommand (name?: string): DeckCommand {
    return new DeckCommand(name)
  }

  /** `want`: what somebody wants; `line`: the command line that does it; a test parses it */
  example (want: string, line: string) {
    this.examples.push([want, line])
    return this
  }

  /** @throws {Error} where somebody has added a command without examples */
  examplesText () {
    if (this.examples.length === 0)
      throw new Error(`command "${this.name()}": expected two or three examples by .example(), received none`)
    return `\nExamples:\n${this.examples.map(([want, line]) => `  # ${want}\n  ${line}`).join('\n')}`
  }
}
