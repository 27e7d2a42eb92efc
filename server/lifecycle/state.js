import { blankPace } from './recycling.js'
import { createStandby } from './promotion.js'
import { blankRecord } from './restart-policy.js'

/**
 * @typedef {object} LifecycleOptions  durations in ms
 * @property {{ signal: 'auto' | 'listening' | 'message' | 'notify' | 'online', timeoutMs: number, log?: string, path?: string, warmup?: readonly string[], addresses?: 'same' | 'any' }} ready
 * @property {Omit<DrainLimits, 'isLast'> & { maxOldWorkers: number | 'auto' }} drain
 * @property {{ termGraceMs: number, signal: NodeJS.Signals }} stop  `signal`: of Node programs always SIGTERM
 * @property {{ graceMs: number }} crash
 * @property {import('./restart-policy.js').RestartPolicy} restart
 * @property {{ maxAgeMs: number, maxRssBytes?: number, maxRequests?: number }} [recycle]  0: never
 * @property {import('./rollout/strategy.js').StrategyWish & { guardMs?: number }} [rollout]  `guardMs`: how long a release that was deployed is watched; 0: not at all
 * @property {{ onDrift: 'mark' | 'hold' }} [releases]
 * @property {number} [standby]  how many workers are kept beside those of the slots
 * @property {{ first: 'one' | 'all' }} [start]
 */

/**
 * How long a draining worker keeps what it has. Times count from the beginning of the drain, see workers/protocol.js.
 * @typedef {{ idleGraceMs: number, deadlineMs: number, stalledMs: number, longLivedMs: number, spreadMs: number, isLast: boolean }} DrainLimits
 * What it still has: `requests` without the transfers, whose bytes move; `connections`: other long-lived ones; `sessions`: whose requests go on to reach it.
 * @typedef {{ requests: number, transfers: number, webSockets: number, eventStreams: number, connections: number, sessions: number }} Holds
 * The drain itself. `since`: when it began, wall time, ISO 8601; `at`: the same in monotonic ms; `isOver`: the worker was told to end its long-lived
 * connections; `isDoubted`: it says nothing of them any more.
 * @typedef {{ since: string, at: number, limits: DrainLimits, isOver?: boolean, isDoubted?: boolean }} Drain
 */

/**
 * What is deployed: see server/releases/. The lifecycle hands it to each fork as it is, and needs no more of it than the id.
 * @typedef {object} Release
 * @property {string} id  `r<n>`
 * @property {string} entry
 * @property {string} path
 * @property {string} createdAt
 * @property {'live' | 'symlink' | 'path' | 'folder'} [mode]
 * @property {string} [cwd]
 * @property {string} [calledAs]  what its workers see as their entry, where that is a link
 * @property {string | null} [source]  of a copy: the folder that was copied, or the repository that has its commit
 * @property {string | null} [build]  of a release of a commit: what has built it; null: nothing
 * @property {string[]} [args]  not for the eyes of others, as `execArgv`
 * @property {string[]} [execArgv]
 * @property {import('../launch/launch.js').Runtime} [runtime]
 * @property {{ name: string | null, version: string | null } | null} [package]
 * @property {{ commit: string, branch: string | null, isDirty: boolean | null, author?: string | null, subject?: string | null } | null} [git]
 * @property {string | null} [lockFile]
 * @property {{ digest: string, names: string[] }} [environment]  of the variables that the configuration sets
 * @property {{ digest: string }} [arguments]
 * @property {{ from: string, environment: string[], arguments: boolean, package: boolean, commit: boolean, lockFile: boolean, mode: boolean, folder: boolean, entry: boolean } | null} [changed]
 * @property {string} [createdBy]
 * @property {string | null} [note]
 * @property {boolean} [environmentChanged]  its workers get other variables than when it was deployed
 */

/**
 * Why the master means a worker to end; recorded before anything is done about it.
 * `actor`: null where nobody means it and it goes by itself.
 * @typedef {{ cause: string, actor: string | null, rollout: number | null, message?: string }} Intent
 */

