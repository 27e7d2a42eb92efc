import { DeckError } from '../errors.ts'
import { hostFolder } from '../system/host-folder.ts'
import { userName } from '../system/user.ts'
import { hostUnitFiles } from '../systemd/host-unit.ts'
import { findHost } from './host.ts'
import { splitFlags } from './host-start.ts'
import { noUser, userOf } from './systemd.ts'
import type { Scope, UnitFile } from '../systemd/unit.ts'
import type { Terminal } from './program.ts'

/** The name of the unit of a host. */
export const HOST_UNIT = 'clusterdeck'

/**
 * Tells whether somebody who names no entry means the host: nothing is said about an app.
 * @param options of `install`, without those of the installation
 */
export async function isAboutHost ({ entry, scope, user, ...flags }: Record<string, unknown>,
  { cwd }: { cwd: string })
{
  if (entry !== undefined) return false
  const { flags: ofApp } = await splitFlags(flags, cwd)
  return Object.keys(ofApp).length === 0
}

/**
 * Makes the unit with which systemd runs the host.
 * @throws {DeckError} usage, invalid-config
 */
export async function hostService ({ scope, user, ...flags }: Record<string, unknown> & { scope: Scope, user?: string },
  { env, cwd, script }: Terminal): Promise<{ name: string, files: UnitFile[] }>
{
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

/** @throws {DeckError} master-running */
export function checkNoHost (env: Terminal['env']) {
  const host = findHost(env)
  if (host === null) return
  const { pid } = host.recipient?.processes[0] ?? {}
  throw new DeckError('master-running',
    `the host (pid ${pid}) already runs: first run "clusterdeck down --all"; the unit brings its apps back`)
}
