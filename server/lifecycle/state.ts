import { blankPace, type RecyclePace, type Recycling } from './recycling.ts'
import { createStandby } from './promotion.ts'
import type { RestartPolicy, RestartRecord } from './restart-policy.ts'
import type { StrategyWish } from './rollout/strategy.ts'
import type { Runtime } from '../launch/launch.ts'
import type { WorkerState } from './worker-state.ts'
import type { Address } from './addresses.ts'
import type { Stage } from './rollout/stages.ts'
import type { RolloutHook } from './rollout/hook.ts'
import type { Plan } from './rollout/turn.ts'
import type { Answers, Guard } from './rollout/guard.ts'
import type { Standby } from './standby.ts'
import type { Boot, BootCost } from './boot-room.ts'
import type { Exit } from './loss.ts'
import type { NewEvent } from '../events/stream.ts'
import type { Comparison, Figures, Finished, Holds, Limits, Moment, RolloutStep, ShownRelease, Strategy,
  Verdict } from '../api/shapes.ts'

export type { Comparison, Figures, Finished, Holds, Moment, RolloutStep, Verdict }

/** durations in ms */
export type LifecycleOptions = {
  ready: { signal: 'auto' | 'listening' | 'message' | 'notify' | 'online', timeoutMs: number, log?: string,
    path?: string, warmup?: readonly string[], addresses?: 'same' | 'any' },
  drain:
    & Omit<DrainLimits, 'isLast'>
    & { maxOldWorkers: number | 'auto' },
  /** `signal`: of Node programs always SIGTERM */
  stop: { termGraceMs: number, signal: NodeJS.Signals },
  crash: { graceMs: number },
  restart: RestartPolicy,
  /** 0: never */
  recycle?: { maxAgeMs: number, maxRssBytes?: number, maxRequests?: number },
  /** `guardMs`: how long a release that was deployed is watched; 0: not at all */
  rollout?: StrategyWish & { guardMs?: number },
  releases?: { onDrift: 'mark' | 'hold' },
  /** how many workers are kept beside those of the slots */
  standby?: number,
  start?: { first: 'one' | 'all' }
}

/**
 * How long a draining worker keeps what it has. Times count from the beginning of the drain, see workers/protocol.ts.
 */
export type DrainLimits = { idleGraceMs: number, deadlineMs: number, stalledMs: number, longLivedMs: number,
  spreadMs: number, isLast: boolean }
/**
 * The drain itself. `since`: when it began, wall time, ISO 8601; `at`: the same in monotonic ms; `isOver`: the worker
 * was told to end its long-lived connections; `isDoubted`: it says nothing of them any more.
 */
type Drain = { since: string, at: number, limits: DrainLimits, isOver?: boolean, isDoubted?: boolean }

/**
 * What is deployed: see server/releases/. The lifecycle hands it to each fork as it is, and needs no more of it than
 * the id.
 */
export type Release =
  & ShownRelease
  & {
    /** not for the eyes of others, as `execArgv` */
    args?: string[],
    execArgv?: string[]
  }

/**
 * Why the master means a worker to end; recorded before anything is done about it.
 * `actor`: null where nobody means it and it goes by itself.
 */
export type Intent = { cause: string, actor: string | null, rollout: number | null, message?: string }

