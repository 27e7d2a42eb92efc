import { DeckError } from '../errors.js'
import { hostFolder } from '../system/host-folder.js'
import { userName } from '../system/user.js'
import { hostUnitFiles } from '../systemd/host-unit.js'
import { findHost } from './host.js'
import { splitFlags } from './host-start.js'
import { noUser, userOf } from './systemd.js'

/** The name of the unit of a host. */
export const HOST_UNIT = 'clusterdeck'

/**
 * Tells whether somebody who names no entry means the host: nothing is said about an app.
 * @param {Record<string, any>} options of `install`, without those of the installation
 * @param {{ cwd: string }} place
 */
export async function isAboutHost ({ entry, scope, user, ...flags }, { cwd }) {
  if (entry !== undefined) return false
  const { flags: ofApp } = await splitFlags(flags, cwd)
  return Object.keys(ofApp).length === 0
}

/**
 * Makes the unit with which systemd runs the host.
 * @param {Record<string, any> & { scope: import('../systemd/unit.js').Scope, user?: string }} options
 * @param {import('./program.js').Terminal} terminal
 * @returns {Promise<{ name: string, files: import('../systemd/unit.js').UnitFile[] }>}
 * @throws {DeckError} usage, invalid-config
 */
export async function hostService ({ scope, user, ...flags }, { env, cwd, script }) {
  const { ofHost } = await splitFlags(flags, cwd)
  // Another user has another folder.
  const isNamed = user === undefined && Boolean(env.CLUSTERDECK_HOST_DIR || env.XDG_STATE_HOME)
  const files = hostUnitFiles({
    scope,
    name: HOST_UNIT,
    node: process.execPath,
    script,
    options: ofHost,
    // systemd tells a service its home, where the list is, only if its user is named.
    user: scope === 'system' ? userOf(user) ?? userName() : noUser(user),
    folder: isNamed ? hostFolder(env) : null
  })
  return { name: HOST_UNIT, files }
}

/** @param {import('./program.js').Terminal['env']} env @throws {DeckError} master-running */
export function checkNoHost (env) {
  const host = findHost(env)
  if (host === null) return
  const { pid } = host.recipient?.processes[0] ?? {}
  throw new DeckError('master-running', `the host (pid ${pid}) already runs: first run "clusterdeck down --all"; the unit brings its apps back`)
}
