import { Option as CommanderOption } from 'commander'
import { loadFailure, errorText } from '../errors.js'
import { KEPT_VARIABLE, tellFailure } from '../keeper/link.js'
import { hostFolder } from '../system/host-folder.js'
import { traceProcess, traceStep } from '../system/start-trace.js'
import { standOn } from '../system/working-folder.js'
import { drawnStream } from './shown-stream.js'

/** @typedef {import('commander').Command} Command */
/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('../config/option-list.js').Option} Option */

/** 128 + SIGTERM, as in a shell. */
const EARLY_STOP_EXIT_CODE = 143
const NAME_ABOUT = 'name of the units (default: that of the package, or of the file)'
const COMMON_OPTIONS = ['name', 'workers', 'dispatch', 'dataDir', 'admin.host', 'admin.port', 'cwd', 'execArgv', 'watch']

/** @param {Record<string, unknown>} flags @param {Terminal} terminal */
export async function startMaster (flags, { stdout, stderr, env, cwd, home }) {
  return await runMaster(env, async () => {
    traceProcess('master')
    traceStep('reads the command line')
    const [{ loadConfig }, main] = await Promise.all([import('../config/config.js'), import('../host/master.js')])
    traceStep('the code of the master')
    const config = await loadConfig({ flags, env, cwd, home })
    traceStep('the configuration')
    const reloadConfig = async (/** @type {string | undefined} */ launchIn) => {
      standOn(cwd)
      return await loadConfig({ flags, env, cwd, home, isAgain: true, launchIn })
    }
    return await main.startMaster(config, { stdout: drawnStream(stdout), stderr: drawnStream(stderr), reload: reloadConfig, order: () => orderOf(flags, { env, cwd }) })
  })
}

/** @param {Record<string, unknown>} flags @param {Pick<Terminal, 'env' | 'cwd'>} place @returns {Promise<import('./app-orders.js').AppOrder>} for a host that is to run the same */
async function orderOf (flags, place) {
  const [{ orderOfStart }, { splitFlags }] = await Promise.all([import('./app-orders.js'), import('./host-start.js')])
  const { flags: ofApp } = await splitFlags(flags, place.cwd)
  return orderOfStart(ofApp, place)
}

/** @param {Record<string, unknown>} flags @param {Terminal} terminal */
export async function startHost (flags, { stdout, stderr, env }) {
  return await runMaster(env, async () => {
    const [{ readHostConfig }, main] = await Promise.all([import('../config/config.js'), import('../host/host-master.js')])
    return await main.startHost(await readHostConfig({ flags, env, folder: hostFolder(env) }), { stdout: drawnStream(stdout), stderr: drawnStream(stderr) })
  })
}

/** @param {Terminal['env']} env @param {() => Promise<{ stopped: Promise<number> }>} start @returns {Promise<number>} the exit code */
async function runMaster (env, start) {
  const isKept = Boolean(env[KEPT_VARIABLE])
  // As process 1, this one has no default handlers: the kernel would drop the SIGTERM of a container stop, and SIGKILL follows.
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

/** @param {Command} start @param {{ omit?: string[] }} [how] `omit`: options that the command uses for something else */
export async function addStartOptions (start, { omit = [] } = {}) {
  const { OPTIONS } = await import('../config/option-list.js')
  const all = OPTIONS.filter(({ name, kind }) => !['entry', 'args', ...omit].includes(name) && kind !== 'file')
  start.optionsGroup('Options:')
  start.addOption(new CommanderOption('-c, --config <path>', 'config file (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)'))
  if (!omit.includes('app')) start.option('--app <name>', 'one of the apps of the config file (env: CLUSTERDECK_APP)')
  all.filter(isCommon).forEach((option) => addOption(start, option))
  start.option('--no-keeper', 'run without the keeper: nothing restarts a master that dies (env: CLUSTERDECK_KEEPER=off)')
  start.optionsGroup('Fine tuning:')
  all.filter((option) => !isCommon(option) && !option.isRare).forEach((option) => addOption(start, option))
  start.optionsGroup('Rarely needed:')
  all.filter(({ isRare }) => isRare).forEach((option) => addOption(start, option))
}

/** @param {Command} host */
export async function addHostOptions (host) {
  const [{ OPTIONS }, { isOfHost }] = await Promise.all([import('../config/option-list.js'), import('../config/config.js')])
  host.optionsGroup('Options:')
  host.option('--no-keeper', 'run without the keeper: nothing restarts a host that dies (env: CLUSTERDECK_KEEPER=off)')
  OPTIONS.filter(({ name, kind }) => isOfHost(name) && kind !== 'file').forEach((option) => addOption(host, option))
}

/** @param {Option} option */
function isCommon ({ name }) {
  return COMMON_OPTIONS.includes(name)
}

/** @param {Command} command @param {Option} option */
function addOption (command, { name, flag, kind, hint, description, fallback, env }) {
  const usage = `${name === 'workers' ? '-w, ' : ''}${flag}${kind === 'switch' ? '' : ` <${hint}>`}`
  const isShown = fallback !== undefined && typeof fallback !== 'object'
  command.option(usage, `${description} (${isShown ? `default: ${fallback}; ` : ''}env: ${env})`)
}

/** @param {Command} systemd */
export async function addSystemdOptions (systemd) {
  const collectValues = (/** @type {string} */ value, /** @type {string[]} */ before = []) => [...before, value]
  systemd.optionsGroup('The unit:')
    .option('--name <name>', NAME_ABOUT)
    .option('--user <name>', 'user of the service (default: the current one; for root, a user of its own)')
    .option('--socket <address>', 'port, address with port, or path that systemd listens on; repeatable', collectValues)
    .option('--notify-reload', 'Type=notify-reload, which needs systemd 253')
  if (systemd.name() === 'systemd') systemd.option('--scope <system|user>', 'which service manager: that of the machine, or of the user (default: system)')
  await addStartOptions(systemd, { omit: ['name'] })
}

/** @param {Command} install */
export async function addInstallOptions (install) {
  addPlaceOptions(install.optionsGroup('The installation:'))
    .option('--force', 'replace other units of this name')
  await addSystemdOptions(install)
}

/** @param {Command} uninstall */
export function addUninstallOptions (uninstall) {
  addPlaceOptions(uninstall)
    .option('--name <name>', NAME_ABOUT)
    .option('--app <name>', 'one of the apps of the config file')
    .option('-c, --config <path>', 'config file that names the entry')
    .option('--force', 'also remove units that "clusterdeck install" has not written')
}

/** @param {Command} command */
function addPlaceOptions (command) {
  return command
    .option('--scope <system|user>', 'which service manager: that of the machine, or of the user (default: system for root, else user)')
    .option('--dry-run', 'print what would be done, and do nothing')
}
