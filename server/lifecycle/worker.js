import { BLAMED_CAUSES, CRASH_CAUSES, isOneOf } from '../causes.js'
import { mayStart } from './boot-room.js'
import { drainLimits } from './drain-limits.js'
import { holdSlot, isBlocked, knownDrift, tellDrift, resumeSlot } from './drift.js'
import { isAsked } from './readiness.js'
import { takeStandby } from './promotion.js'
import { lossOf, toEndDetail, unfinishedOf, warnOfLoss } from './loss.js'
import { tripGuard } from './rollout/guard.js'
import { recordExit, blankRecord } from './restart-policy.js'
import { isOccupied, stopsFirst } from './vacancy.js'
import { canMove, causeOfExit } from './worker-state.js'
import { durationText } from './duration.js'
import { codeText, signalText } from './exit-words.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').Slot} Slot */

/**
 * Forks a worker for a slot. The caller puts it into `serving` or `candidate`.
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
    id,
    slot,
    state: 'starting',
    release,
    pid: null,
    forkedAt: transition.at,
    startedAt: transition.isoTime(),
    readyAt: null,
    intent: null,
    readyTimeoutMs,
    drift: knownDrift(transition, release),
    orphan: null,
    addresses: []
  }
  transition.command({ type: 'fork', worker: id, slot, release: transition.state.releases[release] })
  transition.command({ type: 'set-deadline', deadline: 'ready', id, ms: readyTimeoutMs })
  tellDrift(transition, transition.state.workers[id])
  return id
}

/** @param {Transition} transition @param {Slot} slot gets a worker of its own release, unless that has to wait: then it stays vacant, or is held */
export function forkServing (transition, slot) {
  slot.finished = null
  if (stopsFirst(transition.state) && isOccupied(transition.state, slot.number)) return cancelRetry(transition, slot)
  const standby = takeStandby(transition, slot)
  if (standby === null && isBlocked(transition, slot.release)) return holdSlot(transition, slot)
  if (standby === null && !mayStart(transition.state, slot)) return cancelRetry(transition, slot)
  if (standby === null) resumeSlot(transition, slot)
  slot.blocked = null
  slot.retryAt = null
  slot.serving = standby ?? forkWorker(transition, slot, slot.release)
}

/**
 * @param {Transition} transition @param {Worker} worker
 * @param {string} [probe] the answer of its app @param {import('./boot-room.js').Boot | null} [boot]
 */
export function becomeReady (transition, worker, probe, boot = null) {
  worker.state = 'ready'
  for (const name of /** @type {const} */ (['probed', 'report', 'resources'])) delete worker[name]
  worker.readyAt = transition.isoTime()
  clearDeadlines(transition, worker.id, ['ready', 'addresses', 'alive'])
  transition.command({ type: 'set-deadline', deadline: 'steady', id: worker.id, ms: transition.state.options.restart.resetAfterMs })
  const detail = boot && { boot: transition.state.bootCost }
  transition.emitForWorker('worker.ready', worker, { uptimeMs: uptimeOf(transition, worker), message: probe ?? null, detail })
}

/**
 * Lets a worker drain, in whatever state it is: even one that is not ready may still be serving.
 * @param {Transition} transition @param {Worker | undefined} worker is left alone if it is already on its way out
 * @param {import('./state.js').Intent} intent
 * @param {{ isTold?: boolean, deadlineMs?: number }} [how] `isTold`: it drains already by itself
 */
export function drainWorker (transition, worker, intent, { isTold = false, deadlineMs } = {}) {
  if (!worker || !canMove(worker.state, 'draining')) return
  const longestMs = transition.state.options.drain.deadlineMs
  worker.servesNobody = deadlineMs === undefined && hasServedNobody(transition, worker)
  leaveSlot(transition, worker)
  worker.state = 'draining'
  worker.intent = intent
  const limits = drainLimits(transition.state, worker, intent)
  worker.drain = { since: transition.isoTime(), at: transition.at, limits }
  transition.emitForWorker('worker.draining', worker, { cause: intent.cause, actor: intent.actor, rollout: intent.rollout, message: intent.message ?? null })
  clearDeadlines(transition, worker.id, ['ready', 'addresses', 'alive', 'steady', 'age'])
  if (!isTold) transition.command({ type: 'drain', worker: worker.id, limits })
  const ms = deadlineMs ?? (worker.servesNobody ? Math.min(UNSERVED_DRAIN_MS, longestMs) : longestMs)
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms })
}

