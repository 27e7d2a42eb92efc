import { constants } from 'node:os'
import { errorText } from '../errors.ts'
import { mayChange } from '../releases/resolve.ts'
import { toHolds } from './told-counts.ts'
import type { SocketQuery, ToMaster, VitalsReport } from '../../workers/protocol.ts'
import type { PlainInput, PoolState } from '../lifecycle/state.ts'
import type { WorkerHandle } from './worker-handle.ts'
import type { OrphanHandle } from './orphan-handle.ts'
import type { createSockets } from './sockets.ts'
import type { SlotPorts } from './slot-ports.ts'
import type { Standbys } from './standbys.ts'
import type { Boots } from './boots.ts'
import type { createWatchdog } from './watchdog.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { Drift } from '../releases/drift.ts'
import type { EventStream } from '../events/stream.ts'
import type { createOpenRequests } from './open-requests.ts'
import type { AcceptFairness } from './accept-fairness.ts'
import type { RequestFairness } from './request-fairness.ts'
import type { createIpcValidation } from '../system/ipc-validation.ts'

const EADDRINUSE = -constants.errno.EADDRINUSE
const EMFILE = -constants.errno.EMFILE
/** A request for a blocked address is tried again this often: connections are refused until the address is bound. */
const BLOCKED_RETRY_MS = 20
/** A worker waits this long for an address that another starting worker holds. */
const CONTENTION_MS = 2000
/** One resource of each kind is enough to know what a worker does. */
const MAX_RESOURCES = 50

/** by type */
type Messages = { [Message in ToMaster as Message['type']]: Message }
/** What the app counts by prom-client. */
export type AppMetrics = {
  accept: (worker: number, message: Messages['app-metrics'], how: { isAlive: boolean }) => void,
  answer: (worker: number, message: Messages['app-metrics-wanted']) => unknown
}
/** by worker-handle.ts and watchdog.ts */
type HeardElsewhere = 'hello' | 'crash-note' | 'unfinished' | 'inspected' | 'max-requests' | 'leaving'
type Handled = Omit<Messages, HeardElsewhere>

/**
 * Handles messages of a worker's own side. The app could have sent any of them, so a field may hold anything: whatever
 * is kept of it is checked, and a message that makes no sense is reported.
 */
