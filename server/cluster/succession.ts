import { isFinished } from '../lifecycle/slot.ts'
import type { Finished, PoolState, Release } from '../lifecycle/state.ts'
import type { Guard } from '../lifecycle/rollout/guard.ts'
import type { Exit } from '../keeper/link.ts'
import type { SavedWorker, createAdoption } from './adoption.ts'
import type { Cluster } from './cluster.ts'
import type { OrphanIdentity } from './orphan-handle.ts'
import type { PoolSockets } from './pool-sockets.ts'

/** How this master begins, or goes on with the cluster of another one, and leaves it to the next one. */
export function createSuccession (cluster: Cluster,
  { adopt, sockets, close }: { adopt: ReturnType<typeof createAdoption>, sockets: PoolSockets, close: () => void })
{
  const { handles, receive } = cluster

  return {
    start (
      { workers, left = [], finished = {}, sockets: before = [], guard = null, hasHook = false, awaitsTurn = null }: {
        /** how many */
        workers: number,
        /** workers of a master that has died, from its checkpoint */
        left?: SavedWorker[],
        /** slots whose program had ended by then */
        finished?: Record<number, Finished>,
        /** the names of its sockets */
        sockets?: string[],
        /** of that master */
        guard?: Guard | null,
        /** hooks.beforeStart has to pass first */
        hasHook?: boolean,
        /** why takeTurn() has to be called first */
        awaitsTurn?: string | null
      }
    ) {
      sockets.expect(before)
      receive({ type: 'start', workers, guard, finished, hasHook, awaitsTurn, orphans: left.map(adopt),
        actor: 'system' })
    },

    /**
     * Workers may start now. `release`: what is known of it by now; `hasHook`: hooks.beforeStart has to pass
     * first.
     */
    takeTurn (how: { release?: Release, hasHook?: boolean } = {}) {
      receive({ type: 'turn-came', ...how })
    },

    /** What the next master needs to continue if this one dies. */
    memory: () =>
      toCheckpoint(cluster.state, { identityOf: (worker) => handles.get(worker)?.identity, sockets: sockets.names() }),

    /** Makes this the only master, once its workers run beside those of the last one. */
    takeOver ({ left, nextWorker, guard }: { left: SavedWorker[], nextWorker: number, guard: Guard | null }) {
      sockets.takeOver()
      for (const handle of handles.values()) handle.tell({ type: 'outlive' })
      receive({ type: 'take-over', orphans: left.map(adopt), nextWorker, guard })
    },

    /** This master does not take over: its workers drain, and the sockets stay with the other master. */
    abandon () {
      sockets.leave()
      receive({ type: 'stop', actor: 'system', cause: 'rollback' })
    },

    /** The next master has started one of its workers. */
    nextForks () {
      receive({ type: 'next-forks' })
    },

    nextFailing (reason: string) {
      receive({ type: 'next-failing', reason })
    },

    /** The next master has ended. `left`: its workers that may live on. */
    nextGone (
      { reason, left, lastWorker }: { reason: string, left: Omit<SavedWorker, 'state'>[], lastWorker: number }
    ) {
      receive({ type: 'next-gone', reason, lastWorker,
        orphans: left.map((worker) => adopt({ ...worker, state: 'draining' })) })
    },

    /** Leaves the cluster to the next master. */
    handOver () {
      receive({ type: 'hand-over' })
      sockets.leave()
    },

    /**
     * The workers serve on by themselves, as after the death of this master, for whoever goes on with this cluster: in
     * this process, where something here has failed, or in another one. Nothing is done here any more. `how`: another
     * process has the sockets. Returns how those end that are children of this process.
     */
    letGo ({ hasMoved = false }: { hasMoved?: boolean } = {}): Promise<Exit>[] {
      cluster.isLetGo = true
      close()
      hasMoved ? sockets.leave() : sockets.letGo()
      return [...handles.values()].map((handle) => handle.letGo()).filter((exit) => exit !== undefined)
    },

    /** `exit`: of a process that was no child of this one */
    reaped ({ pid, code, signal }: Exit) {
      for (const handle of handles.values()) {
        if (handle.identity?.pid === pid && 'leave' in handle) handle.leave({ code, signal })
      }
    }
  }
}

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
