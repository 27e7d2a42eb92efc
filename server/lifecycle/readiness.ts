import { isOfUdp, keepAddresses, type Address } from './addresses.ts'
import { endsByItself } from './restart-policy.ts'
import { nameOf } from './worker.ts'
import { durationText } from './duration.ts'
import type { Transition } from './transition.ts'
import type { Inputs, LifecycleOptions, PoolState, Worker } from './state.ts'

/** Tells whether a worker asks its app before it accepts connections */
export function isAsked ({ path, warmup = [] }: { path?: string, warmup?: readonly string[] }): boolean {
  return path !== undefined || warmup.length > 0
}

/** Tells whether a worker that listens, or runs, may not be ready yet */
export function isAnnounced (ready: LifecycleOptions['ready']): boolean {
  return isAsked(ready) || wordOf(ready) !== null
}

/** @returns what a worker says when it is ready, in words; null: it says nothing */
function wordOf ({ signal, log }: LifecycleOptions['ready']): string | null {
  if (log !== undefined) return `written the line ${JSON.stringify(log)} (option ready.log)`
  if (signal === 'message') return 'sent "ready" (option ready.signal: message)'
  return signal === 'notify' ? 'said READY=1 (option ready.signal: notify)' : null
}

/** `seen`: says why its app is not ready yet */
export function takeNoteOfProbe (_transition: Transition, worker: Worker, { text }: Inputs['worker-probed']) {
  if (worker.state === 'starting') worker.probed = text
}

/** `worker`: has reached its deadline. Returns a message with the last answer of the app. */
export function notReadyInTime ({ id, slot, probed, statusText, readyTimeoutMs, starvedMs = 0 }: Worker,
  ready: LifecycleOptions['ready']): string
{
  const option = readyTimeoutMs === ready.timeoutMs ? 'ready.timeoutMs' : 'rollout.limits.readyTimeoutMs'
  const seen = [whatIsMissing(probed, ready), statusText && `its status is "${statusText}"`].filter(Boolean).map((
    each
  ) => `: ${each}`).join('')
  const starved = starvedMs > 0 ? ` and another ${durationText(starvedMs)}, in which it waited for a CPU` : ''
  return `worker ${id} (slot ${slot}) was not ready within ${
    durationText(readyTimeoutMs)
  } (option ${option})${starved}${seen}`
}

/** @returns what a worker has not said or answered; null: it has only to listen, or to run */
function whatIsMissing (probed: string | undefined, ready: LifecycleOptions['ready']): string | null {
  const word = wordOf(ready)
  const silence = word && `it has not ${word}`
  if (!isAsked(ready)) return silence
  if (probed !== undefined) return probed
  if (silence) return `${silence}, or no HTTP server of it listens`
  const [first] = [ready.path, ...ready.warmup ?? []].filter(Boolean)
  return `nobody could be asked for ${first}, as no HTTP server of the app has listened`
}

/** A thread that keeps the process running. Node has no name for it; this one is our own. */
const THREAD = 'Thread'

/** A program that is no Node program tells no more than that it runs. */
const PROGRAM = 'Program'

/**
 * Resources that keep a process running without a server: timer, UDP socket, child, connection, watched file, thread.
 */
const ACTIVITY = ['Timeout', 'UDPWrap', 'UDPWRAP', 'ProcessWrap', 'TCPSocketWrap', 'TLSWrap', 'FSEventWrap',
  'MessagePort', THREAD, PROGRAM]

/** A worker counts as ready after this time where the workers before it did not listen either. */
const ALIVE_MS = 5000

function isOfConnections ({ url }: Address) {
  return !isOfUdp(url)
}

/** Tells whether it is left to the app if it listens, so that a worker may be ready without that */
function mayBeNoServer (ready: LifecycleOptions['ready']): boolean {
  return ready.signal === 'auto' && ready.log === undefined && !isAsked(ready)
}

/**
 * A bot, a job or a server of UDP alone never listens and is ready all the same. A slot that has listened before, or
 * whose app is asked over HTTP, is not ready without listening. `worker`: has reached its deadline.
 */
export function isNoServer ({ options: { ready, restart }, addresses }: PoolState,
  { slot, resources = [], addresses: own, report }: Worker): boolean
{
  if (slot === null || !mayBeNoServer(ready) || report) return false
  const isServer = (each: Address) => isOfConnections(each) || resources.includes(PROGRAM)
  const before = addresses[slot] ?? []
  if (own.some(isServer) ||
    before.some((each) => isServer(each) || (each.isFixed && !own.some(({ url }) => url === each.url)))) return false
  // A program that may end by itself is busy while it has not ended.
  return endsByItself(restart) || resources.some((each) => ACTIVITY.includes(each))
}

/**
 * Before its deadline a worker counts as no server only where this app has never listened: a server that is slow to
 * start would be ready too early. `worker`: has been idle for a while and has no code of a server loaded.
 */
