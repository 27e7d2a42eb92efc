import { blankRecord } from './restart-policy.js'

/**
 * @typedef {object} LifecycleOptions  durations in ms
 * @property {{ signal: 'listening' | 'message' | 'online', timeoutMs: number, path?: string, warmup?: readonly string[] }} ready
 * @property {{ idleGraceMs: number, deadlineMs: number }} drain
 * @property {{ termGraceMs: number }} stop
 * @property {{ graceMs: number }} crash
 * @property {import('./restart-policy.js').RestartPolicy} restart
 * @property {{ maxAgeMs: number }} [recycle]  0: never
 */

/** @typedef {{ id: string, entry: string, path: string, createdAt: string }} Release */

/**
 * Why the master means a worker to end; recorded before anything is done about it.
 * `actor`: null where nobody means it and it goes by itself.
 * @typedef {{ cause: string, actor: string | null, rollout: number | null, message?: string }} Intent
 */

/**
 * @typedef {object} Worker
 * @property {number} id  that of node:cluster, never used again
 * @property {number} slot
 * @property {import('./worker-state.js').WorkerState} state
 * @property {string} release
 * @property {number | null} pid
 * @property {number} forkedAt  monotonic ms
 * @property {string} startedAt  wall time, ISO 8601
 * @property {string | null} readyAt  wall time, ISO 8601
 * @property {Intent | null} intent
 * @property {{ cause: string, message: string } | null} [due]  why it is to be recycled as soon as nothing else goes on
 * @property {string} [probed]  why its app was not ready when it was last asked
 * @property {OrphanCause | null} orphan  left behind by another master; it serves, and belongs to no slot any more
 */

/** @typedef {'master-lost' | 'upgrade'} OrphanCause why it has another master now */

/**
 * What another master has left behind of a worker. `exit`: it is known to have ended, and how as far as that is known.
 * @typedef {Pick<Worker, 'id' | 'slot' | 'pid' | 'release' | 'startedAt' | 'readyAt' | 'intent'> & { orphan: OrphanCause, state: 'starting' | 'ready' | 'draining' | 'stopping', exit: { code: number | null, signal: string | null, error?: CrashNote | null } | null }} Orphan
 */

/**
 * A slot is stable, its worker changes. `serving` holds the slot (and is replaced when it dies); `candidate` is to take
 * it over in a rollout. Workers that drain belong to no slot any more.
 * @typedef {object} Slot
 * @property {number} number  1…N
 * @property {string} release  what a replacement runs
 * @property {number | null} serving
 * @property {number | null} candidate
 * @property {string | null} retryAt  wall time of the next try while it waits out a backoff
 * @property {number} restarts  replacements of dead workers since the master started
 * @property {import('./restart-policy.js').RestartRecord} record
 */

/**
 * A change of masters that is under way. `execPath`: of the next one's node, null: the same; `firstWorker`: the first
 * id that is the next one's to give; `reason`: why it will fail.
 * @typedef {{ startedAt: string, actor: string, note: string | null, execPath: string | null, firstWorker: number, reason: string | null }} Upgrade
 */

/** @typedef {'pending' | 'starting' | 'ready' | 'draining' | 'done' | 'failed' | 'reverting' | 'reverted'} StepState */

/**
 * @typedef {object} RolloutStep
 * @property {number} slot
 * @property {StepState} state
 * @property {number | null} oldWorker
 * @property {number | null} newWorker
 * @property {string} from  the release to which this slot goes back
 * @property {string | null} startedAt
 * @property {string | null} finishedAt
 */

/**
 * @typedef {object} Rollout
 * @property {number} id
 * @property {'restart' | 'deploy'} kind
 * @property {'rolling' | 'aborting' | 'succeeded' | 'failed'} state
 * @property {string} from
 * @property {string} to
 * @property {string} actor
 * @property {string | null} note
 * @property {number} surge  how many slots are replaced at a time
 * @property {string} startedAt
 * @property {string | null} finishedAt
 * @property {boolean} done
 * @property {string | null} reason
 * @property {{ total: number, replaced: number }} progress
 * @property {RolloutStep[]} steps
 */

/**
 * @typedef {object} PoolState
 * @property {'idle' | 'starting' | 'running' | 'stopping' | 'stopped'} phase
 * @property {LifecycleOptions} options
 * @property {Slot[]} slots  ascending by number
 * @property {Record<number, Worker>} workers  all that live, by id
 * @property {Rollout | null} rollout
 * @property {Upgrade | null} upgrade
 * @property {import('./recycling.js').Recycling | null} recycling
 * @property {Release} release  the one that was deployed last with success
 * @property {Record<string, Release>} releases
 * @property {number} nextWorker
 * @property {number} nextRollout
 * @property {number} nextRelease
 */

/**
 * @typedef {{ at: number, time: number, random: number }} Stamp  monotonic ms, wall ms since the epoch, [0, 1)
 */