export function createMessages (
  { state, handles, receive, sockets, slotPorts, standbys, boots, watchdog, vitals, appMetrics, judge, drift, now,
    events, mayMakeWay, onBindFailed, onLoaded, onDiagnosed, onHeapKept, openRequests, acceptFairness, requestFairness,
    ipcValidation }: {
      state: () => PoolState,
      handles: Map<number, WorkerHandle | OrphanHandle>,
      receive: (input: PlainInput) => void,
      sockets: ReturnType<typeof createSockets>,
      slotPorts: SlotPorts,
      standbys: Standbys,
      boots: Pick<Boots, 'costOf'>,
      watchdog: ReturnType<typeof createWatchdog>,
      vitals: Pick<Vitals, 'accept' | 'latest'>,
      appMetrics: AppMetrics,
      judge: { accept: (worker: number, report: VitalsReport) => void },
      drift: Pick<Drift, 'noteLoaded'>,
      events: Pick<EventStream, 'publish'>,
      now: () => number,
      /** whether an address that is taken will be free soon */
      mayMakeWay: (key: string) => boolean,
      /** whether the start ends with it */
      onBindFailed: (query: SocketQuery, errno: number) => boolean,
      onLoaded: (files: unknown[]) => void,
      onDiagnosed: (worker: number, reply: Messages['diagnosed']) => void,
      onHeapKept: (worker: number, reply: Messages['heap-kept']) => void,
      openRequests: Pick<ReturnType<typeof createOpenRequests>, 'answered'>,
      acceptFairness: Pick<AcceptFairness, 'heard' | 'passOn'>,
      requestFairness: Pick<RequestFairness, 'heard' | 'answered'>,
      ipcValidation: Pick<ReturnType<typeof createIpcValidation>, 'admit' | 'hear'>
    }
) {
  const handlers: { [Type in keyof Handled]: (worker: number, message: Handled[Type]) => unknown } = {
    /** `since`: it has to be tried again since then */
    socket (worker: number, request: Messages['socket'] & { since?: number }) {
      const { seq, query, data, isOnlyIfHeld = false } = request
      if (!handles.has(worker)) return
      if (standbys.has(worker)) return standbys.hold(worker, () => handlers.socket(worker, request))
      const tryAgain = () => setTimeout(handleMessage, BLOCKED_RETRY_MS, worker, request)
      if (!isOnlyIfHeld && sockets.isContended(worker, query) && now() - (request.since ??= now()) < CONTENTION_MS)
        return tryAgain()
      const { handle, keeping, until, ...reply } = sockets.request(worker, { query, data, slot: slotOf(worker),
        isOnlyIfHeld })
      if (until) return onceKept(worker, until, () => handlers.socket(worker, request))
      if (reply.errno === EADDRINUSE && mayMakeWay(reply.key)) return tryAgain()
      onceKept(worker, keeping, () => handles.get(worker)?.tell({ type: 'socket', seq, ...reply }, handle))
    },
    'release-socket' (worker, { key }) {
      sockets.release(worker, key)
      acceptFairness.passOn(worker)
    },
    problem: (worker, { message }) => events.publish({ type: 'unexpected', worker, message: clipText(message) }),
    spread: (worker, { isEven }) => acceptFairness.heard(worker, isEven === true),
    draining: acceptFairness.passOn,
    'bind-failed' (worker, { seq, query, errno }) {
      if (!onBindFailed(query, errno)) handles.get(worker)?.tell({ type: 'socket', seq, key: '', errno })
    },
    listening: (worker, { address, isFixed }) =>
      receive({ type: 'worker-listening', worker, url: clipText(address), isFixed: isFixed === true }),
    closed: (worker, { address }) => receive({ type: 'worker-closed', worker, url: clipText(address) }),
    active (worker, { resources, isIdle }) {
      receive({ type: 'worker-active', worker, resources: resources.slice(0, MAX_RESOURCES).map(clipText),
        isIdle: isIdle === true })
    },
    'thread-port-taken': (worker, { message }) =>
      receive({ type: 'thread-port-taken', worker, message: clipText(message) }),
    probed: (worker, { text }) => receive({ type: 'worker-probed', worker, text: clipText(text) }),
    ready (worker, { probe, warmupFailed }) {
      if (standbys.has(worker)) return
      onceKept(worker, sockets.establish(worker), () => {
        handles.get(worker)?.tell({ type: 'serve' })
        slotPorts.open(worker, slotOf(worker))
        receive({ type: 'worker-ready', worker, boot: boots.costOf(worker), ...(probe && { probe: clipText(probe) }),
          ...(warmupFailed && { warmupFailed: clipText(warmupFailed) }) })
      })
    },
    'socket-note': (worker, { text }) => receive({ type: 'worker-socket-note', worker, text: clipText(text) }),
    'status-text': (worker, { text }) => receive({ type: 'worker-status-text', worker, text: clipText(text) }),
    silent: (worker, { text }) =>
      receive({ type: 'worker-silent', worker, message: `worker ${worker}: ${clipText(text)}` }),
    answered (worker) {
      receive({ type: 'worker-answered', worker })
    },
    stopping (worker) {
      receive({ type: 'worker-stopping', worker })
    },
    'slot-read' (worker, { name, place }) {
      receive({ type: 'worker-read-slot', worker, name: clipText(name),
        place: typeof place === 'string' ? clipText(place) : null })
    },
    diagnosed: onDiagnosed,
    'heap-kept': onHeapKept,
    requests: openRequests.answered,
    crashing (worker, { errorName, errorMessage }) {
      acceptFairness.passOn(worker)
      receive({ type: 'worker-crashing', worker, errorName: clipText(errorName), errorMessage: clipText(errorMessage) })
    },
    files (worker, { files }) {
      const known = state().workers[worker]
      if (!known || !Array.isArray(files)) return
      if (mayChange(state().releases[known.release]))
        drift.noteLoaded(known.release, files, { id: worker, forkedAt: Date.parse(known.startedAt) })
      onLoaded(files)
    },
    holds: (worker, report) => receive({ type: 'worker-holds', worker, holds: toHolds(report) }),
    'let-go-done': (worker, { connections }) => requestFairness.answered(worker, Number(connections)),
    drained: (worker, { heapBytes }) => receive({ type: 'worker-drained', worker, heapBytes: Number(heapBytes) }),
    'app-metrics': (worker, message) => appMetrics.accept(worker, message, { isAlive: worker in state().workers }),
    'app-metrics-wanted': (worker, message) => appMetrics.answer(worker, message),
    vitals (worker, report) {
      const known = state().workers[worker]
      if (!known) return
      if (known.slot === null) return standbys.note(worker, report)
      vitals.accept(worker, known.slot, report, known.release)
      requestFairness.heard(worker, vitals.latest(worker))
      if (state().rollout) judge.accept(worker, report)
    }
  }
  return receiveMessage

  function slotOf (worker: number): number | undefined {
    return state().workers[worker]?.slot ?? undefined
  }

  function receiveMessage (worker: number, message: ToMaster) {
    // A closed address has to become free, whatever else goes on.
    if (message.type === 'release-socket' || ipcValidation.admit(worker, isHandled(message) ? message.type : 'other'))
      handleMessage(worker, message)
    // A worker that asks for a socket waits for the answer.
    else if (message.type === 'socket')
      handles.get(worker)?.tell({ type: 'socket', seq: message.seq, key: '', errno: EMFILE })
  }

  function handleMessage (worker: number, message: ToMaster) {
    hearSafely(worker, () => {
      watchdog.heard(worker, message)
      if (isHandled(message)) passToHandler(worker, message.type, message)
    })
  }

  /** What a worker sends may be anything, and harms nobody else. */
  function hearSafely (worker: number, hear: () => void) {
    try {
      hear()
    } catch (error) {
      ipcValidation.hear(worker, `a message that cannot be read: ${errorText(error)}`)
    }
  }

  /**
   * Acts at once, or when the keeper cannot lose the worker's sockets any more, unless the worker has ended by then.
   */
  function onceKept (worker: number, keeping: Promise<unknown> | void, act: () => void) {
    if (!keeping) return act()
    keeping.then(() => {
      if (handles.has(worker)) hearSafely(worker, act)
    })
  }

  function passToHandler<Type extends keyof Handled> (worker: number, type: Type, message: Handled[Type]) {
    handlers[type](worker, message)
  }

  function isHandled (message: ToMaster): message is Handled[keyof Handled] {
    return Object.hasOwn(handlers, message.type)
  }
}

/** `text`: of the app's own */
function clipText (text: unknown) {
  return String(text).slice(0, 1000)
}
