import { constants } from 'node:os'
import { mayChange } from '../releases/resolve.js'

const EADDRINUSE = -constants.errno.EADDRINUSE
const EMFILE = -constants.errno.EMFILE
/** A request for a blocked address is tried again this often: connections are refused until the address is bound. */
const BLOCKED_RETRY_MS = 20
/** A worker waits this long for an address that another starting worker holds. */
const CONTENTION_MS = 2000
/** One resource of each kind is enough to know what a worker does. */
const MAX_RESOURCES = 50

/**
 * Handles messages of a worker's own side. The app could have sent any of them, so they are not trusted.
 * @param {object} parts
 * @param {() => import('../lifecycle/state.js').PoolState} parts.state
 * @param {Map<number, import('./worker-handle.js').WorkerHandle | import('./orphan-handle.js').OrphanHandle>} parts.handles
 * @param {(input: import('../lifecycle/state.js').PlainInput) => void} parts.receive
 * @param {ReturnType<typeof import('./sockets.js').createSockets>} parts.sockets
 * @param {import('./slot-ports.js').SlotPorts} parts.slotPorts
 * @param {import('./standbys.js').Standbys} parts.standbys
 * @param {Pick<import('./boots.js').Boots, 'costOf'>} parts.boots
 * @param {ReturnType<typeof import('./watchdog.js').createWatchdog>} parts.watchdog
 * @param {Pick<import('../vitals/vitals.js').Vitals, 'accept'>} parts.vitals
 * @param {{ accept: (worker: number, body: any) => void }} parts.judge
 * @param {Pick<import('../releases/drift.js').Drift, 'noteLoaded'>} parts.drift
 * @param {() => number} parts.now
 * @param {(key: string) => boolean} parts.mayMakeWay  whether an address that is taken will be free soon
 * @param {(query: any, errno: number) => boolean} parts.onBindFailed  whether the start ends with it
 * @param {(files: unknown[]) => void} parts.onLoaded
 * @param {(worker: number, reply: any) => void} parts.onDiagnosed
 * @param {Pick<ReturnType<typeof import('./open-requests.js').createOpenRequests>, 'answered'>} parts.openRequests
 * @param {Pick<import('./accept-fairness.js').AcceptFairness, 'heard' | 'passOn'>} parts.acceptFairness
 * @param {Pick<ReturnType<typeof import('../system/ipc-validation.js').createIpcValidation>, 'admit' | 'hear'>} parts.ipcValidation
 */
