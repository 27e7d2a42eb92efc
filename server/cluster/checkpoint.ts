import { isFinished } from '../lifecycle/finished.ts'
import type { PoolState } from '../lifecycle/state.ts'
import type { OrphanIdentity } from './orphan-handle.ts'

/** What another master needs to continue with this cluster. */
export function toCheckpoint ({ bootCost, guard, addresses, nextWorker, nextRollout, upgrade, workers }: PoolState,
  { identityOf, sockets }: { identityOf: (worker: number) => OrphanIdentity | null | undefined, sockets: string[] })
{
  const saved = Object.values(workers).map(({ forkedAt, ...worker }) => ({ ...worker,
    identity: identityOf(worker.id) })
  ) // A worker whose fork is not on record ends with this master, as a standby worker does.
    .filter(({ pid, identity, slot }) => pid !== null && identity && slot !== null)
  const firstOfNext = upgrade?.firstWorker ?? null
  return { bootCost, guard, addresses, nextWorker, nextRollout, firstOfNext, sockets, workers: saved }
}

/** What any next start goes on with, also after an orderly end. */
export function whatRuns ({ release, slots }: PoolState) {
  return { release, workers: slots.length,
    finished: Object.fromEntries(
      slots.flatMap((slot) => isFinished(slot) && slot.finished ? [[slot.number, slot.finished]] : [])
    ) }
}
