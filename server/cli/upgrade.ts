import path from 'node:path'
import { DeckError } from '../errors.ts'
import { waitUntil } from './wait-until.ts'
import type { Context } from './commands.ts'
import type { Host } from '../api/host.ts'

/** Upgrades the host that is meant, with all of its apps. */
export async function upgradeCommand ({ api, options, answer, tell, timeoutMs }: Context) {
  const look = () => api.get<Host>('')
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
    if (seen === null || seen.upgrade !== null) return false
    now = seen
    // The old master may answer for a moment after it has handed over.
    return now.pid !== before.pid || now.upgradeFailure?.at !== before.upgradeFailure?.at
  }, api.signal, timeoutMs)
  const { upgrade: _, upgradeFailure, ...master } = now
  if (now.pid === before.pid)
    throw new DeckError('upgrade-failed', `the upgrade failed: ${upgradeFailure?.message}`)
  answer(master, () => `upgraded to clusterdeck ${now.version} on Node ${now.nodeVersion} (pid ${now.pid})`)
}

/** Between two masters a connection may end without an answer. */
function nullIfNoMaster (error: unknown) {
  if (error instanceof DeckError && error.code === 'no-master') return null
  throw error
}