export function createMessages ({
  state, handles, receive, sockets, slotPorts, standbys, boots, watchdog, vitals, judge, drift, now,
  mayMakeWay, onBindFailed, onLoaded, onDiagnosed, openRequests, acceptFairness, ipcValidation
}) {
  const messages = {
    socket (/** @type {number} */ worker, /** @type {any} */ request) {
      const { seq, query, data } = request
      if (!handles.has(worker)) return
      if (standbys.has(worker)) return standbys.hold(worker, () => messages.socket(worker, request))
      if (sockets.isContended(worker, query) && now() - (request.since ??= now()) < CONTENTION_MS) return setTimeout(handleMessage, BLOCKED_RETRY_MS, worker, request)
      const { handle, ...reply } = sockets.request(worker, { query, data, slot: slotOf(worker) })
      if (reply.errno === EADDRINUSE && mayMakeWay(reply.key)) return setTimeout(handleMessage, BLOCKED_RETRY_MS, worker, request)
      handles.get(worker)?.tell({ type: 'socket', seq, ...reply }, handle)
    },
    'release-socket' (/** @type {number} */ worker, /** @type {any} */ { key }) {
      sockets.release(worker, key)
      acceptFairness.passOn(worker)
    },
    spread: (/** @type {number} */ worker, /** @type {any} */ { isEven }) => acceptFairness.heard(worker, isEven === true),
    draining: acceptFairness.passOn,
    'bind-failed' (/** @type {number} */ worker, /** @type {any} */ { seq, query, errno }) {
      if (!onBindFailed(query, errno)) handles.get(worker)?.tell({ type: 'socket', seq, key: '', errno })
    },
    listening: (/** @type {number} */ worker, /** @type {any} */ { address, isFixed }) => receive({ type: 'worker-listening', worker, url: clipText(address), isFixed: isFixed === true }),
    closed: (/** @type {number} */ worker, /** @type {any} */ { address }) => receive({ type: 'worker-closed', worker, url: clipText(address) }),
    active: (/** @type {number} */ worker, /** @type {any} */ { resources, isIdle }) => receive({ type: 'worker-active', worker, resources: resources.slice(0, MAX_RESOURCES).map(clipText), isIdle: isIdle === true }),
    'thread-port-taken': (/** @type {number} */ worker, /** @type {any} */ { message }) => receive({ type: 'thread-port-taken', worker, message: clipText(message) }),
    probed: (/** @type {number} */ worker, /** @type {any} */ { text }) => receive({ type: 'worker-probed', worker, text: clipText(text) }),
    ready (/** @type {number} */ worker, /** @type {any} */ { probe, warmupFailed }) {
      if (standbys.has(worker)) return
      const handle = handles.get(worker)
      sockets.establish(worker)
      if (handle && 'accept' in handle) handle.accept()
      slotPorts.open(worker, slotOf(worker))
      receive({ type: 'worker-ready', worker, boot: boots.costOf(worker), ...(probe ? { probe: clipText(probe) } : {}), ...(warmupFailed ? { warmupFailed: clipText(warmupFailed) } : {}) })
    },
    'slot-read' (/** @type {number} */ worker, /** @type {any} */ { name, place }) {
      receive({ type: 'worker-read-slot', worker, name: clipText(name), place: typeof place === 'string' ? clipText(place) : null })
    },
    diagnosed: onDiagnosed,
    requests: openRequests.answered,
    crashing (/** @type {number} */ worker, /** @type {any} */ { errorName, errorMessage }) {
      acceptFairness.passOn(worker)
      receive({ type: 'worker-crashing', worker, errorName: clipText(errorName), errorMessage: clipText(errorMessage) })
    },
    files (/** @type {number} */ worker, /** @type {any} */ { files }) {
      const known = state().workers[worker]
      if (!known || !Array.isArray(files)) return
      if (mayChange(state().releases[known.release])) drift.noteLoaded(known.release, files, { id: worker, forkedAt: Date.parse(known.startedAt) })
      onLoaded(files)
    },
    drained: (/** @type {number} */ worker) => receive({ type: 'worker-drained', worker }),
    vitals (/** @type {number} */ worker, /** @type {any} */ body) {
      const known = state().workers[worker]
      if (!known) return
      if (known.slot === null) return standbys.note(worker, body)
      vitals.accept(worker, known.slot, body)
      if (state().rollout) judge.accept(worker, body)
    }
  }
  return receiveMessage

  /** @param {number} worker @returns {number | undefined} */
  function slotOf (worker) {
    return state().workers[worker]?.slot ?? undefined
  }

  /** @param {number} worker @param {any} body */
  function receiveMessage (worker, body) {
    const { type } = Object(body)
    // A closed address has to become free, whatever else goes on.
    if (type === 'release-socket' || ipcValidation.admit(worker, Object.hasOwn(messages, type) ? type : 'other')) handleMessage(worker, body)
    // A worker that asks for a socket waits for the answer.
    else if (type === 'socket') handles.get(worker)?.tell({ type: 'socket', seq: body.seq, key: '', errno: EMFILE })
  }

  /** @param {number} worker @param {any} body */
  function handleMessage (worker, body) {
    try {
      watchdog.heard(worker, body)
      if (Object.hasOwn(messages, body.type)) messages[/** @type {keyof typeof messages} */ (body.type)](worker, body)
    } catch (/** @type {any} */ error) {
      ipcValidation.hear(worker, `a message that cannot be read: ${error.message}`)
    }
  }
}

/** @param {unknown} text of the app's own */
function clipText (text) {
  return String(text).slice(0, 1000)
}
