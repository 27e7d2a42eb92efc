import { Option } from 'commander'
import { loadFailure } from '../errors.js'
import { KEPT_VARIABLE, tellFailure } from '../keeper/link.js'
import { standOn } from '../system/working-folder.js'

/** @typedef {import('commander').Command} Command */
/** @typedef {import('./program.js').Terminal} Terminal */

/** 128 + SIGTERM, as a shell has it. */
const EARLY_STOP_EXIT_CODE = 143
const NAME_ABOUT = 'name of the units (default: that of the package, or of the file)'

/** @param {Record<string, unknown>} flags @param {Terminal} terminal */
export async function startMaster (flags, { stdout, stderr, env, cwd, home }) {
  const isKept = Boolean(env[KEPT_VARIABLE])
  // The kernel drops a signal that process 1 has no handler for, and this one would come back as a SIGKILL.
  const endEarly = () => process.exit(EARLY_STOP_EXIT_CODE)
  if (process.pid === 1) process.once('SIGTERM', endEarly)
  try {
    const [{ loadConfig }, main] = await Promise.all([import('../config/config.js'), import('../main.js')])
    const config = await loadConfig({ flags, env, cwd, home })
    const reload = async (/** @type {string | undefined} */ launchIn) => {
      standOn(cwd)
      return await loadConfig({ flags, env, cwd, home, isAgain: true, launchIn })
    }
    const { stopped } = await main.startMaster(config, { stdout, stderr, reload })
    process.off('SIGTERM', endEarly)
    return await stopped
  } catch (/** @type {any} */ cause) {
    const error = loadFailure(cause) ?? cause
    if (isKept) tellFailure(error.message)
    throw error
  }
}

/** @param {Command} start @param {{ has?: string[] }} [command] `has`: options that it has itself, for something else */
export async function addStartOptions (start, { has = [] } = {}) {
  const { OPTIONS } = await import('../config/options.js')
  const short = /** @type {Record<string, string>} */ ({ workers: '-w, ' })
  const common = ['name', 'workers', 'dispatch', 'dataDir', 'admin.host', 'admin.port', 'cwd', 'execArgv', 'watch']
  const all = OPTIONS.filter(({ name, kind }) => !['entry', 'args', ...has].includes(name) && kind !== 'file')
  const isCommon = (/** @type {import('../config/options.js').Option} */ { name }) => common.includes(name)
  const add = (/** @type {import('../config/options.js').Option} */ { name, flag, kind, hint, description, fallback, env }) => {
    const isShown = fallback !== undefined && typeof fallback !== 'object'
    start.option(`${short[name] ?? ''}${flag}${kind === 'switch' ? '' : ` <${hint}>`}`, `${description} (${isShown ? `default: ${fallback}; ` : ''}env: ${env})`)
  }
  start.optionsGroup('Options:').addOption(new Option('-c, --config <path>', 'config file (default: clusterdeck.config.{js,mjs,json}; env: CLUSTERDECK_CONFIG)'))
  start.option('--app <name>', 'one of the apps of the config file (env: CLUSTERDECK_APP)')
  all.filter(isCommon).forEach(add)
  start.option('--no-keeper', 'run without the keeper: nothing restarts a master that dies (env: CLUSTERDECK_KEEPER=off)')
  start.optionsGroup('Fine tuning:')
  all.filter((option) => !isCommon(option)).forEach(add)
}

/** @param {Command} systemd */
export async function addSystemdOptions (systemd) {
  const several = (/** @type {string} */ value, /** @type {string[]} */ before = []) => [...before, value]
  systemd.optionsGroup('The unit:')
    .option('--name <name>', NAME_ABOUT)
    .option('--user <name>', 'user of the service (default: the current one; for root, a user of its own)')
    .option('--socket <address>', 'port, address with port, or path that systemd listens on; repeatable', several)
    .option('--notify-reload', 'Type=notify-reload, which needs systemd 253')
  if (systemd.name() === 'systemd') systemd.option('--scope <system|user>', 'for which service manager: the machine\'s, or that of one user (default: system)')
  await addStartOptions(systemd, { has: ['name'] })
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
    .option('--force', 'remove units that "clusterdeck install" has not written, too')
}

/** @param {Command} command */
function addPlaceOptions (command) {
  return command
    .option('--scope <system|user>', 'whose service manager: the machine\'s, or one\'s own (default: system for root, else user)')
    .option('--dry-run', 'print what would be done, and do nothing')
}
