import { addDeckOptions } from './deck-options.ts'
import type { DeckCommand } from './deck-command.ts'
import type { Terminal } from './program.ts'

/** Adds the page of apps for a terminal. What draws it is loaded by this command alone. */
export function addTopCommand (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number }) {
  addDeckOptions(program.command('top [app...]')).description(
    'show all apps of this user live, or some, with workers and output; keys restart, deploy, stop and start them'
  ).example('all apps of this user', 'clusterdeck top').example('two of them', 'clusterdeck top shop mail').example(
    'those of another machine',
    'clusterdeck top --url https://deck.example.com --token-file /run/secrets/deck'
  ).action(async (names, options) => {
    const { topCommand } = await import('./top.ts')
    outcome.exitCode = await topCommand(names, options, terminal)
  })
}
