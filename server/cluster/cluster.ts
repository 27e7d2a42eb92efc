import { EventEmitter } from 'node:events'
import type { CrashRecorder } from '../crashes/recorder.ts'
import type { EventStream } from '../events/stream.ts'
import type { KeeperLink } from '../keeper/link.ts'
import type { Drift as Change, PlainInput, PoolState, Release } from '../lifecycle/state.ts'
import type { Drift } from '../releases/drift.ts'
import type { createJudge } from '../releases/judge.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { ToMaster, ToWorker } from '../../workers/protocol.ts'
import type { SavedWorker } from './adoption.ts'
import type { Forker } from './forker.ts'
import type { Hooks } from './hooks.ts'
import type { OrphanHandle } from './orphan-handle.ts'
import type { Balance } from './request-fairness.ts'
import type { Turns } from './rollout-turn.ts'
import type { Calls } from './socket-group.ts'
import type { Keeper } from './sockets.ts'
import type { Limits } from './watchdog.ts'
import type { Handle, WorkerHandle } from './worker-handle.ts'

export type Cluster = ReturnType<typeof createCluster>

/** by type */
export type Messages = { [Message in ToMaster as Message['type']]: Message }
/** What the app counts by prom-client. */
type AppMetrics = { accept: (worker: number, message: Messages['app-metrics'], how: { isAlive: boolean }) => void,
  answer: (worker: number, message: Messages['app-metrics-wanted']) => unknown, left: (worker: number) => void }

/** What the parts subscribe to. */
type News = {
  /** a worker has ended; the state does not know that yet */
  left: [worker: number],
  /** a worker can get connections */
  ready: [worker: number],
  /** an input has been worked on */
  turn: [],
  /** the start cannot succeed */
  blocked: [why: { message: string }],
  diagnosed: [worker: number, reply: Omit<Messages['diagnosed'], 'type'>],
  'heap-kept': [worker: number, reply: Omit<Messages['heap-kept'], 'type'>],
  /** live workers have loaded these */
  loaded: [files: unknown[]]
}

export type Listener<Name extends keyof News> = (...told: News[Name]) => void

/** What is around a cluster. */
export type Services = {
  fork: Forker,
  events: Pick<EventStream, 'publish'>,
  keeper?:
    & Keeper
    & Pick<KeeperLink, 'exits' | 'reaps'>,
  limits: Limits,
  /** where clients stay with a slot */
  sticky: { calls: Calls, failoverMs: number } | null,
  /**
   * where the kernel is told which workers get connections;
   * `others`: those of the master that has the cluster until this one takes over; null: there is none
   */
  steering: { calls: Calls, others: SavedWorker[] | null } | null,
  balance: Balance,
  /** null: there is no other app */
  rolloutTurns: Turns | null,
  /** the port below that of slot 1; 0: they have none */
  portPerSlot: number,
  vitals: Pick<Vitals, 'accept' | 'began' | 'left' | 'latest' | 'lastMinute' | 'answers'>,
  appMetrics: AppMetrics,
  crashes: Pick<CrashRecorder, 'examine' | 'record'>,
  /** makes the release of a deploy */
  prepare: (source: Record<string, unknown>, by: { note: string | null, actor: string }) => Promise<Release>,
  hooks: Pick<Hooks, 'has' | 'beforeStart' | 'beforeDeploy' | 'endOf'>,
  judge: Pick<ReturnType<typeof createJudge>, 'begin' | 'accept' | 'judge'>,
  drift: Pick<Drift, 'noteLoaded' | 'renew'> & { look: (ids: string[]) => Record<string, Change> }
}

/** What the parts of the supervisor share: `state` changes with each input. */
export function createCluster (state: PoolState, services: Services, receive: (input: PlainInput) => void) {
  const handles: Map<number, WorkerHandle | OrphanHandle> = new Map()
  const news = new EventEmitter<News>().setMaxListeners(0)
  news.on('ready', (worker) => {
    const { slot = null } = cluster.state.workers[worker] ?? {}
    if (slot !== null) services.vitals.began(worker, slot)
  })
  news.on('left', (worker) => {
    handles.delete(worker)
    services.vitals.left(worker)
    services.appMetrics.left(worker)
  })
  const cluster = Object.assign(news, services, {
    state,
    handles,
    receive,
    /** the workers serve on without this master, which does nothing any more */
    isLetGo: false,

    tell (worker: number, message: ToWorker, handle?: Handle) {
      handles.get(worker)?.tell(message, handle)
    }
  })
  return cluster
}

/** When an input has come, and what decides where chance does. */
export function stamp () {
  return { at: performance.now(), time: Date.now(), random: Math.random() }
}