/**
 * @typedef {object} Worker
 * @property {number} id  no other worker has it until the deck is stopped
 * @property {number | null} slot  null: it is on standby, and has none yet
 * @property {import('./worker-state.js').WorkerState} state
 * @property {string} release
 * @property {number | null} pid
 * @property {number} forkedAt  monotonic ms; of one that was on standby, when it got its slot
 * @property {string} startedAt  wall time, ISO 8601
 * @property {string | null} readyAt  wall time, ISO 8601
 * @property {Intent | null} intent
 * @property {number} readyTimeoutMs
 * @property {number} [starvedMs]  how much was added to that, as it waited for a CPU for so long
 * @property {boolean} [servesNobody]  it drains, and has never had a connection
 * @property {{ cause: string, message: string, isBlocked?: boolean, soon?: { servedMs: number, rssBytes: number } } | null} [due]  why it is to be recycled as soon as nothing else goes on; `isBlocked`: it has been told that it is not, see drift.js; `soon`: it had hardly served, and may have to wait
 * @property {boolean} [hasStoodBy]  it was on standby before it got its slot
 * @property {Drift | null} [drift]  how the files of its release differed from those of the deploy when it was forked
 * @property {import('./addresses.js').Address[]} addresses  where it listens
 * @property {{ probe?: string, warmupFailed?: string | null }} [report]  it is ready, but does not listen yet where it has to
 * @property {string[]} [resources]  what keeps it running while it does not listen, as Node names it
 * @property {boolean} [isNoServer]  it counts as ready though it has not listened
 * @property {Drain} [drain]
 * @property {Holds & { at: number }} [holds]  `at`: monotonic ms of its report
 * @property {string} [keptUntil]  it is replaced, and is kept for its long-lived connections alone: until then, wall time, ISO 8601
 * @property {'drained' | 'deadline'} [drainEnd]  it has nothing open any more, or was told to end before that
 * @property {boolean} [writesHeap]  it has drained, and writes its heap before it ends
 * @property {string} [killedFor]  why the master has killed it
 * @property {string} [statusText]  what it says of itself, if it does
 * @property {string[]} [socketNotes]  why a program does not share a socket, or not all of it
 * @property {string} [probed]  why its app was not ready when it was last asked
 * @property {OrphanCause | null} orphan  left behind by another master; it serves, and belongs to no slot any more
 */

/**
 * Files of a release were changed in place. `kind`: `code`, a new worker of it runs other code than the deploy; `folder`, other files of its
 * folder have changed, by a later deploy or by the app itself; `unknown`, whether they have is not known. `files`: some of them, those that
 * its workers had loaded by their absolute paths, others from its folder; `since`: when the first of them was written, ISO 8601, null:
 * unknown; `by`: the release that was deployed from the same folder later, if it is known from that alone.
 * @typedef {{ kind: 'code' | 'folder' | 'unknown', count: number, files: string[], since: string | null, by: string | null }} Drift
 */

/** @typedef {'master-lost' | 'upgrade'} OrphanCause why it has another master now */

/**
 * What another master has left behind of a worker. `exit`: it is known to have ended, and how as far as that is known.
 * @typedef {Pick<Worker, 'id' | 'slot' | 'hasStoodBy' | 'pid' | 'release' | 'startedAt' | 'readyAt' | 'intent' | 'drain' | 'holds' | 'keptUntil'> & { addresses?: import('./addresses.js').Address[], orphan: OrphanCause, state: 'starting' | 'ready' | 'draining' | 'stopping', exit: { code: number | null, signal: string | null, error?: CrashNote | null } | null }} Orphan
 */

/**
 * The program of a slot has come to its end, and is not started again by itself (restart.policy).
 * @typedef {{ at: string, worker: number, release: string, cause: string, code: number | null, succeeded: boolean }} Finished  `at`: wall time, ISO 8601; `code`: null where it has none, or none yet; `succeeded`: it has done its work, by its exit code
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
 * @property {Drift | null} blocked  why it waits for a person: its release has drifted; it is looked at again at `retryAt`
 * @property {Finished | null} finished  how its last program has ended; counts while it has no worker
 * @property {number} restarts  replacements of dead workers since the master started
 * @property {import('./restart-policy.js').RestartRecord} record
 */

/**
 * A change of masters that is under way. `execPath`: of the next one's node, null: the same; `firstWorker`: the first
 * id that is the next one's to give; `limitMs`: how long it may take; `reason`: why it will fail.
 * @typedef {{ startedAt: string, actor: string, note: string | null, execPath: string | null, readyWithinMs: number, firstWorker: number, limitMs: number, reason: string | null }} Upgrade
 */

/** @typedef {'pending' | 'stopping' | 'starting' | 'soaking' | 'ready' | 'draining' | 'done' | 'failed' | 'reverting' | 'reverted'} StepState */

/**
 * @typedef {object} RolloutStep
 * @property {number} slot
 * @property {StepState} state
 * @property {number | null} oldWorker
 * @property {number | null} newWorker
 * @property {string} from  the release to which this slot goes back
 * @property {boolean} isCanary  is replaced first, and on trial
 * @property {string | null} startedAt
 * @property {string | null} [readyAt]  its new worker was ready
 * @property {string | null} [promotedAt]  its new worker took the slot over, and the old one began to drain
 * @property {string | null} [drainedAt]  the old worker was gone, or had nothing but long-lived connections
 * @property {string | null} [revertingAt]  since when the slot goes back
 * @property {string | null} finishedAt
 */

