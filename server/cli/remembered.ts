import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '../config/is-object.ts'
import { DeckError } from '../errors.ts'
import { hostFolder } from '../system/host-folder.ts'
import { readJson } from '../system/json-file.ts'
import { findHost } from './host.ts'

/** `stopped`: by somebody, so a host does not bring it back */
export type RememberedApp = { name: string, dataDir: string, cwd: string | null, configFile: string | null,
  state: 'not running' | 'stopped' }

/**
 * The apps that the host of this user remembers while it does not run.
 * @returns by name; none where a host runs, which tells of its apps itself
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
export function rememberedApps (env: Record<string, string | undefined>): RememberedApp[] {
  return findHost(env) === null ? listedApps(env) : []
}

/**
 * The apps on the list that the host of this user keeps, whether it runs or not.
 * @returns by name
 * @throws {DeckError} data-dir-unusable
 */
export function listedApps (env: Record<string, string | undefined>): RememberedApp[] {
  const folder = path.join(hostFolder(env), 'apps')
  const records = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  return records.map((name) => readJson(path.join(folder, name))).flatMap(toRemembered).sort((one, other) =>
    one.name < other.name ? -1 : 1
  )
}

/** @returns none: what a newer version has written */
function toRemembered (entry: unknown): RememberedApp[] {
  if (!isObject(entry)) return []
  const { name, dataDir, order, wish } = entry
  if (typeof name !== 'string' || typeof dataDir !== 'string' || !isObject(order)) return []
  return [{ name, dataDir, cwd: textOrNull(order.cwd), configFile: textOrNull(order.config),
    state: wish === 'stopped' ? 'stopped' : 'not running' }]
}

function textOrNull (value: unknown) {
  return typeof value === 'string' ? value : null
}

export function withoutHost ({ name, state }: Pick<RememberedApp, 'name' | 'state'>) {
  const text = state === 'stopped'
    ? 'is stopped, and the host of this user does not run'
    : 'does not run, nor does the host of this user'
  return new DeckError('no-master', `${name} ${text} (clusterdeck start ${name})`)
}

/** How what is remembered comes back. */
export const BRING_BACK =
  'no host of this user runs: "clusterdeck host --detach" starts it, with the apps that are not stopped'