export type Worker = {
  /** no other worker has it until the deck is stopped */
  id: number,
  /** null: it is on standby, and has none yet */
  slot: number | null,
  state: WorkerState,
  release: string,
  pid: number | null,
  /** monotonic ms; of one that was on standby, when it got its slot */
  forkedAt: number,
  /** wall time, ISO 8601 */
  startedAt: string,
  /** wall time, ISO 8601 */
  readyAt: string | null,
  intent: Intent | null,
  readyTimeoutMs: number,
  /** how much was added to that, as it waited for a CPU for so long */
  starvedMs?: number,
  /** it drains, and has never had a connection */
  servesNobody?: boolean,
  /**
   * why it is to be recycled as soon as nothing else goes on; `isBlocked`: it has been told that it is not, see
   * drift.ts; `soon`: it had hardly served, and may have to wait
   */
  due?: { cause: string, message: string, isBlocked?: boolean, soon?: { servedMs: number, rssBytes: number } } | null,
  /** it was on standby before it got its slot */
  hasStoodBy?: boolean,
  /** how the files of its release differed from those of the deploy when it was forked */
  drift?: Drift | null,
  /** where it listens */
  addresses: Address[],
  /** it is ready, but does not listen yet where it has to */
  report?: { probe?: string, warmupFailed?: string | null },
  /** what keeps it running while it does not listen, as Node names it */
  resources?: string[],
  /** it counts as ready though it has not listened */
  isNoServer?: boolean,
  drain?: Drain,
  /** `at`: monotonic ms of its report */
  holds?:
    & Holds
    & { at: number },
  /** it is replaced, and is kept for its long-lived connections alone: until then, wall time, ISO 8601 */
  keptUntil?: string,
  /** it has nothing open any more, or was told to end before that */
  drainEnd?: 'drained' | 'deadline',
  /** it has drained, and writes its heap before it ends */
  writesHeap?: boolean,
  /** why the master has killed it */
  killedFor?: string,
  /** what it says of itself, if it does */
  statusText?: string,
  /** why a program does not share a socket, or not all of it */
  socketNotes?: string[],
  /** why its app was not ready when it was last asked */
  probed?: string,
  /** left behind by another master; it serves, and belongs to no slot any more */
  orphan: OrphanCause | null
}

/**
 * Files of a release were changed in place. `kind`: `code`, a new worker of it runs other code than the deploy;
 * `folder`, other files of its folder have changed, by a later deploy or by the app itself; `unknown`, whether they
 * have is not known. `files`: some of them, those that its workers had loaded by their absolute paths, others from its
 * folder; `since`: when the first of them was written, ISO 8601, null: unknown; `by`: the release that was deployed
 * from the same folder later, if it is known from that alone.
 */
export type Drift = { kind: 'code' | 'folder' | 'unknown', count: number, files: string[], since: string | null,
  by: string | null }

/** why it has another master now */
export type OrphanCause = 'master-lost' | 'upgrade'

/**
 * What another master has left behind of a worker. `exit`: it is known to have ended, and how as far as that is known.
 */
export type Orphan =
  & Pick<Worker,
    'id' | 'slot' | 'hasStoodBy' | 'pid' | 'release' | 'startedAt' | 'readyAt' | 'intent' | 'drain' | 'holds'
      | 'keptUntil'>
  & { addresses?: Address[], orphan: OrphanCause, state: 'starting' | 'ready' | 'draining' | 'stopping',
    exit: { code: number | null, signal: string | null, error?: CrashNote | null } | null }

/**
 * A slot is stable, its worker changes. `serving` holds the slot (and is replaced when it dies); `candidate` is to take
 * it over in a rollout. Workers that drain belong to no slot any more.
 */
export type Slot = {
  /** 1…N */
  number: number,
  /** what a replacement runs */
  release: string,
  serving: number | null,
  candidate: number | null,
  /** wall time of the next try while it waits out a backoff */
  retryAt: string | null,
  /** why it waits for a person: its release has drifted; it is looked at again at `retryAt` */
  blocked: Drift | null,
  /** how its last program has ended; counts while it has no worker */
  finished: Finished | null,
  /** replacements of dead workers since the master started */
  restarts: number,
  record: RestartRecord
}

/**
 * A change of masters that is under way. `execPath`: of the next one's node, null: the same; `firstWorker`: the first
 * id that is the next one's to give; `limitMs`: how long it may take; `reason`: why it will fail.
 */
type Upgrade = { startedAt: string, actor: string, note: string | null, execPath: string | null, readyWithinMs: number,
  firstWorker: number, limitMs: number, reason: string | null }