/**
 * @typedef {object} Rollout
 * @property {number} id
 * @property {'restart' | 'deploy' | 'rollback'} kind
 * @property {import('./rollout/stages.js').Stage} stage  `rolled-back`: what it had put into service was taken back;
 *   `failed`: it did not come so far, or could not go back everywhere
 * @property {string} from
 * @property {string | null} to  null: not prepared yet
 * @property {string} actor
 * @property {Client | null} [client]  null: nobody asked for it over the admin port
 * @property {string | null} note
 * @property {import('./rollout/strategy.js').Strategy} strategy
 * @property {number} crashes  of workers of the new release
 * @property {Verdict[]} verdicts  oldest first, the last 50
 * @property {Comparison | null} [comparison]  how both sides did when somebody last looked
 * @property {Comparison[]} [comparisons]  how both sides did over its time, oldest first, see record.js
 * @property {Moment[]} [timeline]  what happened to it as a whole, oldest first, the last 100
 * @property {string | null} canaryEndsAt  wall time, ISO 8601
 * @property {string | null} [pausedAt]  wall time since which it is paused or held, ISO 8601
 * @property {number | null} progressDueAt  monotonic ms
 * @property {number | null} progressLeftMs  while it is paused
 * @property {string} startedAt
 * @property {string | null} finishedAt
 * @property {string | null} reason
 * @property {string | null} abortedBy  the operator who has aborted it
 * @property {string[]} warnings  what went wrong without making it fail, the first 20
 * @property {import('./rollout/hook.js').RolloutHook | null} [hook]  what it runs before anything is replaced; null: nothing
 * @property {{ total: number, replaced: number }} progress
 * @property {RolloutStep[]} steps
 * @property {import('./rollout/turn.js').Plan | null} [plan]  while it waits for its turn; null: it has begun
 * @property {string[] | null} [waitingFor]  the apps of its host that come first; null: it need not wait
 */

/**
 * How the new workers did beside the old ones. `passed`: null where there is too little to say.
 * @typedef {{ at: string, passed: boolean | null, isFinal: boolean, message: string, canary: Figures, baseline: Figures }} Verdict
 * @typedef {{ at: string, canary: Figures, baseline: Figures }} Comparison
 * @typedef {{ at: string, type: string, actor: string | null, message: string | null, passed: boolean | null }} Moment  `type`: of its event; `actor`: null where nobody did it;
 *   `passed`: of a verdict, null: it is no verdict, or there was too little to say
 * @typedef {'dashboard' | 'cli' | 'api' | 'agent'} Client  by what somebody asked for it
 * @typedef {{ workers: number, requests: number, errorRate: number | null, p99Ms: number | null }} Figures
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
 * @property {import('./recycling.js').RecyclePace} recyclePace
 * @property {import('./rollout/guard.js').Guard | null} guard
 * @property {import('./standby.js').Standby} standby
 * @property {Record<number, import('./addresses.js').Address[]>} addresses  where the last worker of a slot that was ready has listened
 * @property {boolean} hasListened  some worker has, as far back as anybody knows
 * @property {boolean} hasBeenReady  some worker has, as far back as anybody knows
 * @property {import('./boot-room.js').BootCost | null} bootCost  null: not known
 * @property {number} cpus  that workers can use
 * @property {boolean} awaitsHook  no worker starts before hooks.beforeStart has passed
 * @property {string | null} awaitsTurn  why no worker may start yet, in a sentence: other apps of its host start first, or its secrets are not known
 * @property {Release} release  the one that was deployed last with success
 * @property {Record<string, Release>} releases
 * @property {number} nextWorker
 * @property {number} nextRollout
 */

/**
 * @typedef {{ at: number, time: number, random: number, drift?: Record<string, Drift> }} Stamp  monotonic ms, wall ms
 *   since the epoch, [0, 1), and which releases have drifted, by id, of those that a worker may be forked on
 */

