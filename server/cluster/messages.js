import { constants } from 'node:os'
import { errorText } from '../errors.js'
import { mayChange } from '../releases/resolve.js'
import { toHolds } from './told-counts.js'

const EADDRINUSE = -constants.errno.EADDRINUSE
const EMFILE = -constants.errno.EMFILE
/** A request for a blocked address is tried again this often: connections are refused until the address is bound. */
const BLOCKED_RETRY_MS = 20
/** A worker waits this long for an address that another starting worker holds. */
const CONTENTION_MS = 2000
/** One resource of each kind is enough to know what a worker does. */
const MAX_RESOURCES = 50

/** @typedef {import('../../workers/protocol.js').ToMaster} ToMaster */
/** @typedef {{ [Message in ToMaster as Message['type']]: Message }} Messages  by type */
/**
 * What the app counts by prom-client.
 * @typedef {object} AppMetrics
 * @property {(worker: number, message: Messages['app-metrics'], how: { isAlive: boolean }) => void} accept
 * @property {(worker: number, message: Messages['app-metrics-wanted']) => unknown} answer
 */
/** @typedef {'hello' | 'crash-note' | 'unfinished' | 'inspected' | 'max-requests' | 'leaving'} HeardElsewhere  by worker-handle.js and watchdog.js */
/** @typedef {Omit<Messages, HeardElsewhere>} Handled */

/**
 * Handles messages of a worker's own side. The app could have sent any of them, so a field may hold anything: whatever is
 * kept of it is checked, and a message that makes no sense is reported.
 * @param {object} parts
 * @param {() => import('../lifecycle/state.js').PoolState} parts.state
 * @param {Map<number, import('./worker-handle.js').WorkerHandle | import('./orphan-handle.js').OrphanHandle>} parts.handles
 * @param {(input: import('../lifecycle/state.js').PlainInput) => void} parts.receive
 * @param {ReturnType<typeof import('./sockets.js').createSockets>} parts.sockets
 * @param {import('./slot-ports.js').SlotPorts} parts.slotPorts
 * @param {import('./standbys.js').Standbys} parts.standbys
 * @param {Pick<import('./boots.js').Boots, 'costOf'>} parts.boots
 * @param {ReturnType<typeof import('./watchdog.js').createWatchdog>} parts.watchdog
 * @param {Pick<import('../vitals/vitals.js').Vitals, 'accept' | 'latest'>} parts.vitals
 * @param {AppMetrics} parts.appMetrics
 * @param {{ accept: (worker: number, report: import('../../workers/protocol.js').VitalsReport) => void }} parts.judge
 * @param {Pick<import('../releases/drift.js').Drift, 'noteLoaded'>} parts.drift
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 * @param {() => number} parts.now
 * @param {(key: string) => boolean} parts.mayMakeWay  whether an address that is taken will be free soon
 * @param {(query: import('../../workers/protocol.js').SocketQuery, errno: number) => boolean} parts.onBindFailed  whether the start ends with it
 * @param {(files: unknown[]) => void} parts.onLoaded
 * @param {(worker: number, reply: Messages['diagnosed']) => void} parts.onDiagnosed
 * @param {(worker: number, reply: Messages['heap-kept']) => void} parts.onHeapKept
 * @param {Pick<ReturnType<typeof import('./open-requests.js').createOpenRequests>, 'answered'>} parts.openRequests
 * @param {Pick<import('./accept-fairness.js').AcceptFairness, 'heard' | 'passOn'>} parts.acceptFairness
 * @param {Pick<import('./request-fairness.js').RequestFairness, 'heard' | 'answered'>} parts.requestFairness
 * @param {Pick<ReturnType<typeof import('../system/ipc-validation.js').createIpcValidation>, 'admit' | 'hear'>} parts.ipcValidation
 */
