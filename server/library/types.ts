import type { EventEmitter } from 'node:events'
import type { DeckOptions, EventType } from './tables.ts'

/** What start() takes: the options of a config file, and those that only a program can set. */
export type StartOptions =
  & DeckOptions
  & Surroundings

/** The options that only a program can set. */
type Surroundings = {
  /** a config file, for options that are not given here; without it none is read */
  configFile?: string,
  /** where the deck prints what happens, as `clusterdeck start` does; default: nowhere */
  stdout?: NodeJS.WritableStream,
  /** where it prints errors; default: nowhere */
  stderr?: NodeJS.WritableStream,
  /** gives up a start that takes too long, such as `AbortSignal.timeout(60_000)` */
  signal?: AbortSignal
}

/** A cluster that this program has started. */
export type Deck = {
  /** of the admin page and the REST API */
  adminUrl: string,
  /** for the REST API: whoever has it may do everything */
  token: string,
  /** makes a link that signs in the first browser that opens it, within 15 minutes */
  signInLink: () => string,
  /** emits each event as `event`, and by its type */
  events: DeckEvents,
  /** its present status, as `GET /api/v1/status` has it */
  snapshot: () => Status,
  /** replaces all workers; resolves with the finished rollout, however it ended */
  restart: (order?: { note?: string }) => Promise<Rollout>,
  /**
   * deploys the code on the disk;
   * resolves with the finished rollout, however it ended
   */
  deploy: (order?: { note?: string, path?: string, strategy?: Strategy }) => Promise<Rollout>,
  /**
   * rolls back to the release before, or to
   * the named one; resolves with the finished rollout, however it ended
   */
  rollback: (order?: { note?: string, release?: string, strategy?: Strategy }) => Promise<Rollout>,
  /** resolves once this many workers are ready and no others are left */
  scale: (workers: number) => Promise<Status>,
  /**
   * sends
   * `{ type, from: 'admin', data }` to the app, in one worker or in all that are ready; resolves with the ids of the
   * workers to which it was sent
   */
  send: (type: string, data?: unknown, order?: { worker?: number }) => Promise<{ workers: number[] }>,
  /** drains and ends all workers; resolves once nothing of the deck is left */
  stop: () => Promise<void>,
  /** resolves once nothing of the deck is left, even if others have stopped it */
  stopped: Promise<void>
}

/** Emits each event as `event`, and by its type. */
export type DeckEvents = EventEmitter<Record<EventType | 'event', [event: DeckEvent]>>

/** A fact about the cluster. Fields that do not apply are null. */
export type DeckEvent = {
  /** ascending */
  id: number,
  /** ISO 8601, UTC */
  at: string,
  /** such as `worker.exited` */
  type: EventType | (string & {}),
  cause: string | null,
  slot: number | null,
  worker: number | null,
  pid: number | null,
  release: string | null,
  rollout: number | null,
  actor: string | null,
  code: number | null,
  signal: string | null,
  uptimeMs: number | null,
  message: string | null,
  detail: Record<string, unknown> | null
}

/** How a deploy replaces workers: what is not given is as the options say. */
export type Strategy = Omit<NonNullable<DeckOptions['rollout']>, 'guardMs'>

/** The status of a deck at one moment. As everything that a deck returns, it is a frozen copy. */
export type Status = {
  state: 'starting' | 'running' | 'stopping',
  master: { pid: number, version: string, nodeVersion: string, startedAt: string, rssBytes: number, isShared: boolean },
  /**
   * `addresses`: URLs on which it listens;
   * `ownSockets`: why its workers cannot share its sockets here; null: they do
   */
  app: { name: string, entry: string, cwd: string, addresses: string[], ownSockets: string | null },
  dispatch: 'shared' | 'sticky',
  /** by what clients stay with a worker, such as `the header mcp-session-id`; null: dispatch is not sticky */
  stickyBy: string | null,
  /**
   * whether idle workers share connections evenly;
   * null: none listens yet, or the addresses of the clients decide
   */
  isEven: boolean | null,
  /** of each worker, 0: none; `problem`: why they are not kept here */
  limits: { memoryBytes: number, cpus: number, problem: string | null },
  desiredWorkers: number,
  readyWorkers: number,
  /** slots whose program has ended with exit code 0, and is not started again by itself */
  finishedWorkers: number,
  /** by restart.cron */
  nextRestartAt: string | null,
  /** the last one that was deployed successfully */
  release: Release,
  /** the present one */
  rollout: Rollout | null,
  workers: WorkerStatus[],
  /** the workers beside those of the slots */
  standby: StandbyStatus,
  /**
   * `problem`: why it cannot be written
   * at the moment; `since`: the first event that it lacks; `waiting`: events that are written once it can be; `lost`:
   * events that were too many to be kept
   */
  history: { problem: string | null, since: string | null, waiting: number, lost: number },
  /** `problem`: why no worker can be started */
  secrets: { problem: string | null },
  lastEventId: number,
  health: Health,
  /** newest first */
  notices: Notice[]
}