/**
 * Inputs: what an operator or the master wants (imperative), and what has happened outside (past tense).
 * @typedef {Stamp & ({ type: 'start', workers: number, guard?: import('./rollout/guard.js').Guard | null, orphans?: Orphan[], finished?: Record<number, Finished>, hasHook?: boolean, awaitsTurn?: string | null, actor: string }
 *   | { type: 'start-hook-passed' }
 *   | { type: 'turn-came', release?: Release, hasHook?: boolean }
 *   | { type: 'scale', workers: number, actor: string }
 *   | { type: 'configure', options: LifecycleOptions }
 *   | { type: 'rollout', kind: 'restart' | 'deploy' | 'rollback', release?: Release, source?: Record<string, unknown>, slots?: number[], note?: string | null, strategy?: import('./rollout/strategy.js').StrategyWish, actor: string, client?: Client | null, awaitsTurn?: boolean }
 *   | { type: 'pause' | 'resume' | 'abort' | 'promote' | 'retry', rollout: number, actor: string }
 *   | { type: 'rollout-waits', rollout: number, apps: string[] }
 *   | { type: 'rollout-turn-came', rollout: number }
 *   | { type: 'release-prepared', rollout: number, release: Release, hasHook?: boolean }
 *   | { type: 'release-not-prepared', rollout: number, reason: string }
 *   | { type: 'hook-ended', rollout: number, passed: boolean, reason: string | null, output: string }
 *   | { type: 'judged', rollout: number, verdict: Verdict & { warning?: string } }
 *   | { type: 'restart-worker', worker: number, actor: string, client?: Client | null }
 *   | { type: 'kill-worker', worker: number, actor: string }
 *   | { type: 'end-connections', worker: number, actor: string }
 *   | { type: 'stop', actor: string, cause?: 'shutdown' | 'rollback' }
 *   | { type: 'kill-all', reason: string }
 *   | { type: 'upgrade', execPath: string | null, note?: string | null, readyWithinMs?: number, actor: string }
 *   | { type: 'next-forks' }
 *   | { type: 'next-failing', reason: string }
 *   | { type: 'next-gone', reason: string, lastWorker: number, orphans: Orphan[] }
 *   | { type: 'hand-over' }
 *   | { type: 'take-over', orphans: Orphan[], nextWorker: number, guard?: import('./rollout/guard.js').Guard | null }
 *   | { type: 'address-blocked' }
 *   | { type: 'worker-forked', worker: number, pid: number | null }
 *   | { type: 'worker-online', worker: number }
 *   | { type: 'worker-held', worker: number }
 *   | { type: 'worker-read-slot', worker: number, name: string, place: string | null }
 *   | { type: 'worker-listening', worker: number, url: string, isFixed: boolean }
 *   | { type: 'worker-closed', worker: number, url: string }
 *   | { type: 'worker-active', worker: number, resources: string[], isIdle?: boolean }
 *   | { type: 'thread-port-taken', worker: number, message: string }
 *   | { type: 'worker-probed', worker: number, text: string }
 *   | { type: 'worker-socket-note', worker: number, text: string }
 *   | { type: 'worker-status-text', worker: number, text: string }
 *   | { type: 'worker-stopping', worker: number }
 *   | { type: 'worker-ready', worker: number, probe?: string, warmupFailed?: string | null, boot?: import('./boot-room.js').Boot | null }
 *   | { type: 'worker-holds', worker: number, holds: Holds }
 *   | { type: 'worker-drained', worker: number, heapBytes?: number }
 *   | { type: 'heap-too-large', worker: number }
 *   | { type: 'worker-silent', worker: number, message: string }
 *   | { type: 'worker-answered', worker: number }
 *   | { type: 'stack-captured', worker: number }
 *   | { type: 'worker-due', worker: number, cause: 'memory-limit' | 'max-requests' | 'app-request', message: string, rssBytes?: number }
 *   | { type: 'worker-crashing', worker: number, errorName: string, errorMessage: string }
 *   | ({ type: 'worker-exited', worker: number } & import('./loss.js').Exit)
 *   | { type: 'deadline-passed', deadline: DeadlineKind, id: number, starvedMs?: number })} Input
 *
 * @typedef {{ [Each in Input as Each['type']]: Each }} Inputs  by type
 * @typedef {Input extends infer I ? I extends Input ? Omit<I, keyof Stamp> : never : never} PlainInput  without the stamp, which the supervisor adds
 * @typedef {Extract<PlainInput, { type: 'scale' | 'configure' | 'rollout' | 'pause' | 'resume' | 'abort' | 'promote' | 'retry' | 'restart-worker' | 'kill-worker' | 'end-connections' | 'stop' | 'upgrade' }>} OperatorInput
 * @typedef {{ errorName: string, errorMessage: string, stack: string | null }} CrashNote
 * What was open when a worker ended. `stalled`: of these requests, whose bytes had stopped moving; `closed`: long-lived ones that were ended
 * in their own way; `isReported`: as of its last report, as it could not say it in the end.
 * @typedef {{ requests: number, connections: number, stalled?: number, closed?: Pick<Holds, 'webSockets' | 'eventStreams' | 'connections'>, isReported: boolean }} Unfinished
 * @typedef {{ name: string, pid: number }} LeftProcess  that a worker had started, and that lives on
 * @typedef {'ready' | 'addresses' | 'alive' | 'drain' | 'long-lived' | 'term' | 'steady' | 'stack' | 'age' | 'soak' | 'retry' | 'upgrade' | 'recycle' | 'recycle-pace' | 'progress' | 'canary' | 'judge' | 'guard' | 'standby'} DeadlineKind  `id` is a worker's, for 'retry' a slot's, from 'upgrade' on 0
 */

