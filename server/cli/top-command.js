/**
 * Adds the page of apps for a terminal. What draws it is loaded by this command alone.
 * @param {import('./deck-command.js').DeckCommand} program @param {import('./program.js').Terminal} terminal @param {{ exitCode: number }} outcome
 */
export function addTopCommand (program, terminal, outcome) {
  program.command('top [app...]')
    .description('show all apps of this user live, or some, with workers and output; keys restart, deploy, stop and start them')
    .optionsGroup('Which master:')
    .option('--data-dir <path>', 'its data folder (env: CLUSTERDECK_DATA_DIR)')
    .option('--app <name>', 'the app of the config file that it runs (env: CLUSTERDECK_APP)')
    .option('-n, --name <name>', 'its name in "clusterdeck ls", from any folder (env: CLUSTERDECK_NAME)')
    .option('--url <url>', 'the address of its admin page (env: CLUSTERDECK_URL)')
    .option('--token <token>', 'its admin token; the other users of this machine can see it, so prefer --token-file (env: CLUSTERDECK_TOKEN)')
    .option('--token-file <file>', 'a file with its admin token (env: CLUSTERDECK_TOKEN_FILE)')
    .example('all apps of this user', 'clusterdeck top')
    .example('two of them', 'clusterdeck top shop mail')
    .example('those of another machine', 'clusterdeck top --url https://deck.example.com --token-file /run/secrets/deck')
    .action(async (names, options) => {
      const { topCommand } = await import('./top.js')
      outcome.exitCode = await topCommand(names, options, terminal)
    })
}
