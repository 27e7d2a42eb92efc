import { readFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { appsOf, DECK_NAME } from '../config/apps.js'
import { readConfigFile } from '../config/file.js'
import { DeckError } from '../errors.js'
import { joinUnits, unitFiles } from '../systemd/unit.js'
import { userId, userName } from './user.js'

/** @typedef {import('../config/options.js').Option} Option */
/** @typedef {import('../systemd/unit.js').Scope} Scope */
/** @typedef {{ name: string, files: import('../systemd/unit.js').UnitFile[], config: import('../config/config.js').Config, dataDir: string }} Service `dataDir`: where its deck keeps what it keeps */

/** @type {readonly string[]} */
const SCOPES = ['system', 'user']
/** Where systemd makes the folders of services: StateDirectory= in systemd.exec(5). */
const STATE_FOLDER = '/var/lib'

/** @param {Record<string, any>} options as of systemdService @param {import('./program.js').Terminal} terminal */
export async function printUnits (options, { stdout, cwd, script }) {
  const { files } = await systemdService(options, { cwd, script })
  stdout.write(joinUnits(files))
}

/**
 * Says how systemd is to run an app: `start` with the same options, everything else as the configuration has it.
 * @param {Record<string, any>} options the flags as they were given, `entry` and `args` among them
 * @param {{ cwd: string, script: string }} where `script`: the command line's own file
 * @returns {Promise<Service>}
 * @throws {DeckError} usage, invalid-config, unknown-option, entry-not-found
 */
export async function systemdService ({ keeper, name: givenName, user, scope: givenScope = 'system', socket: sockets = [], notifyReload = false, entry, args, ...flags }, { cwd, script }) {
  const scope = checkedScope(givenScope)
  const [{ loadConfig, originOf }, { OPTIONS }] = await Promise.all([import('../config/config.js'), import('../config/options.js')])
  // Without the environment of this shell, which the service will not have.
  const config = await loadConfig({ flags: { entry, args, ...flags }, env: {}, cwd })
  const { config: configFile, app, dataDir, ...rest } = flags
  const name = serviceName(givenName ?? app, config)
  // What a service of the system writes lies where the system keeps such things, and a user's own beside the app as ever.
  const ownDataDir = dataDir === undefined && scope === 'system' ? null : config.dataDir
  const files = unitFiles({
    scope,
    name,
    node: process.execPath,
    script,
    // What is looked up at each start and each deploy is to stay that.
    entry: config.launch ? entry ?? null : config.entry,
    options: [
      ...(configFile === undefined ? [] : ['--config', path.resolve(cwd, configFile)]),
      ...(app === undefined ? [] : ['--app', app]),
      // By which it is addressed, too.
      ...(givenName !== undefined && app === undefined && DECK_NAME.test(givenName) ? ['--name', givenName] : []),
      ...Object.entries(rest).flatMap(([key, value]) => flagOf(/** @type {Option} */ (OPTIONS.find((option) => option.key === key)), value, cwd)),
      ...(keeper === false ? ['--no-keeper'] : []),
      // The journal collects what the service writes, so the workers' output belongs there; unless somebody has decided.
      ...(originOf(config, 'logs.mirror') === null ? ['--logs-mirror', 'on'] : [])
    ],
    args: args ?? [],
    cwd,
    user: scope === 'system' ? userOf(user) : noUser(user),
    dataDir: ownDataDir,
    sockets: sockets.map(checkedSocket),
    dependsOn: await dependenciesOf(app, configFile, cwd),
    notifyReload,
    config
  })
  return { name, files, config, dataDir: ownDataDir ?? path.join(STATE_FOLDER, name) }
}

/** @param {string | undefined} app @param {string | undefined} configFile @param {string} cwd @returns {Promise<readonly string[]>} */
async function dependenciesOf (app, configFile, cwd) {
  const found = app === undefined ? null : await readConfigFile(configFile, cwd)
  return found?.values.apps === undefined ? [] : appsOf(found).get(String(app))?.dependsOn ?? []
}

/** @param {unknown} scope @returns {Scope} @throws {DeckError} usage */
export function checkedScope (scope) {
  if (SCOPES.includes(/** @type {string} */ (scope))) return /** @type {Scope} */ (scope)
  throw new DeckError('usage', `--scope: expected one of "system", "user", received ${JSON.stringify(scope)}`)
}

/** @param {string | undefined} given @param {Pick<import('../config/config.js').Config, 'entry' | 'cwd' | 'launch'>} config @returns {string} what its units are called @throws {DeckError} usage */
export function serviceName (given, config) {
  return checkedName(given ?? nameOf(config))
}

/** @param {Option} option @param {string} value @param {string} cwd @returns {string[]} */
function flagOf ({ flag, kind }, value, cwd) {
  return kind === 'switch' ? [flag] : [flag, kind === 'path' ? path.resolve(cwd, value) : value]
}

/** The app's name: that of its package, else of its file. @param {Pick<import('../config/config.js').Config, 'entry' | 'cwd' | 'launch'>} config */
function nameOf ({ entry, cwd, launch }) {
  const name = packageName(launch ? cwd : path.dirname(entry)) ?? path.parse(entry).name
  return name.replace(/^@/, '').replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '') || 'app'
}

/** @param {string} folder @returns {string | null} of the nearest package.json from here upwards */
function packageName (folder) {
  try {
    const { name } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8').replace(/^\uFEFF/, ''))
    if (typeof name === 'string' && name !== '') return name
  } catch {
    // None here, or none that can be read.
  }
  return path.dirname(folder) === folder ? null : packageName(path.dirname(folder))
}

/** @param {string} name */
function checkedName (name) {
  if (/^\w[\w.-]{0,200}$/.test(name)) return name
  throw new DeckError('usage', `--name: expected a name of letters, digits and . _ -, received ${JSON.stringify(name)}`)
}

/**
 * Who the service runs as: whoever asks, unless that is root, as which no app should run by oversight.
 * @param {string | undefined} user
 */
function userOf (user) {
  if (user === undefined) return userId() === 0 ? null : userName()
  if (/^[a-z_][\w.-]{0,30}$/i.test(user) || /^\d{1,9}$/.test(user)) return user
  throw new DeckError('usage', `--user: expected the name or number of a user, received ${JSON.stringify(user)}`)
}

/** @param {string | undefined} user */
function noUser (user) {
  if (user === undefined) return null
  throw new DeckError('usage', `--user: expected nothing with --scope user, where a service runs as the user whose service manager it is, received ${JSON.stringify(user)}`)
}

/** @param {string} text a port, an address with one, or the path of a Unix socket; ListenStream= reads it the same way */
function checkedSocket (text) {
  const [, host, port] = /^(?:([\d.]+|\[[\da-f:.]+\]):)?(\d{1,5})$/i.exec(text) ?? []
  const isPort = Number(port) >= 1 && Number(port) <= 65535
  const isHost = host === undefined || net.isIP(host.replace(/^\[|\]$/g, '')) > 0
  if ((isPort && isHost) || path.isAbsolute(text)) return text
  throw new DeckError('usage', `--socket: expected a port, an address such as 127.0.0.1:3000 or [::1]:3000, or an absolute path, received ${JSON.stringify(text)}`)
}
