import path from 'node:path'
import { DeckError } from '../errors.ts'
import { createApiClient, type ApiClient } from './api-client.ts'
import { createTools } from './context.ts'
import { namesDeck } from './deck-options.ts'
import { timeoutOf } from './duration.ts'
import { findMaster, type Master } from './find-master.ts'
import { expectHost, findHost } from './host.ts'
import { jsonText } from './output.ts'
import { waitUntil } from './wait-until.ts'
import type { Context, Options, Tools } from './commands.ts'
import type { Terminal } from './program.ts'
import type { Event } from '../api/events.ts'
import type { Status } from '../api/cluster.ts'
import type { Host } from '../api/host.ts'

/** of a master */
type Software = { pid: number, version: string, nodeVersion: string }

/** What is upgraded. */
type Upgradable = {
  api: ApiClient,
  /** of the call that begins it */
  path: string,
  /** `failure`: the newest one */
  look: () => Promise<
    { master: Software, isRunning: boolean, failure: { key: string | number, message: string } | null }
  >
}

/** What findMaster() says of a folder that is of no app, of several, or of one of the host that does not run. */
const WITHOUT_MASTER = ['usage', 'app-not-running']

/** Upgrades a deck of its own. */
export async function upgradeCommand (context: Context) {
  const { api } = context
  await changeMasters({ api, path: '/upgrade', async look () {
    const { master, upgrade } = await api.get<Status>('/status')
    const { items: [newest] } = await api.get<{ items: Event[] }>('/events?type=master.upgrade-failed&limit=1').catch(
      noneIfUnreadable
    )
    return { master, isRunning: upgrade !== null,
      failure: newest ? { key: newest.id, message: String(newest.message) } : null }
  } }, context)
}

/** Upgrades the host, with all of its apps, unless a deck of its own is meant. Returns null: that is done. */
export async function upgradeHost (options: Options, terminal: Terminal): Promise<Options | null> {
  const master = await findHostMeant(options, terminal)
  if (master === null) return options
  const { timeoutMs } = timeoutOf(options, terminal.env)
  const findAgain = async () => await findHostMeant(options, terminal) ?? expectHost(terminal.env)
  const api = createApiClient(master, { timeoutMs, findAgain })
  await changeMasters({ api, path: '/host/upgrade', async look () {
    const { upgrade, upgradeFailure, ...software } = await api.get<Host>('/host')
    return { master: software, isRunning: upgrade !== null,
      failure: upgradeFailure && { key: upgradeFailure.at, message: upgradeFailure.message } }
  } }, { ...createTools(options, terminal), options, timeoutMs })
  return null
}

/**
 * The host of the app that is meant, or of this user where no app that runs is meant.
 * @returns null: it is a deck of its own
 * @throws {DeckError} as findMaster() does
 */
async function findHostMeant (options: Options, { env, cwd }: Terminal): Promise<Master | null> {
  try {
    const { app, ...master } = await findMaster(options, { env, cwd })
    return app && { ...master, url: app.hostUrl, app: null }
  } catch (error) {
    const host = error instanceof DeckError && WITHOUT_MASTER.includes(error.code) && !namesDeck(options, env)
      ? findHost(env)
      : null
    if (host === null) throw error
    return host
  }
}

async function changeMasters ({ api, path: place, look }: Upgradable,
  { options, print, tell, timeoutMs }: Pick<Tools, 'print' | 'tell'> & { options: Options, timeoutMs: number })
{
  const before = await look()
  const started = await api.post(place, { execPath: options.node === undefined ? undefined : path.resolve(options.node),
    note: options.note })
  if (!options.wait) {
    print(options.json ? jsonText(started) : 'upgrade started')
    return
  }
  tell('upgrade started: the next master starts its workers')
  let now = before
  await waitUntil(async () => {
    const seen = await look().catch(nullIfNoMaster)
    if (seen === null || seen.isRunning) return false
    now = seen
    // The old master may answer for a moment after it has handed over.
    return now.master.pid !== before.master.pid || now.failure?.key !== before.failure?.key
  }, api.signal, timeoutMs)
  const { master, failure } = now
  if (master.pid === before.master.pid) throw new DeckError('upgrade-failed', `the upgrade failed: ${failure?.message}`)
  print(
    options.json
      ? jsonText(master)
      : `upgraded to clusterdeck ${master.version} on Node ${master.nodeVersion} (pid ${master.pid})`
  )
}

/** An upgrade may be what mends the history. */
function noneIfUnreadable (error: unknown): { items: Event[] } {
  if (error instanceof DeckError && error.code === 'history-unavailable') return { items: [] }
  throw error
}

/** Between two masters a connection may end without an answer. */
function nullIfNoMaster (error: unknown) {
  if (error instanceof DeckError && error.code === 'no-master') return null
  throw error
}