export function createMessages ({
  state, handles, receive, sockets, slotPorts, standbys, boots, watchdog, vitals, appMetrics, judge, drift, now,
  events, mayMakeWay, onBindFailed, onLoaded, onDiagnosed, onHeapKept, openRequests, acceptFairness, requestFairness, ipcValidation
}) {
  /** @type {{ [Type in keyof Handled]: (worker: number, message: Handled[Type]) => unknown }} */
  const handlers = {
    /** @param {number} worker @param {Messages['socket'] & { since?: number }} request  `since`: it has to be tried again since then */
    socket (worker, request) {
      const { seq, query, data, isOnlyIfHeld = false } = request
      if (!handles.has(worker)) return
      if (standbys.has(worker)) return standbys.hold(worker, () => handlers.socket(worker, request))
      const tryAgain = () => setTimeout(handleMessage, BLOCKED_RETRY_MS, worker, request)
      if (!isOnlyIfHeld && sockets.isContended(worker, query) && now() - (request.since ??= now()) < CONTENTION_MS) return tryAgain()
      const { handle, keeping, until, ...reply } = sockets.request(worker, { query, data, slot: slotOf(worker), isOnlyIfHeld })
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
    listening: (worker, { address, isFixed }) => receive({ type: 'worker-listening', worker, url: clipText(address), isFixed: isFixed === true }),
    closed: (worker, { address }) => receive({ type: 'worker-closed', worker, url: clipText(address) }),
    active (worker, { resources, isIdle }) {
      receive({ type: 'worker-active', worker, resources: resources.slice(0, MAX_RESOURCES).map(clipText), isIdle: isIdle === true })
    },
    'thread-port-taken': (worker, { message }) => receive({ type: 'thread-port-taken', worker, message: clipText(message) }),
    probed: (worker, { text }) => receive({ type: 'worker-probed', worker, text: clipText(text) }),
    ready (worker, { probe, warmupFailed }) {
      if (standbys.has(worker)) return
      onceKept(worker, sockets.establish(worker), () => {
        const handle = handles.get(worker)
        if (handle && 'accept' in handle) handle.accept()
        slotPorts.open(worker, slotOf(worker))
        receive({
          type: 'worker-ready',
          worker,
          boot: boots.costOf(worker),
          ...(probe && { probe: clipText(probe) }),
          ...(warmupFailed && { warmupFailed: clipText(warmupFailed) })
        })
      })
    },
    'socket-note': (worker, { text }) => receive({ type: 'worker-socket-note', worker, text: clipText(text) }),
    'status-text': (worker, { text }) => receive({ type: 'worker-status-text', worker, text: clipText(text) }),
    silent: (worker, { text }) => receive({ type: 'worker-silent', worker, message: `worker ${worker}: ${clipText(text)}` }),
    answered (worker) { receive({ type: 'worker-answered', worker }) },
    stopping (worker) { receive({ type: 'worker-stopping', worker }) },
    'slot-read' (worker, { name, place }) {
      receive({ type: 'worker-read-slot', worker, name: clipText(name), place: typeof place === 'string' ? clipText(place) : null })
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
      if (mayChange(state().releases[known.release])) drift.noteLoaded(known.release, files, { id: worker, forkedAt: Date.parse(known.startedAt) })
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

  /** @param {number} worker @returns {number | undefined} */
  function slotOf (worker) {
    return state().workers[worker]?.slot ?? undefined
  }

  /** @param {number} worker @param {ToMaster} message */
  function receiveMessage (worker, message) {
    // A closed address has to become free, whatever else goes on.
    if (message.type === 'release-socket' || ipcValidation.admit(worker, isHandled(message) ? message.type : 'other')) handleMessage(worker, message)
    // A worker that asks for a socket waits for the answer.
    else if (message.type === 'socket') handles.get(worker)?.tell({ type: 'socket', seq: message.seq, key: '', errno: EMFILE })
  }

  /** @param {number} worker @param {ToMaster} message */
  function handleMessage (worker, message) {
    hearSafely(worker, () => {
      watchdog.heard(worker, message)
      if (isHandled(message)) passToHandler(worker, message.type, message)
    })
  }

  /** What a worker sends may be anything, and harms nobody else. @param {number} worker @param {() => void} hear */
  function hearSafely (worker, hear) {
    try {
      hear()
    } catch (error) {
      ipcValidation.hear(worker, `a message that cannot be read: ${errorText(error)}`)
    }
  }

  /**
   * Acts at once, or when the keeper cannot lose the worker's sockets any more, unless the worker has ended by then.
   * @param {number} worker @param {Promise<unknown> | void} keeping @param {() => void} act
   */
  function onceKept (worker, keeping, act) {
    if (!keeping) return act()
    keeping.then(() => { if (handles.has(worker)) hearSafely(worker, act) })
  }

  /** @template {keyof Handled} Type @param {number} worker @param {Type} type @param {Handled[Type]} message */
  function passToHandler (worker, type, message) {
    handlers[type](worker, message)
  }

  /** @param {ToMaster} message @returns {message is Handled[keyof Handled]} */
  function isHandled (message) {
    return Object.hasOwn(handlers, message.type)
  }
}

/** @param {unknown} text of the app's own */
function clipText (text) {
  return String(text).slice(0, 1000)
}