export type Rollout = {
  id: number,
  kind: 'restart' | 'deploy' | 'rollback',
  /**
   * `rolled-back`: what it had put into service was taken back;
   * `failed`: it did not come so far, or could not go back everywhere
   */
  stage: Stage,
  from: string,
  /** null: not prepared yet */
  to: string | null,
  actor: string,
  /** null: nobody asked for it over the admin port */
  client?: Client | null,
  note: string | null,
  strategy: Strategy,
  /** of workers of the new release */
  crashes: number,
  /** oldest first, the last 50 */
  verdicts: Verdict[],
  /** how both sides did when somebody last looked */
  comparison?: Comparison | null,
  /** how both sides did over its time, oldest first, see record.js */
  comparisons?: Comparison[],
  /** what happened to it as a whole, oldest first, the last 100 */
  timeline?: Moment[],
  /** wall time, ISO 8601 */
  canaryEndsAt: string | null,
  /** wall time since which it is paused or held, ISO 8601 */
  pausedAt?: string | null,
  /** monotonic ms */
  progressDueAt: number | null,
  /** while it is paused */
  progressLeftMs: number | null,
  startedAt: string,
  finishedAt: string | null,
  reason: string | null,
  /** the operator who has aborted it */
  abortedBy: string | null,
  /** what went wrong without making it fail, the first 20 */
  warnings: string[],
  /** what it runs before anything is replaced; null: nothing */
  hook?: RolloutHook | null,
  progress: { total: number, replaced: number },
  steps: RolloutStep[],
  /** while it waits for its turn; null: it has begun */
  plan?: Plan | null,
  /** the apps of its host that come first; null: it need not wait */
  waitingFor?: string[] | null
}

/** by what somebody asked for it */
export type Client = 'dashboard' | 'cli' | 'api' | 'agent'

export type PoolState = {
  phase: 'idle' | 'starting' | 'running' | 'stopping' | 'stopped',
  options: LifecycleOptions,
  /** ascending by number */
  slots: Slot[],
  /** all that live, by id */
  workers: Record<number, Worker>,
  rollout: Rollout | null,
  upgrade: Upgrade | null,
  recycling: Recycling | null,
  recyclePace: RecyclePace,
  guard: Guard | null,
  standby: Standby,
  /** where the last worker of a slot that was ready has listened */
  addresses: Record<number, Address[]>,
  /** some worker has, as far back as anybody knows */
  hasListened: boolean,
  /** some worker has, as far back as anybody knows */
  hasBeenReady: boolean,
  /** null: not known */
  bootCost: BootCost | null,
  /** that workers can use */
  cpus: number,
  /** no worker starts before hooks.beforeStart has passed */
  awaitsHook: boolean,
  /** why no worker may start yet, in a sentence: other apps of its host start first, or its secrets are not known */
  awaitsTurn: string | null,
  /** the one that was deployed last with success */
  release: Release,
  releases: Record<string, Release>,
  nextWorker: number,
  nextRollout: number
}

/**
 * monotonic ms, wall ms
 * since the epoch, [0, 1), and which releases have drifted, by id, of those that a worker may be forked on
 */
export type Stamp = { at: number, time: number, random: number, drift?: Record<string, Drift> }

