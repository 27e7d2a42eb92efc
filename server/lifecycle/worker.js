import { mayStart } from './boot-room.js'
import { holdSlot, isBlocked, tellDrift, releaseSlot } from './drift.js'
import { isAsked } from './readiness.js'
import { takeStandby } from './promotion.js'
import { lossOf, toEndDetail, unfinishedOf, warnOfLoss } from './loss.js'
import { tripGuard } from './rollout/guard.js'
import { recordExit, blankRecord } from './restart-policy.js'
import { isOccupied, stopsFirst } from './vacancy.js'
import { canMove, causeOfExit } from './worker-state.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').Slot} Slot */

/**
 * Forks a worker for a slot; who gets it, `serving` or `candidate`, is the caller's to say.
 * @param {Transition} transition @param {Slot} slot @param {string} release
 * @param {{ readyTimeoutMs?: number }} [how]
 * @returns {number} the worker's id
 */
export function forkWorker (transition, slot, release, how) {
  return forkFor(transition, slot.number, release, how)
}

/** @param {Transition} transition @param {string} release of a worker without a slot */
export function forkStandby (transition, release) {
  forkFor(transition, null, release)
}

/** @param {Transition} transition @param {number | null} slot @param {string} release @param {{ readyTimeoutMs?: number }} [how] */
function forkFor (transition, slot, release, { readyTimeoutMs = transition.state.options.ready.timeoutMs } = {}) {
  const id = transition.state.nextWorker++
  transition.state.workers[id] = {
    id, slot, state: 'starting', release, pid: null, forkedAt: transition.at, startedAt: transition.isoTime(), readyAt: null, intent: null, readyTimeoutMs, isDrifted: release in transition.drift, orphan: null, addresses: []
  }
  transition.command({ type: 'fork', worker: id, slot, release: transition.state.releases[release] })
  transition.command({ type: 'set-deadline', deadline: 'ready', id, ms: readyTimeoutMs })
  tellDrift(transition, transition.state.workers[id])
  return id
}

/** @param {Transition} transition @param {Slot} slot fills it with a worker of its own release, unless that has to wait: then it is vacant, or blocked */
export function forkServing (transition, slot) {
  slot.finished = null
  if (stopsFirst(transition.state) && isOccupied(transition.state, slot.number)) return cancelRetry(transition, slot)
  const standby = takeStandby(transition, slot)
  if (standby === null && isBlocked(transition, slot.release)) return holdSlot(transition, slot)
  if (standby === null && !mayStart(transition.state, slot)) return cancelRetry(transition, slot)
  if (standby === null) releaseSlot(transition, slot)
  slot.blocked = null
  slot.retryAt = null
  slot.serving = standby ?? forkWorker(transition, slot, slot.release)
}

/** @param {Transition} transition @param {Worker} worker @param {string} [probe] what its app was found to answer @param {import('./boot-room.js').Boot | null} [boot] */
export function becomeReady (transition, worker, probe, boot = null) {
  worker.state = 'ready'
  for (const name of /** @type {const} */ (['probed', 'report', 'resources'])) delete worker[name]
  worker.readyAt = transition.isoTime()
  for (const deadline of /** @type {const} */ (['ready', 'addresses', 'alive'])) transition.command({ type: 'clear-deadline', deadline, id: worker.id })
  transition.command({ type: 'set-deadline', deadline: 'steady', id: worker.id, ms: transition.state.options.restart.resetAfterMs })
  transition.emitForWorker('worker.ready', worker, { uptimeMs: uptimeOf(transition, worker), message: probe ?? null, detail: boot && { boot: transition.state.bootCost } })
}

/**
 * Sends a worker on its way: it drains, whatever it was doing, because one that is not ready may still be serving.
 * @param {Transition} transition @param {Worker | undefined} worker nothing happens to one that is already going
 * @param {import('./state.js').Intent} intent
 * @param {{ isTold?: boolean, deadlineMs?: number }} [how] `isTold`: it drains already
 */
