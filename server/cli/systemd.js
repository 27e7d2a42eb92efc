import { readFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { DeckError } from '../errors.js'
import { unitFiles } from '../systemd/unit.js'

/** @typedef {import('../config/options.js').Option} Option */

/**
 * Says how systemd is to run an app: `start` with the same options, everything else as the configuration has it.
 * @param {Record<string, any>} options the flags as they were given, `entry` and `args` among them
 * @param {{ cwd: string, script: string }} where `script`: the command line's own file
 * @returns {Promise<string>}
 * @throws {DeckError} usage, invalid-config, unknown-option, entry-not-found
 */
export async function systemdUnits ({ keeper, name, user, socket: sockets = [], notifyReload = false, entry, args, ...flags }, { cwd, script }) {
  const [{ loadConfig, originOf }, { OPTIONS }] = await Promise.all([import('../config/config.js'), import('../config/options.js')])
  // Without the environment of this shell, which the service will not have.
  const config = await loadConfig({ flags: { entry, args, ...flags }, env: {}, cwd })
  const { config: configFile, app, dataDir, ...rest } = flags
  return unitFiles({
    name: checkedName(name ?? app ?? nameOf(config)),
    node: process.execPath,
    script,
    // What is looked up at each start and each deploy is to stay that.
    entry: config.launch ? entry ?? null : config.entry,
    options: [
      ...(configFile === undefined ? [] : ['--config', path.resolve(cwd, configFile)]),
      ...(app === undefined ? [] : ['--app', app]),
      ...Object.entries(rest).flatMap(([key, value]) => flagOf(/** @type {Option} */ (OPTIONS.find((option) => option.key === key)), value, cwd)),
      ...(keeper === false ? ['--no-keeper'] : []),
      // The journal collects what the service writes, so the workers' output belongs there; unless somebody has decided.
      ...(originOf(config, 'logs.mirror') === null ? ['--logs-mirror', 'on'] : [])
    ],
    args: args ?? [],
    cwd,
    user: userOf(user),
    dataDir: dataDir === undefined ? null : config.dataDir,
    sockets: sockets.map(checkedSocket),
    notifyReload,
    config
  })
}

/** @param {Option} option @param {string} value @param {string} cwd @returns {string[]} */
function flagOf ({ flag, kind }, value, cwd) {
  return kind === 'switch' ? [flag] : [flag, kind === 'path' ? path.resolve(cwd, value) : value]
}

/** The app's name: that of its package, else of its file. @param {import('../config/config.js').Config} config */
function nameOf ({ entry, cwd, launch }) {
  const name = packageName(launch ? cwd : path.dirname(entry)) ?? path.parse(entry).name
  return name.replace(/^@/, '').replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '') || 'app'
}

/** @param {string} folder @returns {string | null} of the nearest package.json from here upwards */
function packageName (folder) {
  try {
    const { name } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
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
  if (user === undefined) return os.userInfo().uid === 0 ? null : os.userInfo().username
  if (/^[a-z_][\w.-]{0,30}$/i.test(user) || /^\d{1,9}$/.test(user)) return user
  throw new DeckError('usage', `--user: expected the name or number of a user, received ${JSON.stringify(user)}`)
}

/** @param {string} text a port, an address with one, or the path of a Unix socket; ListenStream= reads it the same way */
function checkedSocket (text) {
  const [, host, port] = /^(?:([\d.]+|\[[\da-f:.]+\]):)?(\d{1,5})$/i.exec(text) ?? []
  const isPort = Number(port) >= 1 && Number(port) <= 65535
  const isHost = host === undefined || net.isIP(host.replace(/^\[|\]$/g, '')) > 0
  if ((isPort && isHost) || path.isAbsolute(text)) return text
  throw new DeckError('usage', `--socket: expected a port, an address such as 127.0.0.1:3000 or [::1]:3000, or an absolute path, received ${JSON.stringify(text)}`)
}