/** Inputs: what an operator or the master wants (imperative), and what has happened outside (past tense). */
export type Input =
  & Stamp
  & ({ type: 'start', workers: number, guard?: Guard | null, orphans?: Orphan[], finished?: Record<number, Finished>,
    hasHook?: boolean, awaitsTurn?: string | null, actor: string } | { type: 'start-hook-passed' } | {
    type: 'turn-came',
    release?: Release,
    hasHook?: boolean
  } | { type: 'scale', workers: number, actor: string } | { type: 'configure', options: LifecycleOptions } | {
    type: 'rollout',
    kind: 'restart' | 'deploy' | 'rollback',
    release?: Release,
    source?: Record<string, unknown>,
    slots?: number[],
    note?: string | null,
    strategy?: StrategyWish,
    actor: string,
    client?: Client | null,
    awaitsTurn?: boolean
  } | { type: 'pause' | 'resume' | 'abort' | 'promote' | 'retry', rollout: number, actor: string } | {
    type: 'rollout-waits',
    rollout: number,
    apps: string[]
  } | { type: 'rollout-turn-came', rollout: number } | { type: 'release-prepared', rollout: number, release: Release,
    hasHook?: boolean } | { type: 'release-not-prepared', rollout: number, reason: string } | { type: 'hook-ended',
    rollout: number, passed: boolean, reason: string | null, output: string } | { type: 'judged', rollout: number,
    verdict: Verdict & { warning?: string } } | { type: 'restart-worker', worker: number, actor: string,
    client?: Client | null } | { type: 'kill-worker', worker: number, actor: string } | { type: 'end-connections',
    worker: number, actor: string } | { type: 'stop', actor: string, cause?: 'shutdown' | 'rollback' } | {
    type: 'kill-all',
    reason: string
  } | { type: 'upgrade', execPath: string | null, note?: string | null, readyWithinMs?: number, actor: string } | {
    type: 'next-forks'
  } | { type: 'next-failing', reason: string } | { type: 'next-gone', reason: string, lastWorker: number,
    orphans: Orphan[] } | { type: 'hand-over' } | { type: 'take-over', orphans: Orphan[], nextWorker: number,
    guard?: Guard | null } | { type: 'address-blocked' } | { type: 'worker-forked', worker: number, pid: number | null }
    | { type: 'worker-online', worker: number } | { type: 'worker-held', worker: number } | { type: 'worker-read-slot',
    worker: number, name: string, place: string | null } | { type: 'worker-listening', worker: number, url: string,
    isFixed: boolean } | { type: 'worker-closed', worker: number, url: string } | { type: 'worker-active',
    worker: number, resources: string[], isIdle?: boolean } | { type: 'thread-port-taken', worker: number,
    message: string } | { type: 'worker-probed', worker: number, text: string } | { type: 'worker-socket-note',
    worker: number, text: string } | { type: 'worker-status-text', worker: number, text: string } | {
    type: 'worker-stopping',
    worker: number
  } | { type: 'worker-ready', worker: number, probe?: string, warmupFailed?: string | null, boot?: Boot | null } | {
    type: 'worker-holds',
    worker: number,
    holds: Holds
  } | { type: 'worker-drained', worker: number, heapBytes?: number } | { type: 'heap-too-large', worker: number } | {
    type: 'worker-silent',
    worker: number,
    message: string
  } | { type: 'worker-answered', worker: number } | { type: 'stack-captured', worker: number } | { type: 'worker-due',
    worker: number, cause: 'memory-limit' | 'max-requests' | 'app-request', message: string, rssBytes?: number } | {
    type: 'worker-crashing',
    worker: number,
    errorName: string,
    errorMessage: string
  } | ({ type: 'worker-exited', worker: number } & Exit) | { type: 'deadline-passed', deadline: DeadlineKind,
    id: number, starvedMs?: number } | ({ type: 'answers-counted', release: string } & Answers))
/** by type */
export type Inputs = { [Each in Input as Each['type']]: Each }
/** without the stamp, which the supervisor adds */
export type PlainInput = Input extends infer I ? I extends Input ? Omit<I, keyof Stamp> : never : never
export type OperatorInput = Extract<PlainInput,
  {
    type: 'scale' | 'configure' | 'rollout' | 'pause' | 'resume' | 'abort' | 'promote' | 'retry' | 'restart-worker'
      | 'kill-worker' | 'end-connections' | 'stop' | 'upgrade'
  }>
/** `requests`: that it had not answered */
export type CrashNote = { errorName: string, errorMessage: string, stack: string | null,
  requests?: { method: string, path: string, ageMs: number, isHanging?: boolean }[] }
/**
 * What was open when a worker ended. `stalled`: of these requests, whose bytes had stopped moving; `closed`: long-lived
 * ones that were ended in their own way; `isReported`: as of its last report, as it could not say it in the end.
 */