/** A worker without connections drains at once; one that is too busy to say so gets this long. */
const UNSERVED_DRAIN_MS = 1000

/** @param {Transition} transition @param {Worker} worker @returns {boolean} whether it cannot have had a connection so far */
function hasServedNobody ({ state: { options } }, { readyAt, orphan, addresses }) {
  return readyAt === null && orphan === null && (addresses.length === 0 || isAsked(options.ready))
}

/** @param {Transition} transition @param {Worker} worker listens, though it was just told to go: it may serve somebody */
export function drainListening (transition, worker) {
  if (worker.state !== 'draining' || !worker.servesNobody || isAsked(transition.state.options.ready)) return
  delete worker.servesNobody
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms: transition.state.options.drain.deadlineMs })
}

/**
 * @param {Transition} transition @param {Worker} worker has drained, or has reached its drain deadline
 * @param {{ withinMs?: number }} [how]  where it is not given the usual time
 */
export function terminateWorker (transition, worker, { withinMs = Infinity } = {}) {
  worker.state = 'stopping'
  delete worker.report
  clearDeadlines(transition, worker.id, ['drain', 'long-lived'])
  transition.command({ type: 'terminate', worker: worker.id })
  transition.command({ type: 'set-deadline', deadline: 'term', id: worker.id, ms: Math.min(withinMs, transition.state.options.stop.termGraceMs) })
}

/** @param {Transition} transition @param {Worker} worker was told by a signal to end, and still runs */
export function killLate (transition, worker) {
  const { termGraceMs, signal } = transition.state.options.stop
  worker.killedFor = worker.writesHeap ? 'it was still writing its heap' : `it had not ended ${durationText(termGraceMs)} after ${signal} (option stop.termGraceMs)`
  transition.command({ type: 'kill', worker: worker.id })
}

/** @param {Transition} transition @param {number} id of a worker @param {readonly import('./state.js').DeadlineKind[]} [kinds] all of a worker by default */
export function clearDeadlines (transition, id, kinds = WORKER_DEADLINES) {
  for (const deadline of kinds) transition.command({ type: 'clear-deadline', deadline, id })
}

/** @typedef {typeof WORKER_DEADLINES[number]} WorkerDeadline */
const WORKER_DEADLINES = /** @type {const} */ (['ready', 'addresses', 'alive', 'drain', 'long-lived', 'term', 'steady', 'stack', 'age', 'soak'])

/**
 * Takes note of an exit.
 * @param {Transition} transition @param {Worker} worker
 * @param {import('./loss.js').Exit} seen
 * @returns {string} its cause
 */
