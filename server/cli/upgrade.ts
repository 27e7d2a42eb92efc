import path from 'node:path'
import { DeckError } from '../errors.ts'
import { waitUntil } from './wait-until.ts'
import type { Context } from './commands.ts'
import type { Event } from '../api/events.ts'
import type { Status } from '../api/cluster.ts'
import type { Host } from '../api/host.ts'

/** of a master; `failure`: the newest one */
type Look = { master: Pick<Host, 'pid' | 'version' | 'nodeVersion'>, isRunning: boolean,
  failure: { key: string | number, message: string } | null }

/** Upgrades the host, with all of its apps, or a deck of its own. */
export async function upgradeCommand ({ api, master: { below }, options, answer, tell, timeoutMs }: Context) {
  const look = below ? () => lookAtHost(api) : () => lookAtDeck(api)
  const before = await look()
  const started = await api.post('/upgrade', {
    execPath: options.node === undefined ? undefined : path.resolve(options.node),
    note: options.note
  })
  if (!options.wait) {
    answer(started, () => 'upgrade started')
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
  answer(master, () => `upgraded to clusterdeck ${master.version} on Node ${master.nodeVersion} (pid ${master.pid})`)
}

async function lookAtHost (api: Context['api']): Promise<Look> {
  const { upgrade, upgradeFailure, ...master } = await api.get<Host>('')
  return { master, isRunning: upgrade !== null,
    failure: upgradeFailure && { key: upgradeFailure.at, message: upgradeFailure.message } }
}

async function lookAtDeck (api: Context['api']): Promise<Look> {
  const { master, upgrade } = await api.get<Status>('/status')
  const { items: [newest] } = await api.get<{ items: Event[] }>('/events?type=master.upgrade-failed&limit=1').catch(
    noneIfUnreadable
  )
  return { master, isRunning: upgrade !== null,
    failure: newest ? { key: newest.id, message: String(newest.message) } : null }
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
