#!/usr/bin/env node
import { readFileSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command, Option } from 'commander'
import { createApiClient } from './cli/api-client.js'
import * as commands from './cli/commands.js'
import { crashes } from './cli/crashes.js'
import { diagnose, kill } from './cli/diagnose.js'
import { checkedDuration } from './cli/duration.js'
import { findMaster } from './cli/find-master.js'
import { addHelpCommand } from './cli/help.js'
import { logs } from './cli/logs.js'
import { releases } from './cli/releases.js'
import { rollout, steer } from './cli/rollouts.js'
import { DeckError } from './errors.js'
import { keep } from './keeper/keeper.js'
import { KEPT_VARIABLE, tellFailure } from './keeper/link.js'
import { oneLine } from './system/one-line.js'

/** @typedef {{ stdout: NodeJS.WriteStream, stderr: NodeJS.WriteStream, env: Record<string, string | undefined>, cwd: string }} Terminal */

const USAGE_EXIT_CODE = 2
/** 128 + SIGTERM, as a shell has it. */
const EARLY_STOP_EXIT_CODE = 143
const { version, description } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/**
 * Runs one command line.
 * @param {string[]} argv without node and script
 * @param {Terminal} terminal
 * @returns {Promise<number>} the exit code
 */
export async function run (argv, terminal) {
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
async function createProgram (argv, terminal, outcome) {
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
    .argument('[entry]', 'the app\'s main file (default: "main" of package.json)')
    .action(async (entry, { keeper, ...flags }) => { outcome.exitCode = await startMaster({ ...flags, entry, ...appArguments(argv) }, terminal) })
  // Only the help and the parsing of `start` need the schema; the other commands start faster without it.
  if (argv.includes('start')) await addStartOptions(start)

  const systemd = program.command('systemd')
    .description('print a systemd unit file that runs an app with these options of start')
    .usage('[options] [entry] [-- app arguments]')
    .argument('[entry]', 'the app\'s main file (default: "main" of package.json)')
    .action(async (entry, flags) => {
      const { systemdUnits } = await import('./cli/systemd.js')
      terminal.stdout.write(await systemdUnits({ ...flags, entry, ...appArguments(argv) }, { cwd: terminal.cwd, script: ownScript() }))
    })
  if (argv.includes('systemd')) await addSystemdOptions(systemd)

  addClientCommands(program, terminal)
  addHelpCommand(program)
  return program
}

/** @param {Command} program @param {Terminal} terminal */
function addClientCommands (program, terminal) {
  /** @param {string} usage @param {string} about @param {(context: commands.Context, ...args: string[]) => Promise<void>} work */
  const client = (usage, about, work) => program.command(usage)
    .description(about)
    .optionsGroup('Options:')
    .option('--json', 'print the result as JSON')
    .optionsGroup('Which master:')
    .option('--data-dir <path>', 'its data folder (default: .clusterdeck; env: CLUSTERDECK_DATA_DIR)')
    .option('--url <url>', 'the address of its admin page (env: CLUSTERDECK_URL)')
    .option('--token <token>', 'its admin token; the variable is safer than the flag (env: CLUSTERDECK_TOKEN)')
    .option('--timeout <duration>', 'give up after this time (default: 5m; env: CLUSTERDECK_TIMEOUT)')
    .optionsGroup('Options:')
    .action(async (...given) => {
      const command = /** @type {Command} */ (given.pop())
      given.pop()
      await work(await createContext(command.opts(), terminal), ...given)
    })

  client('status', 'print the state of the cluster and its workers', commands.status)
  client('restart', 'restart all workers: new ones are ready before old ones drain', rollout('restart'))
    .option('--wait', 'wait for the end; fail if the rollout fails')
    .option('--note <text>', 'why, for the history')
  client('deploy', 'deploy the code on disk, slot by slot', rollout('deploy'))
    .option('--wait', 'wait for the end; fail if the rollout fails')
    .option('--note <text>', 'what is new, for the history')
    .option('--path <folder>', 'deploy this folder, below releases.root')
    .optionsGroup('Overrides of the configuration:')
    .option('--surge <n|n%>', 'how many workers are replaced at the same time')
    .option('--min-ready <duration>', 'how long a new worker must stay ready before the old one drains')
    .option('--canary <n>', 'how many new workers serve beside the old ones first and are judged')
    .option('--canary-time <duration>', 'how long the canary lasts')
    .option('--on-failure <what>', 'rollback, or hold: wait for an operator')
  client('rollback [release]', 'roll back to the previous release, or to another one', rollout('rollback'))
    .option('--wait', 'wait for the end; fail if the rollback fails')
    .option('--note <text>', 'why, for the history')
  for (const [name, about] of Object.entries(STEERING)) {
    client(name, about, steer(/** @type {import('./cli/rollouts.js').Steering} */ (name))).option('--wait', 'wait for the end of the rollout')
  }
  client('releases [id]', 'print the releases, or one of them', releases)
  client('scale <n>', 'run this many workers', commands.scale)
    .option('--wait', 'wait until they are ready')
  client('kill <worker>', 'kill one worker with SIGKILL; its replacement starts at once', kill)
  client('diagnose <worker>', 'profile or inspect one worker; a heap snapshot pauses it and contains its secrets', diagnose)
    .requiredOption('--kind <kind>', 'cpu-profile, heap-snapshot, heap-statistics or report')
    .option('--duration <duration>', 'how long to profile, at most 60s (default: 10s)')
    .option('--output <file>', 'output file (default: a generated name in the working folder)')
  client('upgrade', 'switch to the installed version of clusterdeck, or to another node, without downtime', commands.upgrade)
    .option('--node <path>', 'node binary of the next master and its workers (default: the current one)')
    .option('--wait', 'wait for the end; fail if the upgrade fails')
    .option('--note <text>', 'why, for the history')
  const history = client('history', 'print events, newest first', commands.history)
    .option('--limit <n>', 'how many events, at most 1000', '50')
  for (const [name, about] of Object.entries(HISTORY_OPTIONS)) history.option(`--${name} <value>`, about)
  client('logs', 'print the last lines of the workers\' output', logs)
    .option('-f, --follow', 'follow new output')
    .option('--slot <n>', 'only this slot')
    .option('--stream <name>', 'only stdout, or only stderr')
    .option('--lines <n>', 'lines of each log, at most 1000', '100')
  client('crashes [id]', 'print the crash groups, or one of them', crashes)
    .option('--state <state>', 'only this state: open, resolved or muted')
    .option('--q <words>', 'only with these words in message or stack')
    .option('--release <value>', 'only this release')
    .option('--since <value>', 'only crashes since: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago')
  client('open', 'print a one-time sign-in link and open it', commands.open)
  client('stop', 'stop the master and its workers, and wait for their exit', commands.stop)
}

/** @type {Readonly<Record<import('./config/steering.js').Steering, string>>} */
const STEERING = Object.freeze({
  pause: 'pause the running rollout',
  resume: 'resume the paused rollout',
  abort: 'abort the running rollout and revert what it replaced',
  promote: 'end the canary of the running rollout without a verdict',
  retry: 'retry the failed step of a rollout that awaits an operator'
})

const HISTORY_OPTIONS = Object.freeze({
  type: 'only these types: worker.exited, worker.*, problems; separated by commas',
  cause: 'only this cause: crash, killed, deploy, …',
  slot: 'only this slot',
  worker: 'only this worker',
  release: 'only this release',
  rollout: 'only this rollout',
  since: 'since this time: 2026-01-31T12:00:00Z, or 15m, 2h, 7d ago',
  until: 'before this time',
  q: 'only with this text in message, type or cause'
})

/** @param {Record<string, any>} options @param {Terminal} terminal @returns {Promise<commands.Context>} */
async function createContext (options, { stdout, stderr, env, cwd }) {
  const timeoutMs = checkedDuration(options.timeout === undefined && env.CLUSTERDECK_TIMEOUT ? 'CLUSTERDECK_TIMEOUT' : '--timeout', options.timeout ?? (env.CLUSTERDECK_TIMEOUT || '5m'))
  const master = await findMaster(options, { env, cwd })
  return {
    api: createApiClient(master, { timeoutMs }),
    master,
    options,
    timeoutMs,
    print: (text) => { stdout.write(`${text}\n`) },
    tell: (text) => { stderr.write(`${text}\n`) },
    isTerminal: Boolean(stdout.isTTY),
    isInteractive: Boolean(stdout.isTTY && stderr.isTTY)
  }
}

/** @param {Command} start */
async function addStartOptions (start) {
  const { OPTIONS } = await import('./config/options.js')
  const short = /** @type {Record<string, string>} */ ({ workers: '-w, ' })
  const common = ['workers', 'dispatch', 'dataDir', 'admin.host', 'admin.port', 'cwd', 'execArgv', 'watch']
  const all = OPTIONS.filter(({ name, kind }) => name !== 'entry' && name !== 'args' && kind !== 'file')
  const isCommon = (/** @type {import('./config/options.js').Option} */ { name }) => common.includes(name)
  const add = (/** @type {import('./config/options.js').Option} */ { name, flag, kind, hint, description, fallback, env }) => {
    const isShown = fallback !== undefined && !Array.isArray(fallback)
    start.option(`${short[name] ?? ''}${flag}${kind === 'switch' ? '' : ` <${hint}>`}`, `${description} (${isShown ? `default: ${fallback}; ` : ''}env: ${env})`)
  }
  start.optionsGroup('Options:').addOption(new Option('-c, --config <path>', 'config file (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)'))
  all.filter(isCommon).forEach(add)
  start.option('--no-keeper', 'run without the keeper: nothing restarts a master that dies (env: CLUSTERDECK_KEEPER=off)')
  start.optionsGroup('Fine tuning:')
  all.filter((option) => !isCommon(option)).forEach(add)
}

/** @param {Command} systemd */
async function addSystemdOptions (systemd) {
  const several = (/** @type {string} */ value, /** @type {string[]} */ before = []) => [...before, value]
  systemd.optionsGroup('The unit:')
    .option('--name <name>', 'name of the units (default: that of the package, or of the file)')
    .option('--user <name>', 'user of the service (default: the current one; for root, a user of its own)')
    .option('--socket <address>', 'port, address with port, or path that systemd listens on; repeatable', several)
    .option('--notify-reload', 'Type=notify-reload, which needs systemd 253')
  await addStartOptions(systemd)
}

/** @param {Record<string, unknown>} flags @param {Terminal} terminal */
async function startMaster (flags, { stdout, stderr, env, cwd }) {
  const isKept = Boolean(env[KEPT_VARIABLE])
  // The kernel drops a signal that process 1 has no handler for, and this one would come back as a SIGKILL.
  const endEarly = () => process.exit(EARLY_STOP_EXIT_CODE)
  if (process.pid === 1) process.once('SIGTERM', endEarly)
  try {
    const [{ loadConfig }, main] = await Promise.all([import('./config/config.js'), import('./main.js')])
    const config = await loadConfig({ flags, env, cwd })
    const { stopped } = await main.startMaster(config, { stdout, stderr, reload: () => loadConfig({ flags, env, cwd, isAgain: true }) })
    process.off('SIGTERM', endEarly)
    return await stopped
  } catch (/** @type {any} */ error) {
    if (isKept) tellFailure(error.message)
    throw error
  }
}

/** What stands before `--`: commander would take the app's arguments for ours. */
function beforeSeparator (/** @type {string[]} */ argv) {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? argv.length : end)
}

