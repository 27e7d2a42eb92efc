import path from 'node:path'
import { Option as CommanderOption, type Command } from 'commander'
import { loadFailure, errorText } from '../errors.ts'
import { KEPT_VARIABLE, tellFailure } from '../keeper/link.ts'
import { hostFolder } from '../system/host-folder.ts'
import { traceProcess, traceStep } from '../system/start-trace.ts'
import { standOn } from '../system/working-folder.ts'
import { drawnStream } from './shown-stream.ts'
import type { Terminal } from './program.ts'
import type { Option } from '../config/option-list.ts'
import type { AppOrder } from './app-orders.ts'

/** 128 + SIGTERM, as in a shell. */
const EARLY_STOP_EXIT_CODE = 143
const COMMON_OPTIONS = ['name', 'workers', 'dispatch', 'dataDir', 'admin.host', 'admin.port', 'cwd', 'execArgv',
  'watch']

export async function startInForeground (flags: Record<string, unknown>, { stdout, stderr, env, cwd, home }: Terminal) {
  return await runMaster(env, async () => {
    traceProcess('master')
    traceStep('reads the command line')
    const [{ loadConfig }, { startHost }, { inForeground, whatRan }] = await Promise.all([import('../config/config.ts'),
      import('../host/master.ts'), import('../host/foreground.ts')])
    traceStep('the code of the master')
    const reload = async (launchIn: string | undefined) => {
      standOn(cwd)
      return await loadConfig({ flags, env, cwd, home, isAgain: true, launchIn })
    }
    return await startHost(async (left) => {
      const { config, refused } = await whatRan(left) ?? { config: await loadConfig({ flags, env, cwd, home }) }
      return { config, makeKind: inForeground({ config, refused, reload, order: () => orderOf(flags, { env, cwd }) }) }
    }, { stdout: drawnStream(stdout), stderr: drawnStream(stderr) })
  })
}

/** @returns for a host that is to run the same */
async function orderOf (flags: Record<string, unknown>, place: Pick<Terminal, 'env' | 'cwd'>): Promise<AppOrder> {
  const [{ orderOfStart }, { splitFlags }] = await Promise.all([import('./app-orders.ts'), import('./host-start.ts')])
  const { flags: ofApp } = await splitFlags(flags, place.cwd)
  return orderOfStart(ofApp, place)
}

export async function startHostOfUser (flags: Record<string, unknown>, { stdout, stderr, env }: Terminal) {
  return await runMaster(env, async () => {
    const [{ readHostConfig }, { startHost }, { hostOfUser }] = await Promise.all([import('../config/config.ts'),
      import('../host/master.ts'), import('../host/user-host.ts')])
    return await startHost(async () => {
      const config = await readHostConfig({ flags, env, folder: hostFolder(env) })
      return { config, makeKind: hostOfUser(config) }
    }, { stdout: drawnStream(stdout), stderr: drawnStream(stderr) })
  })
}

/** @returns the exit code */
async function runMaster (env: Terminal['env'], start: () => Promise<{ stopped: Promise<number> }>): Promise<number> {
  const isKept = Boolean(env[KEPT_VARIABLE])
  // As process 1, this one has no default handlers: the kernel would drop the SIGTERM of a container stop, and SIGKILL
  // follows.
  const endEarly = () => process.exit(EARLY_STOP_EXIT_CODE)
  if (process.pid === 1) process.once('SIGTERM', endEarly)
  try {
    const { stopped } = await start()
    process.off('SIGTERM', endEarly)
    return await stopped
  } catch (cause) {
    const error = loadFailure(cause) ?? cause
    if (isKept) tellFailure(errorText(error))
    throw error
  }
}

/** `omit`: options that the command uses for something else */
export async function addStartOptions (start: Command, { omit = [] }: { omit?: string[] } = {}) {
  const { OPTIONS } = await import('../config/option-list.ts')
  const all = OPTIONS.filter(({ name, kind }) => !['entry', 'args', ...omit].includes(name) && kind !== 'file')
  start.optionsGroup('Options:')
  start.addOption(
    new CommanderOption('-c, --config <path>',
      'config file (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)')
  )
  if (!omit.includes('app')) start.option('--app <name>', 'one of the apps of the config file (env: CLUSTERDECK_APP)')
  all.filter(isCommon).forEach((option) => addOption(start, option))
  start.option('--no-keeper',
    'run without the keeper: nothing restarts a master that dies (env: CLUSTERDECK_KEEPER=off)')
  start.optionsGroup('Fine tuning:')
  all.filter((option) => !isCommon(option) && !option.isRare).forEach((option) => addOption(start, option))
  start.optionsGroup('Rarely needed:')
  all.filter(({ isRare }) => isRare).forEach((option) => addOption(start, option))
}

export async function addHostOptions (host: Command) {
  const [{ OPTIONS }, { isOfHost }] = await Promise.all([import('../config/option-list.ts'),
    import('../config/config.ts')])
  host.optionsGroup('Options:')
  host.option('--no-keeper', 'run without the keeper: nothing restarts a host that dies (env: CLUSTERDECK_KEEPER=off)')
  OPTIONS.filter(({ name, kind }) => isOfHost(name) && kind !== 'file').forEach((option) => addOption(host, option))
}

function isCommon ({ name }: Option) {
  return COMMON_OPTIONS.includes(name)
}

function addOption (command: Command, { name, flag, kind, hint, description, fallback, env }: Option) {
  const usage = `${name === 'workers' ? '-w, ' : ''}${flag}${kind === 'switch' ? '' : ` <${hint}>`}`
  const isShown = fallback !== undefined && typeof fallback !== 'object'
  command.option(usage, `${description} (${isShown ? `default: ${fallback}; ` : ''}env: ${env})`)
}

/**
 * The words of a command line that say what an option has said, wherever that is run.
 * @param cwd that a relative path begins at
 */
export function flagOf ({ flag, kind }: Option, value: string, cwd: string): string[] {
  return kind === 'switch' ? [flag] : [flag, kind === 'path' ? path.resolve(cwd, value) : value]
}

/** The arguments after `--`. Without `--` those of the config file count. */
export function appArguments (argv: string[]): { args?: string[] } {
  return argv.includes('--') ? { args: argv.slice(argv.indexOf('--') + 1) } : {}
}

/** What is to be started: where nothing else says it, the words after `--` are a command and its arguments. */
export function appWords (argv: string[], entry: string | undefined, { script }: { script?: string }) {
  const given = appArguments(argv)
  const [command, ...args] = given.args ?? []
  const isCommand = entry === undefined && script === undefined && command !== undefined && !command.startsWith('-')
  return isCommand ? { entry: command, args } : { entry, ...given }
}