export function isSurelyNoServer (state: PoolState, worker: Worker) {
  const everyone = [...Object.values(state.workers).map(({ addresses }) => addresses),
    ...Object.values(state.addresses)]
  return !state.hasListened && !everyone.flat().some(isOfConnections) && isNoServer(state, worker)
}

/**
 * Where the workers before it were no server, a worker need not wait for its deadline. `worker`: does not listen yet.
 */
export function watchNoServer ({ state, at, command }: Transition, worker: Worker) {
  if (worker.slot === null || !isKnownNoServer(state, worker.slot)) return
  command({ type: 'set-deadline', deadline: 'alive', id: worker.id,
    ms: Math.max(0, ALIVE_MS - Math.round(at - worker.forkedAt)) })
}

/** Tells whether the last worker there was no server; where there was none, whether no slot has a server */
function isKnownNoServer ({ options: { ready }, addresses }: PoolState, slot: number): boolean {
  if (!mayBeNoServer(ready)) return false
  const known = addresses[slot] ? [addresses[slot]] : Object.values(addresses)
  return known.length > 0 && !known.flat().some(isOfConnections)
}

/** `worker`: counts as ready from now on; only the first one of an app is reported */
export function beNoServer (transition: Transition, worker: Worker) {
  const isFirst = Object.keys(transition.state.addresses).length === 0
  worker.isNoServer = true
  transition.command({ type: 'count-as-ready', worker: worker.id })
  if (!isFirst) return
  const afterMs = Math.round(transition.at - worker.forkedAt)
  const threads = worker.resources?.includes(THREAD) ? `. ${THREAD_NOTE}` : ''
  transition.emitForWorker('worker.no-server', worker, { actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) does not listen after ${
      durationText(afterMs)
    } and counts as ready. ${NO_SERVER_ADVICE}${threads}` })
}

const NO_SERVER_ADVICE =
  'Without a server, set ready.signal: online (--ready-signal online) to skip this wait; with a slow one, set ready.signal: listening'
const THREAD_NOTE = 'It runs threads: the socket of a thread is its own, and no second worker can listen there'

/** `worker`: has a thread that could not listen */
export function tellThreadPort (transition: Transition, worker: Worker, { message }: Inputs['thread-port-taken']) {
  const what = `a thread of ${nameOf(worker)} cannot listen, as another process does (${message})`
  transition.emitForWorker('worker.thread-port-taken', worker, { actor: 'system',
    message: `${what}: the socket of a thread is its own, and workers cannot share it. ${THREAD_ADVICE}` })
}

const THREAD_ADVICE = 'Listen in the main thread, or run one worker with rollout.order: stop-first'

/** `worker`: listens after all, so its successors have to listen too */
export function listenLate (transition: Transition, worker: Worker) {
  if (!worker.isNoServer || worker.state !== 'ready') return
  delete worker.isNoServer
  keepAddresses(transition, worker)
  const after = durationText(transition.at - worker.forkedAt)
  transition.emitForWorker('worker.listens-late', worker, { actor: 'system',
    message:
      `worker ${worker.id} (slot ${worker.slot}) listens after ${after}, but counted as ready before. ${LATE_ADVICE}` })
}

const LATE_ADVICE = 'From now on its slot waits until it listens; set ready.signal: listening to wait on first start'

/** @returns what a slow start waits for; null: no worker is starting */
export function waitingFor (
  { phase, workers, slots, awaitsHook, awaitsTurn, options: { ready } }: PoolState
): string | null {
  if (phase !== 'starting') return null
  const unready = slots.filter(({ serving, finished }) => finished === null && workers[serving ?? 0]?.state !== 'ready')
  if (awaitsHook) return 'no worker starts before hooks.beforeStart has passed'
  // Other apps of the host start first, and say themselves what they wait for; missing secrets have an event of their
  // own.
  if (awaitsTurn !== null) return null
  const waiting = Object.values(workers).filter(({ state }) => state === 'starting')
  if (waiting.length === 0) return null
  return `${unready.length} of ${slots.length} ${slots.length === 1 ? 'worker is' : 'workers are'} not ready yet: ${
    whatFor(waiting[0], ready)
  }`
}

function whatFor ({ probed, report, addresses }: Worker, ready: LifecycleOptions['ready']) {
  if (report) return 'the app does not listen where it did before (option ready.addresses)'
  if (probed) return `${probed} (option ready.path)`
  const word = wordOf(ready)
  if (word) return `the app has not ${word}`
  if (ready.signal === 'online' || addresses.length > 0)
    return `the app is not ready (option ready.signal: ${ready.signal})`
  return `the app does not listen yet (option ready.signal: ${ready.signal}; without a server set --ready-signal online)`
}

/** `worker`: has just become ready */
export function tellWarmUp (transition: Transition, worker: Worker,
  { warmupFailed }: { warmupFailed?: string | null })
{
  if (warmupFailed) transition.emitForWorker('worker.warm-up-failed', worker, { message: warmupFailed })
}