export function drainWorker (transition, worker, intent, { isTold = false, deadlineMs } = {}) {
  if (!worker || !canMove(worker.state, 'draining')) return
  const longestMs = transition.state.options.drain.deadlineMs
  worker.servesNobody = deadlineMs === undefined && hasServedNobody(transition, worker)
  leaveSlot(transition, worker)
  worker.state = 'draining'
  worker.intent = intent
  const { idleGraceMs } = transition.state.options.drain
  transition.emitForWorker('worker.draining', worker, { cause: intent.cause, actor: intent.actor, rollout: intent.rollout, message: intent.message ?? null })
  for (const deadline of /** @type {const} */ (['ready', 'addresses', 'alive', 'steady', 'age'])) transition.command({ type: 'clear-deadline', deadline, id: worker.id })
  if (!isTold) transition.command({ type: 'drain', worker: worker.id, idleGraceMs })
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms: deadlineMs ?? (worker.servesNobody ? Math.min(UNSERVED_DRAIN_MS, longestMs) : longestMs) })
}

/** A worker that has no connections is not waited for, least of all one that is too busy to say so. */
const UNSERVED_DRAIN_MS = 1000

/** @param {Transition} transition @param {Worker} worker @returns {boolean} whether it cannot have had a connection so far */
function hasServedNobody ({ state: { options } }, { readyAt, orphan, addresses }) {
  return readyAt === null && orphan === null && (addresses.length === 0 || isAsked(options.ready))
}

/** @param {Transition} transition @param {Worker} worker it listens, though it was told to go just before: somebody may be served by it */
export function drainListening (transition, worker) {
  if (worker.state !== 'draining' || !worker.servesNobody || isAsked(transition.state.options.ready)) return
  delete worker.servesNobody
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms: transition.state.options.drain.deadlineMs })
}

/** @param {Transition} transition @param {Worker} worker it has drained, or may no longer */
export function terminateWorker (transition, worker) {
  worker.state = 'stopping'
  delete worker.report
  transition.command({ type: 'clear-deadline', deadline: 'drain', id: worker.id })
  transition.command({ type: 'terminate', worker: worker.id })
  transition.command({ type: 'set-deadline', deadline: 'term', id: worker.id, ms: transition.state.options.stop.termGraceMs })
}

/** @param {Transition} transition @param {Worker} worker it has heard SIGTERM, and is still there */
export function killLate (transition, worker) {
  worker.killedFor = `it had not ended ${transition.state.options.stop.termGraceMs} ms after SIGTERM (option stop.termGraceMs)`
  transition.command({ type: 'kill', worker: worker.id })
}

/** @param {Transition} transition @param {number} id a worker's that is gone, or as good as gone */
export function clearDeadlines (transition, id) {
  for (const deadline of WORKER_DEADLINES) transition.command({ type: 'clear-deadline', deadline, id })
}

const WORKER_DEADLINES = /** @type {const} */ (['ready', 'addresses', 'alive', 'drain', 'term', 'steady', 'stack', 'age', 'soak'])

/**
 * Takes note of an exit.
 * @param {Transition} transition @param {Worker} worker
 * @param {import('./loss.js').Exit} exit
 * @returns {string} its cause
 */
export function recordEnd (transition, worker, exit) {
  const cause = causeOfExit(worker, exit, worker.slot === null ? 'always' : transition.state.options.restart.policy)
  const unfinished = unfinishedOf(worker, exit)
  const message = `${exitMessage(worker, exit, cause)}${lossOf(unfinished, exit.left)}`
  warnOfLoss(transition, worker, unfinished)
  clearDeadlines(transition, worker.id)
  transition.emitForWorker('worker.exited', worker, {
    cause,
    code: exit.code,
    signal: exit.signal,
    uptimeMs: uptimeOf(transition, worker),
    // Nobody means a worker to crash, also not one that is to go.
    actor: worker.intent?.cause === cause ? worker.intent.actor : null,
    rollout: worker.intent?.rollout ?? transition.state.rollout?.id ?? null,
    message,
    detail: toEndDetail(exit, unfinished)
  })
  delete transition.state.workers[worker.id]
  leaveSlot(transition, worker)
  worker.state = 'exited'
  return cause
}

