import { isFinished, isOccupied, isVacant } from './slot.ts'
import { describeRollout } from './rollout/record.ts'
import { runtimeOf, shownRelease, type Finished, type Holds, type PoolState, type Slot, type Worker } from './state.ts'

/** The state as API, views and command line show it. The cluster adds what only it knows: ports and vitals. */
export function snapshotOf (state: PoolState) {
  const rowOf = (row: ReturnType<typeof workerRow>) => ({ ...row, runtime: runtimeOf(state, row.release) })
  const workers = Object.values(state.workers).flatMap((worker) =>
    worker.slot === null ? [] : [workerRow(worker, worker.slot, state.slots[worker.slot - 1])]
  )
  // While all workers stop, an empty slot waits for none.
  const isQueued = (slot: Slot) =>
    PHASES[state.phase] !== 'stopping' && isVacant(slot) && !isOccupied(state, slot.number)
  const backoffs = state.slots.filter((slot) => slot.retryAt !== null || isFinished(slot) || isQueued(slot)).map(
    waitingRow
  )
  return { state: PHASES[state.phase], desiredWorkers: state.slots.length, readyWorkers: servedSlots(state).size,
    finishedWorkers: state.slots.filter((slot) => isFinished(slot) && slot.finished?.succeeded).length,
    release: shownRelease(state.release), rollout: state.rollout && describeRollout(state.rollout),
    upgrade: state.upgrade &&
      { startedAt: state.upgrade.startedAt, actor: state.upgrade.actor, note: state.upgrade.note },
    standby: standbyOf(state),
    workers: [...workers, ...backoffs].map(rowOf).sort((a, b) =>
      a.slot - b.slot || Number(a.keptUntil !== null) - Number(b.keptUntil !== null) ||
      (a.id ?? Infinity) - (b.id ?? Infinity)
    ) }
}

/** @returns releases that a worker runs, or would run after a rollback */
export function releasesInUse ({ release, slots, workers, rollout }: PoolState): string[] {
  const ofRollout = rollout ? [rollout.from, rollout.to, ...rollout.steps.map(({ from }) => from)] : []
  return [...new Set([release.id, ...[...slots, ...Object.values(workers)].map((each) => each.release), ...ofRollout])]
    .filter((id) => id !== null)
}

/** @returns those that their own worker serves, or an older one that goes once that is ready */
function servedSlots ({ slots, workers }: PoolState): Set<number> {
  const served = Object.values(workers).flatMap(({ id, slot: number, state }) => {
    const slot = number === null ? undefined : slots[number - 1]
    return slot && state === 'ready' && (id !== slot.candidate || slot.serving === null) ? [slot.number] : []
  })
  return new Set(served)
}

/** A worker that was forked without a slot writes its output to this log. */
export const STANDBY_LOG = 0

const PHASES: Record<PoolState['phase'], 'starting' | 'running' | 'stopping'> = { idle: 'starting',
  starting: 'starting', running: 'running', stopping: 'stopping', stopped: 'stopping' }

/** @returns the standby workers, as others see them */
function standbyOf ({ options, standby, release, workers }: PoolState) {
  const own = Object.values(workers).filter(({ slot }) => slot === null)
  return { wanted: options.standby ?? 0, ready: own.filter(({ state }) => state === 'standby').length,
    problem: standby.useless?.release === release.id ? standby.useless.reason : null,
    workers: own.map(({ id, pid, state, release, startedAt }) => ({ id, pid, state, release, startedAt })) }
}

function workerRow (
  { id, pid, state, release, startedAt, readyAt, orphan, hasStoodBy = false, drift = null, holds, keptUntil, statusText,
    socketNotes = [] }: Worker,
  number: number,
  slot?: Slot
) {
  return { id: id as number | null, slot: number, pid, state: state as string, release,
    startedAt: startedAt as string | null, readyAt, statusText: statusText ?? null, socketNotes,
    orphan: orphan !== null, drifted: drift !== null, driftedSince: drift?.since ?? null,
    logSlot: hasStoodBy ? STANDBY_LOG : number, restarts: slot?.restarts ?? 0,
    crashLooping: slot?.record.crashLooping ?? false, retryAt: null as string | null,
    holds: holds && state === 'draining' ? countsOf(holds) : null,
    keptUntil: (state === 'draining' && keptUntil) || null, finished: null as Finished | null }
}

function countsOf ({ at: _, ...counts }: NonNullable<Worker['holds']>): Holds {
  return counts
}

function waitingRow (slot: Slot): ReturnType<typeof workerRow> {
  const { number, release, restarts, record, retryAt, blocked, finished } = slot
  return { id: null, slot: number, pid: null,
    state: isFinished(slot) ? 'finished' : blocked ? 'held' : retryAt === null ? 'queued' : 'backoff', release,
    startedAt: null, readyAt: null, statusText: null, socketNotes: [], orphan: false, drifted: blocked !== null,
    driftedSince: blocked?.since ?? null, logSlot: number, restarts, crashLooping: record.crashLooping, retryAt,
    holds: null, keptUntil: null, finished: isFinished(slot) ? finished : null }
}