export type Unfinished = { requests: number, connections: number, stalled?: number,
  closed?: Pick<Holds, 'webSockets' | 'eventStreams' | 'connections'>, isReported: boolean }
/** that a worker had started, and that lives on */
export type LeftProcess = { name: string, pid: number }
/** `id` is a worker's, for 'retry' a slot's, from 'upgrade' on 0 */
export type DeadlineKind = 'ready' | 'addresses' | 'alive' | 'drain' | 'long-lived' | 'term' | 'steady' | 'stack'
  | 'age' | 'soak' | 'retry' | 'upgrade' | 'recycle' | 'recycle-pace' | 'progress' | 'canary' | 'judge' | 'guard'
  | 'standby' | 'answers'

export type Command = { type: 'fork', worker: number, slot: number | null, release: Release } | { type: 'promote',
  worker: number, slot: number } | { type: 'drain', worker: number, limits: DrainLimits } | { type: 'end-connections',
  worker: number, spreadMs: number, isLast: boolean } | { type: 'write-heap', worker: number } | { type: 'terminate',
  worker: number } | { type: 'count-as-ready', worker: number } | { type: 'kill', worker: number } | {
  type: 'capture-stack',
  worker: number
} | { type: 'set-deadline', deadline: DeadlineKind, id: number, ms: number } | { type: 'clear-deadline',
  deadline: DeadlineKind, id: number } | { type: 'close-sockets' } | { type: 'expire-unused-sockets' } | {
  type: 'close-unused-sockets'
} | { type: 'take-turn', rollout: number } | { type: 'prepare-release', rollout: number,
  source: Record<string, unknown>, note: string | null, actor: string } | { type: 'run-hook', rollout: number,
  from: string, release: Release } | { type: 'end-hook', rollout: number } | { type: 'run-start-hook',
  release: Release } | { type: 'begin-judging' } | { type: 'judge', rollout: number, isFinal: boolean, canary: number[],
  baseline: number[], limits: Limits } | { type: 'start-next', execPath: string | null } | { type: 'cancel-next',
  reason: string } | { type: 'finish' } | { type: 'count-answers', release: string, from: string }

export type Fact = NewEvent

export type Refusal = {
  code: 'rollout-running' | 'rollout-ended' | 'rollout-state' | 'upgrade-running' | 'drifted' | 'not-possible'
    | 'starting' | 'stopping' | 'not-found',
  message: string,
  details?: Record<string, unknown>
}

export function createState (
  { options, release, lastRollout = 0, nextWorker = 1, addresses = {}, hasListened = false, hasBeenReady = true,
    bootCost = null, cpus = 1 }: {
      options: LifecycleOptions,
      release: Release,
      /** the highest number already used in this data folder */
      lastRollout?: number,
      nextWorker?: number,
      /** of the master before, by slot */
      addresses?: Record<number, Address[]>,
      /** the history has a worker that did */
      hasListened?: boolean,
      /** false: the history has no worker that was */
      hasBeenReady?: boolean,
      /** of the last one */
      bootCost?: BootCost | null,
      cpus?: number
    }
): PoolState {
  return { phase: 'idle', options, slots: [], workers: {}, rollout: null, upgrade: null, recycling: null,
    recyclePace: blankPace(), guard: null, standby: createStandby(), addresses, hasListened, hasBeenReady, bootCost,
    cpus, awaitsHook: false, awaitsTurn: null, release, releases: { [release.id]: release }, nextWorker,
    nextRollout: lastRollout + 1 }
}

/** @returns what may be shown of it: arguments may hold secrets */
export function shownRelease ({ args: _, execArgv: __, ...release }: Release): Omit<Release, 'args' | 'execArgv'> {
  return release
}

/** @returns what runs its workers */
export function runtimeOf ({ releases }: Pick<PoolState, 'releases'>, release: string): Runtime {
  return releases[release]?.runtime ?? 'node'
}
