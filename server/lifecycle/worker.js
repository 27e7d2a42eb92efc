import { mayStart } from './boot-room.js'
import { block, isBlocked, tellDrift, unblock } from './drift.js'
import { isAsked } from './readiness.js'
import { takeStandby } from './promotion.js'
import { lossOf, toEndDetail, unfinishedOf, warnOfLoss } from './loss.js'
import { tripGuard } from './rollout/guard.js'
import { recordExit, blankRecord } from './restart-policy.js'
import { isOccupied, stopsFirst } from './vacancy.js'
import { canMove, causeOfExit } from './worker-state.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').Slot} Slot */

/**
 * Forks a worker for a slot; who gets it, `serving` or `candidate`, is the caller's to say.
 * @param {Turn} turn @param {Slot} slot @param {string} release
 * @param {{ readyTimeoutMs?: number }} [how]
 * @returns {number} the worker's id
 */
export function fork (turn, slot, release, how) {
  return forkFor(turn, slot.number, release, how)
}

/** @param {Turn} turn @param {string} release of a worker without a slot */
export function forkStandby (turn, release) {
  forkFor(turn, null, release)
}

/** @param {Turn} turn @param {number | null} slot @param {string} release @param {{ readyTimeoutMs?: number }} [how] */
function forkFor (turn, slot, release, { readyTimeoutMs = turn.state.options.ready.timeoutMs } = {}) {
  const id = turn.state.nextWorker++
  turn.state.workers[id] = {
    id, slot, state: 'starting', release, pid: null, forkedAt: turn.at, startedAt: turn.isoTime(), readyAt: null, intent: null, readyTimeoutMs, isDrifted: release in turn.drift, orphan: null, addresses: []
  }
  turn.order({ type: 'fork', worker: id, slot, release: turn.state.releases[release] })
  turn.order({ type: 'set-deadline', deadline: 'ready', id, ms: readyTimeoutMs })
  tellDrift(turn, turn.state.workers[id])
  return id
}

/** @param {Turn} turn @param {Slot} slot fills it with a worker of its own release, unless that has to wait: then it is vacant, or blocked */
export function forkServing (turn, slot) {
  slot.finished = null
  if (stopsFirst(turn.state) && isOccupied(turn.state, slot.number)) return cancelRetry(turn, slot)
  const standby = takeStandby(turn, slot)
  if (standby === null && isBlocked(turn, slot.release)) return block(turn, slot)
  if (standby === null && !mayStart(turn.state, slot)) return cancelRetry(turn, slot)
  if (standby === null) unblock(turn, slot)
  slot.blocked = null
  slot.retryAt = null
  slot.serving = standby ?? fork(turn, slot, slot.release)
}

/** @param {Turn} turn @param {Worker} worker @param {string} [probe] what its app was found to answer @param {import('./boot-room.js').Boot | null} [boot] */
export function becomeReady (turn, worker, probe, boot = null) {
  worker.state = 'ready'
  for (const name of /** @type {const} */ (['probed', 'report', 'resources'])) delete worker[name]
  worker.readyAt = turn.isoTime()
  for (const deadline of /** @type {const} */ (['ready', 'addresses', 'alive'])) turn.order({ type: 'clear-deadline', deadline, id: worker.id })
  turn.order({ type: 'set-deadline', deadline: 'steady', id: worker.id, ms: turn.state.options.restart.resetAfterMs })
  turn.tellOf('worker.ready', worker, { uptimeMs: uptime(turn, worker), message: probe ?? null, detail: boot && { boot: turn.state.bootCost } })
}

/**
 * Sends a worker on its way: it drains, whatever it was doing, because one that is not ready may still be serving.
 * @param {Turn} turn @param {Worker | undefined} worker nothing happens to one that is already going
 * @param {import('./state.js').Intent} intent
 * @param {{ isTold?: boolean, deadlineMs?: number }} [how] `isTold`: it drains already
 */
export function drain (turn, worker, intent, { isTold = false, deadlineMs } = {}) {
  if (!worker || !canMove(worker.state, 'draining')) return
  const longestMs = turn.state.options.drain.deadlineMs
  worker.servesNobody = deadlineMs === undefined && hasServedNobody(turn, worker)
  leaveSlot(turn, worker)
  worker.state = 'draining'
  worker.intent = intent
  const { idleGraceMs } = turn.state.options.drain
  turn.tellOf('worker.draining', worker, { cause: intent.cause, actor: intent.actor, rollout: intent.rollout, message: intent.message ?? null })
  for (const deadline of /** @type {const} */ (['ready', 'addresses', 'alive', 'steady', 'age'])) turn.order({ type: 'clear-deadline', deadline, id: worker.id })
  if (!isTold) turn.order({ type: 'drain', worker: worker.id, idleGraceMs })
  turn.order({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms: deadlineMs ?? (worker.servesNobody ? Math.min(UNSERVED_DRAIN_MS, longestMs) : longestMs) })
}

/** A worker that has no connections is not waited for, least of all one that is too busy to say so. */
const UNSERVED_DRAIN_MS = 1000

