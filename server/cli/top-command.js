import { addDeckOptions } from './deck-options.js'

/**
 * Adds the page of apps for a terminal. What draws it is loaded by this command alone.
 * @param {import('./deck-command.js').DeckCommand} program @param {import('./program.js').Terminal} terminal @param {{ exitCode: number }} outcome
 */
export function addTopCommand (program, terminal, outcome) {
  addDeckOptions(program.command('top [app...]'))
    .description('show all apps of this user live, or some, with workers and output; keys restart, deploy, stop and start them')
    .example('all apps of this user', 'clusterdeck top')
    .example('two of them', 'clusterdeck top shop mail')
    .example('those of another machine', 'clusterdeck top --url https://deck.example.com --token-file /run/secrets/deck')
    .action(async (names, options) => {
      const { topCommand } = await import('./top.js')
      outcome.exitCode = await topCommand(names, options, terminal)
    })
}