/** Whether the deck serves, and what is wrong. */
type Health = {
  tone: 'ok' | 'info' | 'drain' | 'warn' | 'bad' | 'idle',
  text: string,
  hint: string,
  /**
   * why
   * workers have died, if that still matters; `text` may hold what an app threw
   */
  reasons: { slots: number[], text: string, event: number | null, crashGroup: number | null,
    isNewInRelease: boolean }[],
  /** how many things somebody should look at */
  problems: number
}

/** Something has gone wrong, and nobody has acknowledged it. There is one notice for all events of its kind. */
type Notice = {
  /** of its newest event */
  id: number,
  kind: 'master-lost' | 'keeper-lost' | 'rollout-failed' | 'rolled-back' | 'upgrade-failed' | 'recycling-slowed'
    | 'history-degraded',
  at: string,
  /** time of the first event that nobody has acknowledged */
  firstAt: string,
  count: number,
  message: string,
  /** when it ended by itself */
  endedAt: string | null
}

/** A worker, or a slot that has none at the moment. */
export type WorkerStatus = {
  /** null: no worker runs in this slot at the moment */
  id: number | null,
  slot: number,
  pid: number | null,
  /** the port of its slot alone, see portPerSlot */
  port: number | null,
  /** the slot whose log has its output; 0: the log of standby workers */
  logSlot: number,
  /** `starting`, `ready`, `draining`, `stopping`, `unresponsive`, `backoff`, `held` or `finished` */
  state: string,
  /** what it still has while it drains */
  holds:
    | { requests: number, transfers: number, webSockets: number, eventStreams: number, connections: number,
      sessions: number }
    | null,
  /** it is replaced, and keeps its long-lived connections at most until then */
  keptUntil: string | null,
  release: string,
  startedAt: string | null,
  readyAt: string | null,
  /** when a slot without a worker tries again */
  retryAt: string | null,
  /** the end of the program of a slot, if that is not started again by itself */
  finished:
    | { at: string, worker: number, release: string, cause: string, code: number | null, succeeded: boolean }
    | null,
  /** of its slot */
  restarts: number,
  crashLooping: boolean,
  drifted: boolean,
  /** another master has left it behind */
  orphan: boolean,
  /** of its last second */
  vitals: Record<string, unknown> & { at: string, rssBytes: number, cpuPercent: number } | null
}

/** Workers that have loaded the app and wait to replace one that dies. */
type StandbyStatus = {
  wanted: number,
  ready: number,
  /** why this release has none */
  problem: string | null,
  workers: { id: number, pid: number | null, state: string, release: string, startedAt: string,
    rssBytes: number | null }[]
}

/** The code that workers run. */
export type Release = {
  /** such as `r12` */
  id: string,
  entry: string,
  path: string,
  createdAt: string,
  note?: string | null,
  package?: { name: string | null, version: string | null } | null,
  git?: { commit: string, branch: string | null, isDirty: boolean | null, author?: string | null,
    subject?: string | null } | null
}

/** One restart of all workers, deploy or rollback. */
export type Rollout = {
  id: number,
  kind: 'restart' | 'deploy' | 'rollback',
  state: 'preparing' | 'canary' | 'rolling' | 'paused' | 'held' | 'rolling-back' | 'succeeded' | 'rolled-back'
    | 'failed',
  done: boolean,
  /** a release */
  from: string,
  /** null: it is not prepared yet */
  to: string | null,
  actor: string,
  note: string | null,
  /** why it did not succeed */
  reason: string | null,
  /** what went wrong but did not make it fail */
  warnings: string[],
  /** it runs before anything is replaced */
  hook?: { name: 'beforeDeploy', state: 'due' | 'running' | 'passed' | 'failed' | 'ended', startedAt: string | null,
    finishedAt: string | null, output: string | null } | null,
  startedAt: string,
  finishedAt: string | null,
  /** apps of the same host that are rolled out first; null: it need not wait for its turn */
  waitingFor?: string[] | null,
  progress: { total: number, replaced: number },
  steps: RolloutStep[]
}

/** What a rollout does in one slot. */
export type RolloutStep = { slot: number,
  state: 'pending' | 'stopping' | 'starting' | 'soaking' | 'ready' | 'draining' | 'done' | 'failed' | 'reverting'
    | 'reverted', oldWorker: number | null, newWorker: number | null, isCanary: boolean, startedAt: string | null,
  finishedAt: string | null }
