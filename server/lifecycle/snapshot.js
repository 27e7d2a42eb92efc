import { isFinished } from './finished.js'
import { describeRollout } from './rollout/record.js'
import { runtimeOf, shownRelease } from './state.js'
import { isOccupied, isVacant } from './vacancy.js'

/**
 * The state as API, views and command line show it. The cluster adds what only it knows: ports and vitals.
 * @param {import('./state.js').PoolState} state
 */
export function snapshotOf (state) {
  const rowOf = (/** @type {ReturnType<typeof workerRow>} */ row) => ({ ...row, runtime: runtimeOf(state, row.release) })
  const workers = Object.values(state.workers).flatMap((worker) => worker.slot === null ? [] : [workerRow(worker, worker.slot, state.slots[worker.slot - 1])])
  // While all workers stop, an empty slot waits for none.
  const isQueued = (/** @type {import('./state.js').Slot} */ slot) => PHASES[state.phase] !== 'stopping' && isVacant(slot) && !isOccupied(state, slot.number)
  const backoffs = state.slots.filter((slot) => slot.retryAt !== null || isFinished(slot) || isQueued(slot)).map(waitingRow)
  return {
    state: PHASES[state.phase],
    desiredWorkers: state.slots.length,
    readyWorkers: servedSlots(state).size,
    finishedWorkers: state.slots.filter((slot) => isFinished(slot) && slot.finished?.succeeded).length,
    release: shownRelease(state.release),
    rollout: state.rollout && describeRollout(state.rollout),
    upgrade: state.upgrade && { startedAt: state.upgrade.startedAt, actor: state.upgrade.actor, note: state.upgrade.note },
    standby: standbyOf(state),
    workers: [...workers, ...backoffs].map(rowOf).sort((a, b) => a.slot - b.slot || Number(a.keptUntil !== null) - Number(b.keptUntil !== null) || (a.id ?? Infinity) - (b.id ?? Infinity))
  }
}

/** @param {import('./state.js').PoolState} state @returns {string[]} releases that a worker runs, or would run after a rollback */
export function releasesInUse ({ release, slots, workers, rollout }) {
  const ofRollout = rollout ? [rollout.from, rollout.to, ...rollout.steps.map(({ from }) => from)] : []
  return [...new Set([release.id, ...[...slots, ...Object.values(workers)].map((each) => each.release), ...ofRollout])].filter((id) => id !== null)
}

/** @param {import('./state.js').PoolState} state @returns {Set<number>} those that their own worker serves, or an older one that goes once that is ready */
function servedSlots ({ slots, workers }) {
  const served = Object.values(workers).flatMap(({ id, slot: number, state }) => {
    const slot = number === null ? undefined : slots[number - 1]
    return slot && state === 'ready' && (id !== slot.candidate || slot.serving === null) ? [slot.number] : []
  })
  return new Set(served)
}

/** A worker that was forked without a slot writes its output to this log. */
export const STANDBY_LOG = 0

/** @type {Record<import('./state.js').PoolState['phase'], 'starting' | 'running' | 'stopping'>} */
const PHASES = { idle: 'starting', starting: 'starting', running: 'running', stopping: 'stopping', stopped: 'stopping' }

/** @param {import('./state.js').PoolState} state @returns the standby workers, as others see them */
function standbyOf ({ options, standby, release, workers }) {
  const own = Object.values(workers).filter(({ slot }) => slot === null)
  return {
    wanted: options.standby ?? 0,
    ready: own.filter(({ state }) => state === 'standby').length,
    problem: standby.useless?.release === release.id ? standby.useless.reason : null,
    workers: own.map(({ id, pid, state, release, startedAt }) => ({ id, pid, state, release, startedAt }))
  }
}

/** @param {import('./state.js').Worker} worker @param {number} number @param {import('./state.js').Slot} [slot] */
function workerRow ({ id, pid, state, release, startedAt, readyAt, orphan, hasStoodBy = false, drift = null, holds, keptUntil, statusText, socketNotes = [] }, number, slot) {
  return {
    /** @type {number | null} */ id,
    slot: number,
    pid,
    /** @type {string} */ state,
    release,
    /** @type {string | null} */ startedAt,
    readyAt,
    statusText: statusText ?? null,
    socketNotes,
    orphan: orphan !== null,
    drifted: drift !== null,
    driftedSince: drift?.since ?? null,
    logSlot: hasStoodBy ? STANDBY_LOG : number,
    restarts: slot?.restarts ?? 0,
    crashLooping: slot?.record.crashLooping ?? false,
    /** @type {string | null} */ retryAt: null,
    /** @type {import('./state.js').Holds | null} */ holds: holds && state === 'draining' ? countsOf(holds) : null,
    /** @type {string | null} */ keptUntil: (state === 'draining' && keptUntil) || null,
    /** @type {import('./state.js').Finished | null} */ finished: null
  }
}

/** @param {NonNullable<import('./state.js').Worker['holds']>} holds @returns {import('./state.js').Holds} */
function countsOf ({ at: _, ...counts }) {
  return counts
}

/** @param {import('./state.js').Slot} slot @returns {ReturnType<typeof workerRow>} */
function waitingRow (slot) {
  const { number, release, restarts, record, retryAt, blocked, finished } = slot
  return {
    id: null,
    slot: number,
    pid: null,
    state: isFinished(slot) ? 'finished' : blocked ? 'held' : retryAt === null ? 'queued' : 'backoff',
    release,
    startedAt: null,
    readyAt: null,
    statusText: null,
    socketNotes: [],
    orphan: false,
    drifted: blocked !== null,
    driftedSince: blocked?.since ?? null,
    logSlot: number,
    restarts,
    crashLooping: record.crashLooping,
    retryAt,
    holds: null,
    keptUntil: null,
    finished: isFinished(slot) ? finished : null
  }
}