/**
 * Inputs: what an operator or the master wants (imperative), and what has happened outside (past tense).
 * @typedef {Stamp & ({ type: 'start', workers: number, isNewRelease?: boolean, orphans?: Orphan[], actor: string }
 *   | { type: 'scale', workers: number, actor: string }
 *   | { type: 'rollout', kind: 'restart' | 'deploy', release?: Omit<Release, 'id' | 'createdAt'>, slots?: number[], note?: string | null, actor: string }
 *   | { type: 'restart-worker', worker: number, actor: string }
 *   | { type: 'kill-worker', worker: number, actor: string }
 *   | { type: 'stop', actor: string, cause?: 'shutdown' | 'rollback' }
 *   | { type: 'upgrade', execPath: string | null, note?: string | null, actor: string }
 *   | { type: 'next-failing', reason: string }
 *   | { type: 'next-gone', reason: string, lastWorker: number, orphans: Orphan[] }
 *   | { type: 'hand-over' }
 *   | { type: 'take-over', orphans: Orphan[], nextWorker: number }
 *   | { type: 'address-blocked' }
 *   | { type: 'worker-forked', worker: number, pid: number | null }
 *   | { type: 'worker-online', worker: number }
 *   | { type: 'worker-listening', worker: number, address: string }
 *   | { type: 'worker-probed', worker: number, text: string }
 *   | { type: 'worker-ready', worker: number, probe?: string, warmupFailed?: string | null }
 *   | { type: 'worker-drained', worker: number }
 *   | { type: 'worker-silent', worker: number, message: string }
 *   | { type: 'worker-answered', worker: number }
 *   | { type: 'stack-captured', worker: number }
 *   | { type: 'worker-due', worker: number, cause: 'memory-limit' | 'max-requests', message: string }
 *   | { type: 'worker-crashing', worker: number, errorName: string, errorMessage: string }
 *   | { type: 'worker-exited', worker: number, code: number | null, signal: string | null, error?: CrashNote | null, isOutOfMemory?: boolean }
 *   | { type: 'deadline-passed', deadline: DeadlineKind, id: number })} Input
 *
 * @typedef {{ errorName: string, errorMessage: string, stack: string | null }} CrashNote
 * @typedef {'ready' | 'drain' | 'term' | 'steady' | 'stack' | 'age' | 'retry' | 'upgrade' | 'recycle'} DeadlineKind  `id` is a worker's, for 'retry' a slot's, for 'upgrade' and 'recycle' 0
 */

/**
 * @typedef {{ type: 'fork', worker: number, slot: number, release: Release }
 *   | { type: 'drain', worker: number, idleGraceMs: number }
 *   | { type: 'terminate', worker: number }
 *   | { type: 'kill', worker: number }
 *   | { type: 'capture-stack', worker: number }
 *   | { type: 'set-deadline', deadline: DeadlineKind, id: number, ms: number }
 *   | { type: 'clear-deadline', deadline: DeadlineKind, id: number }
 *   | { type: 'close-sockets' }
 *   | { type: 'expire-unused-sockets' }
 *   | { type: 'start-next', execPath: string | null }
 *   | { type: 'cancel-next' }
 *   | { type: 'finish' }} Command
 */

/** @typedef {{ type: string } & Record<string, any>} Fact  an event without id and time, see server/event-stream.js */

/** @typedef {{ code: 'rollout-running' | 'upgrade-running' | 'starting' | 'stopping' | 'not-found', message: string, details?: Record<string, unknown> }} Refusal */

/**
 * @param {object} start
 * @param {LifecycleOptions} start.options
 * @param {Omit<Release, 'id' | 'createdAt'> | Release} start.release  one with an id was made by the master before
 * @param {number} start.time  wall, ms since the epoch
 * @param {number} [start.lastRollout]  the highest number already used in this data folder; of releases likewise
 * @param {number} [start.lastRelease]
 * @param {number} [start.nextWorker]
 * @returns {PoolState}
 */
export function createState ({ options, release, time, lastRollout = 0, lastRelease = 0, nextWorker = 1 }) {
  const first = 'id' in release ? release : { id: `r${lastRelease + 1}`, createdAt: new Date(time).toISOString(), ...release }
  return {
    phase: 'idle',
    options,
    slots: [],
    workers: {},
    rollout: null,
    upgrade: null,
    recycling: null,
    release: first,
    releases: { [first.id]: first },
    nextWorker,
    nextRollout: lastRollout + 1,
    // The history may have been damaged and begun anew; the release that goes on keeps its number all the same.
    nextRelease: Math.max(lastRelease, Number(first.id.slice(1))) + 1
  }
}

/** @param {number} number @param {string} release @returns {Slot} */
export function createSlot (number, release) {
  return { number, release, serving: null, candidate: null, retryAt: null, restarts: 0, record: blankRecord() }
}