/** @param {Turn} turn @param {Worker} worker @returns {boolean} whether it cannot have had a connection so far */
function hasServedNobody ({ state: { options } }, { readyAt, orphan, addresses }) {
  return readyAt === null && orphan === null && (addresses.length === 0 || isAsked(options.ready))
}

/** @param {Turn} turn @param {Worker} worker it listens, though it was told to go just before: somebody may be served by it */
export function drainListening (turn, worker) {
  if (worker.state !== 'draining' || !worker.servesNobody || isAsked(turn.state.options.ready)) return
  delete worker.servesNobody
  turn.order({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms: turn.state.options.drain.deadlineMs })
}

/** @param {Turn} turn @param {Worker} worker it has drained, or may no longer */
export function terminate (turn, worker) {
  worker.state = 'stopping'
  delete worker.report
  turn.order({ type: 'clear-deadline', deadline: 'drain', id: worker.id })
  turn.order({ type: 'terminate', worker: worker.id })
  turn.order({ type: 'set-deadline', deadline: 'term', id: worker.id, ms: turn.state.options.stop.termGraceMs })
}

/** @param {Turn} turn @param {Worker} worker it has heard SIGTERM, and is still there */
export function killLate (turn, worker) {
  worker.killedFor = `it had not ended ${turn.state.options.stop.termGraceMs} ms after SIGTERM (option stop.termGraceMs)`
  turn.order({ type: 'kill', worker: worker.id })
}

/** @param {Turn} turn @param {number} id a worker's that is gone, or as good as gone */
export function clearDeadlines (turn, id) {
  for (const deadline of WORKER_DEADLINES) turn.order({ type: 'clear-deadline', deadline, id })
}

const WORKER_DEADLINES = /** @type {const} */ (['ready', 'addresses', 'alive', 'drain', 'term', 'steady', 'stack', 'age', 'soak'])

/**
 * Takes note of an exit.
 * @param {Turn} turn @param {Worker} worker
 * @param {import('./loss.js').Exit} exit
 * @returns {string} its cause
 */
export function recordEnd (turn, worker, exit) {
  const cause = causeOfExit(worker, exit, worker.slot === null ? 'always' : turn.state.options.restart.policy)
  const unfinished = unfinishedOf(worker, exit)
  const message = `${exitMessage(worker, exit, cause)}${lossOf(unfinished, exit.left)}`
  warnOfLoss(turn, worker, unfinished)
  clearDeadlines(turn, worker.id)
  turn.tellOf('worker.exited', worker, {
    cause,
    code: exit.code,
    signal: exit.signal,
    uptimeMs: uptime(turn, worker),
    // Nobody means a worker to crash, also not one that is to go.
    actor: worker.intent?.cause === cause ? worker.intent.actor : null,
    rollout: worker.intent?.rollout ?? turn.state.rollout?.id ?? null,
    message,
    detail: toEndDetail(exit, unfinished)
  })
  delete turn.state.workers[worker.id]
  leaveSlot(turn, worker)
  worker.state = 'exited'
  return cause
}

/**
 * Decides when a slot whose worker failed gets its next one, on the slot's own release.
 * @param {Turn} turn @param {Slot} slot @param {Worker} dead @param {string} cause
 */
export function replace (turn, slot, dead, cause) {
  const { restart } = turn.state.options
  const wasLooping = slot.record.crashLooping
  const { record, delayMs: backoffMs } = recordExit(slot.record, { at: turn.at, uptimeMs: uptime(turn, dead), random: turn.random }, restart)
  // It has taken the watchdog's time to hang, so one after the other is slow enough; and it still occupies the place.
  const delayMs = cause === 'hung' ? 0 : backoffMs
  slot.record = record
  slot.restarts++
  if (record.crashLooping && !wasLooping) {
    tripGuard(turn, slot)
    const { restarts, windowMs } = restart.intensity
    turn.tell('worker.crash-looping', {
      slot: slot.number,
      release: slot.release,
      message: `slot ${slot.number} crash-loops: more than ${restarts} restarts within ${windowMs} ms; the next ones wait longer`
    })
  }
  turn.tellOf('worker.restarted', dead, { cause, release: slot.release, detail: { delayMs, attempt: record.attempt } })
  if (delayMs === 0) return forkServing(turn, slot)
  slot.retryAt = turn.isoTime(delayMs)
  turn.order({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms: delayMs })
}

/** @param {Turn} turn @param {Slot} slot its worker has stayed up long enough */
export function resetBackoff (turn, slot) {
  if (slot.record.crashLooping) turn.tell('worker.recovered', { slot: slot.number, worker: slot.serving, release: slot.release })
  slot.record = blankRecord()
}

/** @param {Turn} turn @param {Slot} slot */
export function cancelRetry (turn, slot) {
  if (slot.retryAt === null) return
  slot.retryAt = null
  slot.blocked = null
  turn.order({ type: 'clear-deadline', deadline: 'retry', id: slot.number })
}

/** @param {Turn} turn @param {Worker} worker @returns {number} ms since its fork, or since it has its slot */
export function uptime (turn, worker) {
  return Math.round(turn.at - worker.forkedAt)
}

/** @param {Turn} turn @param {Worker} worker */
export function leaveSlot (turn, worker) {
  const slot = turn.slot(worker.slot)
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
