import { slotOf } from './addresses.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Worker} Worker */

/** @param {{ path?: string, warmup?: readonly string[] }} ready whether a worker asks its app before it accepts connections */
export function isAsked ({ path, warmup = [] }) {
  return path !== undefined || warmup.length > 0
}

/** @param {Turn} _turn @param {Worker} worker @param {{ text: string }} seen why its app is not ready yet */
export function takeNoteOfProbe (_turn, worker, { text }) {
  if (worker.state === 'starting') worker.probed = text
}

/**
 * @param {Worker} worker that has had its time
 * @param {import('./state.js').LifecycleOptions['ready']} ready
 * @returns {string} what it was not, and what was last seen of it
 */
export function notReadyInTime ({ id, slot, probed, readyTimeoutMs }, ready) {
  const option = readyTimeoutMs === ready.timeoutMs ? 'ready.timeoutMs' : 'rollout.limits.readyTimeoutMs'
  const [first] = [ready.path, ...ready.warmup ?? []].filter(Boolean)
  const seen = isAsked(ready) ? `: ${probed ?? `nobody could be asked for ${first}, as no HTTP server of the app has listened`}` : ''
  return `worker ${id} (slot ${slot}) was not ready within ${readyTimeoutMs} ms (option ${option})${seen}`
}

/** What keeps a process running that is no server: a timer, a UDP socket, a child, a connection, a file that is watched, a thread. */
const ACTIVITY = ['Timeout', 'UDPWrap', 'UDPWRAP', 'ProcessWrap', 'TCPSocketWrap', 'TLSWrap', 'FSEventWrap', 'MessagePort', 'Worker']

/**
 * @param {Turn} turn @param {Worker} worker that has had its time
 * @returns {boolean} whether it runs as it should, though it does not listen: a bot, or a server of UDP alone. What has
 *   listened before, or is to be asked over HTTP, is not ready without that
 */
export function isNoServer ({ state: { options: { ready }, addresses } }, { slot, resources = [], addresses: own, report }) {
  if (ready.signal !== 'listening' || isAsked(ready) || report || own.length > 0 || (addresses[slotOf({ slot })] ?? []).length > 0) return false
  return resources.some((each) => ACTIVITY.includes(each))
}

/** @param {Turn} turn @param {Worker} worker said once, of the first one of an app */
export function tellNoServer (turn, worker) {
  if (turn.state.addresses[slotOf(worker)] || Object.values(turn.state.addresses).length > 0) return
  turn.tellOf('worker.no-server', worker, {
    actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) does not listen after ${worker.readyTimeoutMs} ms and counts as ready; for an app without a server, ready.signal: online (--ready-signal online) avoids this wait`
  })
}

/**
 * @param {import('./state.js').PoolState} state
 * @returns {string | null} what a start that takes its time is waiting for; null: no worker is starting
 */
export function waitingFor ({ phase, workers, slots, options: { ready } }) {
  const waiting = Object.values(workers).filter(({ state }) => state === 'starting')
  if (phase !== 'starting' || waiting.length === 0) return null
  return `${waiting.length} of ${slots.length} ${slots.length === 1 ? 'worker is' : 'workers are'} not ready yet: ${whatFor(waiting[0], ready)}`
}

/** @param {Worker} worker @param {import('./state.js').LifecycleOptions['ready']} ready */
function whatFor ({ probed, report, addresses }, ready) {
  if (report) return 'the app does not listen where it did before (option ready.addresses)'
  if (probed) return `${probed} (option ready.path)`
  if (ready.signal === 'message') return 'the app has not sent "ready" (option ready.signal: message)'
  if (ready.signal === 'online' || addresses.length > 0) return `the app is not ready (option ready.signal: ${ready.signal})`
  return 'the app does not listen yet (option ready.signal: listening; if it is no server: --ready-signal online)'
}

/** @param {Turn} turn @param {Worker} worker that is ready now @param {{ warmupFailed?: string | null }} report */
export function tellWarmUp (turn, worker, { warmupFailed }) {
  if (warmupFailed) turn.tellOf('worker.warm-up-failed', worker, { message: warmupFailed })
}
