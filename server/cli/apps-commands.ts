import { addDeckOptions } from './deck-options.ts'
import type { Terminal } from './program.ts'
import type { DeckCommand } from './deck-command.ts'

/** Adds the commands for several apps. */
export function addAppsCommands (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number }) {
  addCommand('up [name...]',
    'run the apps of the config file, or some and what they depend on, in the host of this user, until Ctrl-C',
    'with --detach: how long they may take to get ready').option('-d, --detach',
      'return once they are ready; they go on in the host').option('--no-wait', 'with --detach: return at once').option(
      '--apply',
      'with --detach: deploy those that run already as they are configured now'
    ).example('all apps of the config file, until Ctrl-C', 'clusterdeck up').example(
      'in the background: returns once they are ready',
      'clusterdeck up --detach'
    ).example('one of them, and what it depends on', 'clusterdeck up mail --detach').action(async (names, options) => {
      const { upCommand } = await import('./up.ts')
      await upCommand(names, options, terminal)
    })
  addCommand('down [name...]', 'stop the apps of the config file, or some, and wait for their end',
    'how long each may take').option('--json', 'print the result as JSON').option('--all',
      'end the host of this user, with all apps that are in it; its next start brings them back').example(
      'all apps of the config file',
      'clusterdeck down'
    ).example('one of them', 'clusterdeck down mail').example('the host, with all its apps', 'clusterdeck down --all')
    .action(async (names, options) => {
      const { downCommand } = await import('./down.ts')
      await downCommand(names, options, terminal)
    })
  program.command('adopt [folder]').description(
    'move what runs into the host of this user, which is started if there is none: a deck with its history, or a program that something else has started. No connection is refused'
  ).optionsGroup('A program that is no deck:').option('--pm2 [name...]', 'all apps that the running PM2 runs, or these')
    .option('--port <n>', 'the program that listens on this port').option('--pid <n>', 'the program of this process')
    .option('-w, --workers <n>',
      'how many workers it gets (default: what its config file says, else one, or one for each of its processes of node:cluster)')
    .option('--grace <duration>',
      'how long its connections may take to end by themselves before it is asked to end (default: 10s)').optionsGroup(
      'A deck:'
    ).option('--app <name>', 'which app of the config file in the folder').option('--no-wait',
      'return once the host has agreed').optionsGroup('Options:').option('--name <name>',
      'what the host is to call it (default: its own name)').option('--timeout <duration>',
      'how long its new workers may take to get ready (default: 5m; env: CLUSTERDECK_TIMEOUT)').option('--json',
      'print the result as JSON').example('the deck of this folder', 'clusterdeck adopt').example('all apps of PM2',
      'clusterdeck adopt --pm2').example('what listens on port 3000, whoever has started it',
      'clusterdeck adopt --port 3000').action(async (folder, options) => {
      if (options.pm2 !== undefined || options.port !== undefined || options.pid !== undefined) {
        const { adoptPrograms } = await import('./adopt-program.ts')
        outcome.exitCode = await adoptPrograms(folder, options, terminal)
        return
      }
      const { adoptCommand } = await import('./adopt.ts')
      await adoptCommand(folder, options, terminal)
    })
  program.command('ls').alias('list').description(
    'list the apps of the host of this user, also those that do not run, and all other decks of this user on this machine'
  ).option('--json', 'print the result as JSON').example('what runs, and its state', 'clusterdeck ls').example(
    'for a script',
    'clusterdeck ls --json | jq -r .[].name'
  ).action(async (options) => {
    const { lsCommand } = await import('./ls.ts')
    await lsCommand(options, terminal)
  })

  /** `timeout`: what `--timeout` limits */
  function addCommand (usage: string, about: string, timeout: string) {
    return program.command(usage).description(about).optionsGroup('Options:').option('-c, --config <path>',
      'config file with the apps (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)').option(
        '--timeout <duration>',
        `${timeout} (default: 5m; env: CLUSTERDECK_TIMEOUT)`
      )
  }
}

/** Adds the page of apps for a terminal. What draws it is loaded by this command alone. */
export function addTopCommand (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number }) {
  addDeckOptions(program.command('top [app...]')).description(
    'show all apps of this user live, or some, with workers and output'
  ).example('all apps of this user', 'clusterdeck top').example('two of them', 'clusterdeck top shop mail').example(
    'those of another machine',
    'clusterdeck top --url https://deck.example.com --token-file /run/secrets/deck'
  ).action(async (names, options) => {
    const { topCommand } = await import('./top.ts')
    outcome.exitCode = await topCommand(names, options, terminal)
  })
}