/** What stands after `--`; without it the config file may say. */
function appArguments (/** @type {string[]} */ argv) {
  return argv.includes('--') ? { args: argv.slice(argv.indexOf('--') + 1) } : {}
}

/** @param {unknown} error @param {Terminal} terminal @returns {number} the exit code */
function report (error, { stderr }) {
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
  const hint = line.startsWith('too many arguments for "start"') ? ' Arguments for the app go after --.' : ''
  return `clusterdeck: ${line}${hint}\n`
}

/**
 * Told without reading the options, which is the master's business: a keeper has as little code as it can.
 * @param {string[]} argv @param {Record<string, string | undefined>} env
 */
function wantsKeeper (argv, env) {
  const ours = beforeSeparator(argv)
  if (ours.find((word) => !word.startsWith('-')) !== 'start' || env[KEPT_VARIABLE]) return false
  return env.CLUSTERDECK_KEEPER !== 'off' && !ours.some((word) => ['--no-keeper', '-h', '--help'].includes(word))
}

/** This file, by the link that it was called by, which may lead to a newer version some day. */
function ownScript () {
  return isMain() ? resolve(process.argv[1]) : fileURLToPath(import.meta.url)
}

/** Whether this file is what node was started with, by whatever link. */
function isMain () {
  try {
    return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
  } catch {
    // Started without a file, as by `node --eval`.
    return false
  }
}

if (isMain()) {
  // `clusterdeck history | head` closes the pipe early; that is no failure. A master must not end by it.
  if (!process.argv.includes('start')) {
    process.stdout.on('error', (error) => process.exit(/** @type {any} */ (error).code === 'EPIPE' ? 0 : 1))
  }
  const args = process.argv.slice(2)
  const exitCode = wantsKeeper(args, process.env)
    ? await keep({ script: process.argv[1], args })
    : await run(args, { stdout: process.stdout, stderr: process.stderr, env: process.env, cwd: process.cwd() })
  process.exit(exitCode)
}
