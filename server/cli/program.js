import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { DeckError, loadFailure } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { beforeSeparator, commandOf } from './arguments.js'
import { addHelpCommand } from './help.js'
import { addInstallOptions, addStartOptions, addSystemdOptions, addUninstallOptions, startMaster } from './start.js'

/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream, env: Record<string, string | undefined>, cwd: string, home?: string, script: string }} Terminal `script`: how this program was called; `home`: where `cwd` was at the start, which a link may have led to */

const USAGE_EXIT_CODE = 2
const ENTRY = 'a file, a folder, an installed program, or npm, npx, yarn or pnpm with its words behind -- (default: "main" or the script "start" of package.json)'
const { version, description } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/**
 * Runs one command line.
 * @param {string[]} argv without node and script
 * @param {Terminal} terminal
 * @returns {Promise<number>} the exit code
 */
export async function runProgram (argv, terminal) {
  const outcome = { exitCode: 0 }
  const program = await createProgram(argv, terminal, outcome)
  try {
    await program.parseAsync(beforeSeparator(argv), { from: 'user' })
    return outcome.exitCode
  } catch (error) {
    return report(error, terminal)
  }
}

/**
 * @param {string[]} argv @param {Terminal} terminal @param {{ exitCode: number }} outcome
 */
export async function createProgram (argv, terminal, outcome) {
  const isWanted = (/** @type {string} */ name) => argv.includes(name) || commandOf(argv) === 'completion'
  const program = new Command('clusterdeck')
    .description(description)
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(inOurWords(text))
    })
    .addHelpText('after', '\nExit codes: 0 ok, 1 failed, 2 usage, 3 not authorised, 4 a rollout or an upgrade is running, 5 no master is running, 124 timed out.')

  const start = program.command('start')
    .description('run an app as a cluster in the foreground; arguments for the app follow --')
    .usage('[options] [entry] [-- app arguments]')
    .argument('[entry]', ENTRY)
    .action(async (entry, { keeper, ...flags }) => { outcome.exitCode = await startMaster({ ...flags, entry, ...appArguments(argv) }, terminal) })
  // Only the help, the parsing and the completion of `start` need the schema; the other commands start faster without it.
  if (isWanted('start')) await addStartOptions(start)

  const systemd = program.command('systemd')
    .description('print a systemd unit file that runs an app with these options of start')
    .usage('[options] [entry] [-- app arguments]')
    .argument('[entry]', ENTRY)
    .action(async (entry, flags) => {
      const { printUnits } = await import('./systemd.js')
      await printUnits({ ...flags, entry, ...appArguments(argv) }, terminal)
    })
  if (isWanted('systemd')) await addSystemdOptions(systemd)

  const install = program.command('install')
    .description('have systemd run an app, now and at every boot, with these options of start')
    .usage('[options] [entry] [-- app arguments]')
    .argument('[entry]', 'the app\'s main file (default: "main" of package.json)')
    .action(async (entry, flags) => {
      const commands = await import('./install.js')
      await commands.install({ ...flags, entry, ...appArguments(argv) }, terminal)
    })
  if (isWanted('install')) await addInstallOptions(install)

  addUninstallOptions(program.command('uninstall')
    .description('take back what install has done; the data folder stays')
    .usage('[options] [entry]')
    .argument('[entry]', 'the app\'s main file (default: "main" of package.json)')
    .action(async (entry, flags) => {
      const commands = await import('./install.js')
      await commands.uninstall({ ...flags, entry }, terminal)
    }))

  // A master has no use for them, and starts faster without.
  if (commandOf(argv) !== 'start') {
    const [{ addAppsCommands }, { addClientCommands }, { addCompletionCommand }, { addImportCommand }] = await Promise.all([import('./apps-commands.js'), import('./client-commands.js'), import('./completion.js'), import('./import.js')])
    addAppsCommands(program, terminal)
    addImportCommand(program, terminal)
    addClientCommands(program, terminal)
    addCompletionCommand(program, terminal)
  }
  addHelpCommand(program)
  return program
}

/** What stands after `--`; without it the config file may say. */
function appArguments (/** @type {string[]} */ argv) {
  return argv.includes('--') ? { args: argv.slice(argv.indexOf('--') + 1) } : {}
}

/** @param {unknown} cause @param {Terminal} terminal @returns {number} the exit code */
function report (cause, { stderr }) {
  const error = cause instanceof DeckError ? cause : loadFailure(cause) ?? cause
  if (error instanceof DeckError) {
    stderr.write(`clusterdeck: ${oneLine(error.message)}\n`)
    return error.exitCode
  }
  const { code, exitCode, stack } = /** @type {any} */ (error ?? {})
  // commander has said what is wrong, or printed the help or version that was asked for.
  if (typeof code === 'string' && code.startsWith('commander.')) return exitCode === 0 ? 0 : USAGE_EXIT_CODE
  stderr.write(`clusterdeck: internal error, please report it\n${stack ?? error}\n`)
  return 1
}

/** @param {string} text what commander says: `error: unknown option '--wrokers'\n(Did you mean --workers?)` */
function inOurWords (text) {
  const line = text.trim().replace(/^error: /, '').replace(/\n\(Did you mean (.*)\?\)$/s, ' (did you mean $1?)').replace(/'/g, '"')
  const hint = /^too many arguments for "(start|systemd|install)"/.test(line) ? ' Arguments for the app go after --.' : ''
  return `clusterdeck: ${line}${hint}\n`
}
