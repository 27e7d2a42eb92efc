import { isFinished } from '../lifecycle/finished.js'

/**
 * What another master needs to continue with this cluster.
 * @param {import('../lifecycle/state.js').PoolState} state
 * @param {{ identityOf: (worker: number) => import('./orphan-handle.js').OrphanIdentity | null | undefined, sockets: string[] }} shell
 */
export function toCheckpoint ({ release, bootCost, guard, addresses, slots, nextWorker, nextRollout, upgrade, workers }, { identityOf, sockets }) {
  const finished = Object.fromEntries(slots.filter(isFinished).map((slot) => [slot.number, slot.finished]))
  const saved = Object.values(workers)
    .map(({ forkedAt, ...worker }) => ({ ...worker, identity: identityOf(worker.id) }))
    // A worker whose fork is not on record ends with this master, as a standby worker does.
    .filter(({ pid, identity, slot }) => pid !== null && identity && slot !== null)
  const firstOfNext = upgrade?.firstWorker ?? null
  return { desiredWorkers: slots.length, release, bootCost, guard, addresses, finished, nextWorker, nextRollout, firstOfNext, sockets, workers: saved }
}
