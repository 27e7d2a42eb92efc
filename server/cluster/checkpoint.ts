import { isFinished } from '../lifecycle/finished.ts'
import type { PoolState } from '../lifecycle/state.ts'
import type { OrphanIdentity } from './orphan-handle.ts'

/** What another master needs to continue with this cluster. */
export function toCheckpoint (
  { release, bootCost, guard, addresses, slots, nextWorker, nextRollout, upgrade, workers }: PoolState,
  { identityOf, sockets }: { identityOf: (worker: number) => OrphanIdentity | null | undefined, sockets: string[] }
) {
  const finished = Object.fromEntries(slots.filter(isFinished).map((slot) => [slot.number, slot.finished]))
  const saved = Object.values(workers).map(({ forkedAt, ...worker }) => ({ ...worker,
    identity: identityOf(worker.id) })
  ) // A worker whose fork is not on record ends with this master, as a standby worker does.
    .filter(({ pid, identity, slot }) => pid !== null && identity && slot !== null)
  const firstOfNext = upgrade?.firstWorker ?? null
  return { desiredWorkers: slots.length, release, bootCost, guard, addresses, finished, nextWorker, nextRollout,
    firstOfNext, sockets, workers: saved }
}
