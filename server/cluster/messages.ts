import { constants } from 'node:os'
import { errorText } from '../errors.ts'
import { createIpcValidation } from '../system/ipc-validation.ts'
import { toHolds } from './told-counts.ts'
import type { ToMaster } from '../../workers/protocol.ts'
import type { Cluster, Messages } from './cluster.ts'
import type { Parts } from './parts.ts'

const EADDRINUSE = -constants.errno.EADDRINUSE
const EMFILE = -constants.errno.EMFILE
/** A request for a blocked address is tried again this often: connections are refused until the address is bound. */
const BLOCKED_RETRY_MS = 20
/** A worker waits this long for an address that another starting worker holds. */
const CONTENTION_MS = 2000
/** One resource of each kind is enough to know what a worker does. */
const MAX_RESOURCES = 50

/** by worker-handle.ts and watchdog.ts */
type HeardElsewhere = 'hello' | 'crash-note' | 'unfinished' | 'inspected' | 'max-requests' | 'leaving'
type Handled = Omit<Messages, HeardElsewhere>

/**
 * Handles messages of a worker's own side. The app could have sent any of them, so a field may hold anything: whatever
 * is kept of it is checked, and a message that makes no sense is reported.
 */
export function createMessages (cluster: Cluster,
  { sockets, standbys, boots, watchdog, noteFiles, openRequests, acceptFairness, requestFairness }: Parts)
{
  const { handles, receive, events, vitals, appMetrics, judge } = cluster
  const ipcValidation = createIpcValidation({
    tell: (worker, message) => events.publish({ type: 'unexpected', worker, message })
  })
  cluster.on('left', ipcValidation.left)
  const handlers: { [Type in keyof Handled]: (worker: number, message: Handled[Type]) => unknown } = {
    /** `since`: it has to be tried again since then */
    socket (worker: number, request: Messages['socket'] & { since?: number }) {
      const { seq, query, data, isOnlyIfHeld = false } = request
      if (!handles.has(worker)) return
      if (standbys.has(worker)) return standbys.hold(worker, () => handlers.socket(worker, request))
      const tryAgain = () => setTimeout(handleMessage, BLOCKED_RETRY_MS, worker, request)
      if (!isOnlyIfHeld && sockets.isContended(worker, query) &&
        performance.now() - (request.since ??= performance.now()) < CONTENTION_MS)
        return tryAgain()
      const { handle, keeping, until, ...reply } = sockets.request(worker, { query, data, slot: slotOf(worker),
        isOnlyIfHeld })
      if (until) return onceKept(worker, until, () => handlers.socket(worker, request))
      if (reply.errno === EADDRINUSE && sockets.makesWay(reply.key)) return tryAgain()
      onceKept(worker, keeping, () => cluster.tell(worker, { type: 'socket', seq, ...reply }, handle))
    },
    'release-socket' (worker, { key }) {
      sockets.release(worker, key)
      acceptFairness.passOn(worker)
    },
    problem: (worker, { message }) => events.publish({ type: 'unexpected', worker, message: clipText(message) }),
    spread: (worker, { isEven }) => acceptFairness.heard(worker, isEven === true),
    draining: acceptFairness.passOn,
    'bind-failed' (worker, { seq, query, errno }) {
      if (!sockets.bindFailed(query, errno)) cluster.tell(worker, { type: 'socket', seq, key: '', errno })
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
        cluster.emit('ready', worker)
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
    diagnosed: (worker, reply) => cluster.emit('diagnosed', worker, reply),
    'heap-kept': (worker, reply) => cluster.emit('heap-kept', worker, reply),
    requests: openRequests.answered,
    crashing (worker, { errorName, errorMessage }) {
      acceptFairness.passOn(worker)
      receive({ type: 'worker-crashing', worker, errorName: clipText(errorName), errorMessage: clipText(errorMessage) })
    },
    files: noteFiles,
    holds: (worker, report) => receive({ type: 'worker-holds', worker, holds: toHolds(report) }),
    'let-go-done': (worker, { connections }) => requestFairness.answered(worker, Number(connections)),
    drained: (worker, { heapBytes }) => receive({ type: 'worker-drained', worker, heapBytes: Number(heapBytes) }),
    'app-metrics': (worker, message) =>
      appMetrics.accept(worker, message, { isAlive: worker in cluster.state.workers }),
    'app-metrics-wanted': (worker, message) => appMetrics.answer(worker, message),
    vitals (worker, report) {
      const known = cluster.state.workers[worker]
      if (!known) return
      if (known.slot === null) return standbys.note(worker, report)
      vitals.accept(worker, known.slot, report, known.release)
      requestFairness.heard(worker, vitals.latest(worker))
      if (cluster.state.rollout) judge.accept(worker, report)
    }
  }

  return {
    hear: receiveMessage,
    /** What was dropped of a worker's messages, and why. */
    hearInvalid: ipcValidation.hear
  }

  function slotOf (worker: number): number | undefined {
    return cluster.state.workers[worker]?.slot ?? undefined
  }

  function receiveMessage (worker: number, message: ToMaster) {
    // A closed address has to become free, whatever else goes on.
    if (message.type === 'release-socket' || ipcValidation.admit(worker, isHandled(message) ? message.type : 'other'))
      handleMessage(worker, message)
    // A worker that asks for a socket waits for the answer.
    else if (message.type === 'socket')
      cluster.tell(worker, { type: 'socket', seq: message.seq, key: '', errno: EMFILE })
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