/** An app that ends its workers sooner than this is treated as one that crashes, so that it does not fork all the time. */
const RECYCLES_ITSELF_AFTER_MS = 1000

/**
 * Decides when a slot whose worker failed gets its next one, on the slot's own release.
 * @param {Transition} transition @param {Slot} slot @param {Worker} dead @param {string} cause
 */
export function replaceWorker (transition, slot, dead, cause) {
  const { restart } = transition.state.options
  const wasLooping = slot.record.crashLooping
  const isNoFailure = cause === 'app-request' && uptimeOf(transition, dead) >= RECYCLES_ITSELF_AFTER_MS
  const { record, delayMs: backoffMs } = isNoFailure ? { record: slot.record, delayMs: 0 } : recordExit(slot.record, { at: transition.at, uptimeMs: uptimeOf(transition, dead), random: transition.random }, restart)
  // It has taken the watchdog's time to hang, so one after the other is slow enough; and it still occupies the place.
  const delayMs = cause === 'hung' ? 0 : backoffMs
  slot.record = record
  slot.restarts++
  if (record.crashLooping && !wasLooping) {
    tripGuard(transition, slot)
    const { restarts, windowMs } = restart.intensity
    transition.emit('worker.crash-looping', {
      slot: slot.number,
      release: slot.release,
      message: `slot ${slot.number} crash-loops: more than ${restarts} restarts within ${windowMs} ms; the next ones wait longer`
    })
  }
  transition.emitForWorker('worker.restarted', dead, { cause, release: slot.release, detail: { delayMs, attempt: record.attempt } })
  if (delayMs === 0) return forkServing(transition, slot)
  slot.retryAt = transition.isoTime(delayMs)
  transition.command({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms: delayMs })
}

/** @param {Transition} transition @param {Slot} slot its worker has stayed up long enough */
export function resetBackoff (transition, slot) {
  if (slot.record.crashLooping) transition.emit('worker.recovered', { slot: slot.number, worker: slot.serving, release: slot.release })
  slot.record = blankRecord()
}

/** @param {Transition} transition @param {Slot} slot */
export function cancelRetry (transition, slot) {
  if (slot.retryAt === null) return
  slot.retryAt = null
  slot.blocked = null
  transition.command({ type: 'clear-deadline', deadline: 'retry', id: slot.number })
}

/** @param {Transition} transition @param {Worker} worker @returns {number} ms since its fork, or since it has its slot */
export function uptimeOf (transition, worker) {
  return Math.round(transition.at - worker.forkedAt)
}

/** @param {Transition} transition @param {Worker} worker */
export function leaveSlot (transition, worker) {
  const slot = transition.slot(worker.slot)
  if (slot?.serving === worker.id) slot.serving = null
  if (slot?.candidate === worker.id) slot.candidate = null
}

/** @param {Pick<Worker, 'id' | 'slot'>} worker */
export function nameOf ({ id, slot }) {
  return slot === null ? `standby worker ${id}` : `worker ${id} (slot ${slot})`
}

/** @param {Worker} worker @param {{ code: number | null, signal: string | null, error?: import('./state.js').CrashNote | null }} exit @param {string} cause */
function exitMessage (worker, { code, signal, error }, cause) {
  const how = signal === 'SIGKILL' && worker.killedFor ? `was killed, as ${worker.killedFor}` : signal !== null ? `was ended by ${signal}` : code !== null ? `exited with code ${code}` : 'is gone; how it ended is not known'
  const when = worker.state === 'starting' && cause !== 'finished' ? ' before it was ready' : ''
  const why = error ? `: ${error.errorName}: ${error.errorMessage}` : ''
  // What an exception is about to do is told once.
  const intent = worker.intent?.message && !error ? ` (${worker.intent.message})` : ''
  return `${nameOf(worker)} ${how}${when}${why}${intent}`
}