/**
 * @typedef {{ type: 'fork', worker: number, slot: number | null, release: Release }
 *   | { type: 'promote', worker: number, slot: number }
 *   | { type: 'drain', worker: number, limits: DrainLimits }
 *   | { type: 'end-connections', worker: number, spreadMs: number, isLast: boolean }
 *   | { type: 'write-heap', worker: number }
 *   | { type: 'terminate', worker: number }
 *   | { type: 'count-as-ready', worker: number }
 *   | { type: 'kill', worker: number }
 *   | { type: 'capture-stack', worker: number }
 *   | { type: 'set-deadline', deadline: DeadlineKind, id: number, ms: number }
 *   | { type: 'clear-deadline', deadline: DeadlineKind, id: number }
 *   | { type: 'close-sockets' }
 *   | { type: 'expire-unused-sockets' }
 *   | { type: 'close-unused-sockets' }
 *   | { type: 'take-turn', rollout: number }
 *   | { type: 'prepare-release', rollout: number, source: Record<string, unknown>, note: string | null, actor: string }
 *   | { type: 'run-hook', rollout: number, from: string, release: Release }
 *   | { type: 'end-hook', rollout: number }
 *   | { type: 'run-start-hook', release: Release }
 *   | { type: 'begin-judging' }
 *   | { type: 'judge', rollout: number, isFinal: boolean, canary: number[], baseline: number[], limits: import('./rollout/strategy.js').Limits }
 *   | { type: 'start-next', execPath: string | null }
 *   | { type: 'cancel-next', reason: string }
 *   | { type: 'finish' }} Command
 */

/** @typedef {{ type: string } & Record<string, any>} Fact  an event without id and time, see server/events/stream.js */

/** @typedef {{ code: 'rollout-running' | 'rollout-ended' | 'rollout-state' | 'upgrade-running' | 'drifted' | 'not-possible' | 'starting' | 'stopping' | 'not-found', message: string, details?: Record<string, unknown> }} Refusal */

/**
 * @param {object} start
 * @param {LifecycleOptions} start.options
 * @param {Release} start.release
 * @param {number} [start.lastRollout]  the highest number already used in this data folder
 * @param {number} [start.nextWorker]
 * @param {Record<number, import('./addresses.js').Address[]>} [start.addresses]  of the master before, by slot
 * @param {boolean} [start.hasListened]  the history has a worker that did
 * @param {boolean} [start.hasBeenReady]  false: the history has no worker that was
 * @param {import('./boot-room.js').BootCost | null} [start.bootCost]  of the last one
 * @param {number} [start.cpus]
 * @returns {PoolState}
 */
export function createState ({ options, release, lastRollout = 0, nextWorker = 1, addresses = {}, hasListened = false, hasBeenReady = true, bootCost = null, cpus = 1 }) {
  return {
    phase: 'idle',
    options,
    slots: [],
    workers: {},
    rollout: null,
    upgrade: null,
    recycling: null,
    recyclePace: blankPace(),
    guard: null,
    standby: createStandby(),
    addresses,
    hasListened,
    hasBeenReady,
    bootCost,
    cpus,
    awaitsHook: false,
    awaitsTurn: null,
    release,
    releases: { [release.id]: release },
    nextWorker,
    nextRollout: lastRollout + 1
  }
}

/** @param {Release} release @returns {Omit<Release, 'args' | 'execArgv'>} what may be shown of it: arguments may hold secrets */
export function shownRelease ({ args: _, execArgv: __, ...release }) {
  return release
}

/** @param {Pick<PoolState, 'releases'>} state @param {string} release @returns {import('../launch/launch.js').Runtime} what runs its workers */
export function runtimeOf ({ releases }, release) {
  return releases[release]?.runtime ?? 'node'
}

/** @param {number} number @param {string} release @returns {Slot} */
export function createSlot (number, release) {
  return { number, release, serving: null, candidate: null, retryAt: null, blocked: null, finished: null, restarts: 0, record: blankRecord() }
}
