/** @typedef {import('commander').Command} Command */
/** @typedef {import('./program.js').Terminal} Terminal */

/** What concerns several decks. @param {Command} program @param {Terminal} terminal */
export function addAppsCommands (program, terminal) {
  const ofApps = (/** @type {string} */ usage, /** @type {string} */ about, /** @type {string} */ timeout) => program.command(usage)
    .description(about)
    .optionsGroup('Options:')
    .option('-c, --config <path>', 'config file with the apps (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)')
    .option('--timeout <duration>', `${timeout} (default: 5m; env: CLUSTERDECK_TIMEOUT)`)

  ofApps('up [name...]', 'start the apps of the config file, or some with all that they depend on, each as a deck of its own', 'with --detach: how long they may take to get ready')
    .option('-d, --detach', 'return once they are ready; they go on')
    .action(async (names, options) => {
      const { up } = await import('./up.js')
      await up(names, options, terminal)
    })
  ofApps('down [name...]', 'stop the apps of the config file, or some, and wait for their end', 'how long each may take')
    .option('--json', 'print the result as JSON')
    .action(async (names, options) => {
      const { down } = await import('./down.js')
      await down(names, options, terminal)
    })
  program.command('ls')
    .description('list all decks of this user on this machine')
    .option('--json', 'print the result as JSON')
    .action(async (options) => {
      const { ls } = await import('./ls.js')
      await ls(options, terminal)
    })
}
