import { keepAddresses } from './addresses.js'
import { endsByItself } from './restart-policy.js'
import { nameOf } from './worker.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */

/** @param {{ path?: string, warmup?: readonly string[] }} ready whether a worker asks its app before it accepts connections */
export function isAsked ({ path, warmup = [] }) {
  return path !== undefined || warmup.length > 0
}

/** @param {Transition} _turn @param {Worker} worker @param {{ text: string }} seen why its app is not ready yet */
export function takeNoteOfProbe (_turn, worker, { text }) {
  if (worker.state === 'starting') worker.probed = text
}

/**
 * @param {Worker} worker that has had its time
 * @param {import('./state.js').LifecycleOptions['ready']} ready
 * @returns {string} what it was not, and what was last seen of it
 */
export function notReadyInTime ({ id, slot, probed, readyTimeoutMs, starvedMs = 0 }, ready) {
  const option = readyTimeoutMs === ready.timeoutMs ? 'ready.timeoutMs' : 'rollout.limits.readyTimeoutMs'
  const [first] = [ready.path, ...ready.warmup ?? []].filter(Boolean)
  const seen = isAsked(ready) ? `: ${probed ?? `nobody could be asked for ${first}, as no HTTP server of the app has listened`}` : ''
  const starved = starvedMs > 0 ? ` and another ${starvedMs} ms, in which it waited for a CPU` : ''
  return `worker ${id} (slot ${slot}) was not ready within ${readyTimeoutMs} ms (option ${option})${starved}${seen}`
}

/** A thread that the process lives for; the name is the worker's own, as Node has none. */
const THREAD = 'Thread'

/** What keeps a process running that is no server: a timer, a UDP socket, a child, a connection, a file that is watched, a thread. */
const ACTIVITY = ['Timeout', 'UDPWrap', 'UDPWRAP', 'ProcessWrap', 'TCPSocketWrap', 'TLSWrap', 'FSEventWrap', 'MessagePort', THREAD]

/** How long a worker has to be alive where those before it did not listen either. */
const ALIVE_MS = 5000

/** @typedef {import('./state.js').PoolState} PoolState */

/**
 * @param {PoolState} state @param {Worker} worker that has had its time
 * @returns {boolean} whether it runs as it should, though it does not listen: a bot, a job, or a server of UDP alone. What
 *   has listened before in its slot, or is to be asked over HTTP, is not ready without that
 */
export function isNoServer ({ options: { ready, restart }, addresses }, { slot, resources = [], addresses: own, report }) {
  if (slot === null || ready.signal !== 'auto' || isAsked(ready) || report || own.length > 0 || (addresses[slot] ?? []).length > 0) return false
  // What may end by itself has something to do for as long as it does not.
  return endsByItself(restart) || resources.some((each) => ACTIVITY.includes(each))
}

/**
 * Before its time is up a worker is taken for no server only where nothing of it has ever listened: one that takes long
 * to start would be ready where nobody answers.
 * @param {PoolState} state @param {Worker} worker that has only waited for a while, and holds no code of a server
 */
export function isSurelyNoServer (state, worker) {
  const everyone = [...Object.values(state.workers).map(({ addresses }) => addresses), ...Object.values(state.addresses)]
  return !state.hasListened && everyone.every((addresses) => addresses.length === 0) && isNoServer(state, worker)
}

/** @param {Transition} transition @param {Worker} worker that does not listen yet: where those before it were no server it need not wait for the end of its time */
export function watchNoServer ({ state, at, command }, worker) {
  if (worker.slot === null || !isKnownNoServer(state, worker.slot)) return
  command({ type: 'set-deadline', deadline: 'alive', id: worker.id, ms: Math.max(0, ALIVE_MS - Math.round(at - worker.forkedAt)) })
}

/** @param {PoolState} state @param {number} slot @returns {boolean} whether what ran there before was no server, or in any other slot while none was one */
function isKnownNoServer ({ options: { ready }, addresses }, slot) {
  if (ready.signal !== 'auto' || isAsked(ready)) return false
  const known = addresses[slot] ? [addresses[slot]] : Object.values(addresses)
  return known.length > 0 && known.every((each) => each.length === 0)
}

/** @param {Transition} transition @param {Worker} worker that counts as ready from now on; said once, of the first one of an app */
export function beNoServer (transition, worker) {
  const isFirst = Object.keys(transition.state.addresses).length === 0
  worker.isNoServer = true
  transition.command({ type: 'count-as-ready', worker: worker.id })
  if (!isFirst) return
  const afterMs = Math.round(transition.at - worker.forkedAt)
  const threads = worker.resources?.includes(THREAD) ? '. It runs threads: where one of them listens, that socket is its own, and no second worker can listen there' : ''
  transition.emitForWorker('worker.no-server', worker, {
    actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) does not listen after ${afterMs} ms and counts as ready; for an app without a server, ready.signal: online (--ready-signal online) avoids this wait, and ready.signal: listening waits for a slow one${threads}`
  })
}

/** @param {Transition} transition @param {Worker} worker a thread of which could not listen @param {{ message: string }} seen */
export function tellThreadPort (transition, worker, { message }) {
  transition.emitForWorker('worker.thread-port-taken', worker, {
    actor: 'system',
    message: `a thread of ${nameOf(worker)} cannot listen, as another process does (${message}): the socket of a thread is its own, and workers cannot share it. Listen in the main thread, or run one worker with rollout.order: stop-first`
  })
}

/** @param {Transition} transition @param {Worker} worker that has listened after all: so have its successors to */
export function listenLate (transition, worker) {
  if (!worker.isNoServer || worker.state !== 'ready') return
  delete worker.isNoServer
  keepAddresses(transition, worker)
  transition.emitForWorker('worker.listens-late', worker, {
    actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) listens after ${Math.round(transition.at - worker.forkedAt)} ms, and had counted as ready before; from now on its slot waits for that; at a first start ready.signal: listening does`
  })
}

/**
 * @param {import('./state.js').PoolState} state
 * @returns {string | null} what a start that takes its time is waiting for; null: no worker is starting
 */
export function waitingFor ({ phase, workers, slots, awaitsHook, options: { ready } }) {
  if (phase !== 'starting') return null
  const unready = slots.filter(({ serving, finished }) => finished === null && workers[serving ?? 0]?.state !== 'ready')
  if (awaitsHook) return 'no worker is started before hooks.beforeStart has passed'
  const waiting = Object.values(workers).filter(({ state }) => state === 'starting')
  if (waiting.length === 0) return null
  return `${unready.length} of ${slots.length} ${slots.length === 1 ? 'worker is' : 'workers are'} not ready yet: ${whatFor(waiting[0], ready)}`
}

/** @param {Worker} worker @param {import('./state.js').LifecycleOptions['ready']} ready */
function whatFor ({ probed, report, addresses }, ready) {
  if (report) return 'the app does not listen where it did before (option ready.addresses)'
  if (probed) return `${probed} (option ready.path)`
  if (ready.signal === 'message') return 'the app has not sent "ready" (option ready.signal: message)'
  if (ready.signal === 'online' || addresses.length > 0) return `the app is not ready (option ready.signal: ${ready.signal})`
  return `the app does not listen yet (option ready.signal: ${ready.signal}; if it is no server: --ready-signal online)`
}

/** @param {Transition} transition @param {Worker} worker that is ready now @param {{ warmupFailed?: string | null }} report */
export function tellWarmUp (transition, worker, { warmupFailed }) {
  if (warmupFailed) transition.emitForWorker('worker.warm-up-failed', worker, { message: warmupFailed })
}