export function recordEnd (transition, worker, seen) {
  const cause = causeOfExit(worker, seen, worker.slot === null ? 'always' : transition.state.options.restart.policy)
  const exit = { ...seen, hint: isOneOf(BLAMED_CAUSES, cause) ? seen.hint ?? hintOfEnd(worker, seen) : null }
  const unfinished = unfinishedOf(worker, exit)
  const message = `${exitMessage(worker, exit, cause)}${exit.hint ? `; ${exit.hint}` : ''}${lossOf(unfinished, exit.left)}`
  warnOfLoss(transition, worker, unfinished)
  clearDeadlines(transition, worker.id)
  transition.emitForWorker('worker.exited', worker, {
    cause,
    code: exit.code,
    signal: exit.signal,
    uptimeMs: uptimeOf(transition, worker),
    // A crash has no actor, even if somebody told the worker to go.
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

/** @param {Worker} worker @param {import('./loss.js').Exit} exit @returns {string | null} what may help one that has ended as a job does */
function hintOfEnd ({ intent, addresses }, { code, error }) {
  const isOfJob = code === 0 && !error && !intent && addresses.length === 0
  return isOfJob ? 'it has come to its end without an error: if the app is a job that is meant to end, set restart.policy: on-failure (--restart-policy on-failure)' : null
}

/** An app that ends its workers sooner than this counts as crashing, so that it does not fork all the time. */
const RECYCLES_ITSELF_AFTER_MS = 1000

/**
 * Decides when a slot whose worker failed gets its next one, on the slot's own release.
 * @param {Transition} transition @param {Slot} slot @param {Worker} dead @param {string} cause
 */
export function replaceWorker (transition, slot, dead, cause) {
  const { restart } = transition.state.options
  const wasLooping = slot.record.crashLooping
  const isNoFailure = cause === 'app-request' && uptimeOf(transition, dead) >= RECYCLES_ITSELF_AFTER_MS
  const exit = { at: transition.at, uptimeMs: uptimeOf(transition, dead), random: transition.random }
  const { record, delayMs: backoffMs } = isNoFailure ? { record: slot.record, delayMs: 0 } : recordExit(slot.record, exit, restart)
  // The watchdog's timeout has slowed this down already, and the hung worker still occupies its place.
  const delayMs = cause === 'hung' ? 0 : backoffMs
  slot.record = record
  slot.restarts++
  if (record.crashLooping && !wasLooping) {
    tripGuard(transition, slot)
    const { restarts, windowMs } = restart.intensity
    transition.emit('worker.crash-looping', {
      slot: slot.number,
      release: slot.release,
      message: `slot ${slot.number} crash-loops: more than ${restarts} restarts within ${durationText(windowMs)}; the next ones wait longer`
    })
  }
  transition.emitForWorker('worker.restarted', dead, { cause, release: slot.release, detail: { delayMs, attempt: record.attempt } })
  if (delayMs === 0) return forkServing(transition, slot)
  slot.retryAt = transition.isoTime(delayMs)
  transition.command({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms: delayMs })
}

/** @param {Transition} transition @param {Slot} slot whose worker has run long enough */
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

/** @param {Transition} transition @param {Worker} worker @returns {number} ms since its fork, or since it got its slot */
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

/** @param {Worker} worker @param {import('./loss.js').Exit} exit @param {string} cause */
function exitMessage (worker, exit, cause) {
  const { code, error, isAsTold = false } = exit
  const order = worker.intent?.message
  // It did as it was told, and what it was told for says more than its code.
  if (order && (code === 0 || isAsTold) && !isOneOf(CRASH_CAUSES, cause)) return `${nameOf(worker)} ended, as ${order}`
  const when = worker.state === 'starting' && cause !== 'finished' ? ' before it was ready' : ''
  const why = whyItEnded(exit, cause)
  // The message of an exception is in the intent already.
  const told = `${nameOf(worker)} ${howItEnded(worker, exit)}${when}${why && `: ${why}`}`
  if (!order || error) return told
  return told.endsWith(')') ? `${told}; ${order}` : `${told} (${order})`
}

/** @param {Worker} worker @param {import('./loss.js').Exit} exit */
function howItEnded ({ killedFor }, { code, signal, error }) {
  if (signal === 'SIGKILL' && killedFor) return `was killed, as ${killedFor}`
  if (signal !== null) return `was ended by ${signalText(signal)}`
  if (code === null) return 'is gone; how it ended is not known'
  return `exited with ${error ? `code ${code}` : codeText(code)}`
}

/** @param {import('./loss.js').Exit} exit @param {string} cause @returns {string} '' where the process has told nothing of it */
function whyItEnded ({ error, said }, cause) {
  if (error) return [error.errorName, error.errorMessage].filter(Boolean).join(': ')
  return said && isOneOf(BLAMED_CAUSES, cause) ? said : ''
}
