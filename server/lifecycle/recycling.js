import { isBlocked, namesOf } from './drift.js'
import { stopsFirst } from './vacancy.js'
import { drainWorker, forkWorker } from './worker.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').Slot} Slot */

/**
 * The replacement of one worker that has lived, grown or answered long enough: the new one is ready before the old one
 * drains. One at a time, from its fork to the old one's end; whatever an operator starts meanwhile comes first.
 * `candidate`: starting; `draining`: the old one is on its way out; `waiting`: the new one failed, and it is tried again
 * when the 'recycle' deadline has passed.
 * @typedef {{ slot: number, worker: number, cause: string, message: string, state: 'starting' | 'draining' | 'waiting' }} Recycling
 */

/** Up to this share earlier than the limit says, so that workers of one age do not all go one after the other. */
const JITTER = 0.1

/** A worker that reaches a limit so soon after it was ready says that the limit is too low. */
const SOON_MS = 30_000
/** So many of those within the window are recycled without a wait. */
const FREE = 5
const WINDOW_MS = 300_000
/** From then on each one waits twice as long as the one before. */
const FIRST_DELAY_MS = 30_000
const LONGEST_DELAY_MS = 300_000
/** Without another one for so long, it all begins anew. */
const RESET_MS = 2 * LONGEST_DELAY_MS

/**
 * How fast workers that reach a limit too soon are recycled, over all slots. `times`: monotonic ms, of the last such
 * recyclings; `delays`: how many waits in a row; `until`: monotonic ms, none of them before that.
 * @typedef {{ times: number[], delays: number, until: number }} RecyclePace
 */

/** @returns {RecyclePace} */
export function blankPace () {
  return { times: [], delays: 0, until: 0 }
}

/** @param {number} limit @param {number} random in [0, 1) @returns {number} the limit of one worker, never above the one that was set */
function withJitter (limit, random) {
  return Math.max(1, Math.round(limit * (1 - JITTER * random)))
}

/** @param {{ maxRequests: number }} recycle @param {number} random in [0, 1) @returns {number} how many one worker may begin; 0: any */
export function requestLimit ({ maxRequests }, random) {
  return maxRequests > 0 ? withJitter(maxRequests, random) : 0
}

/** @param {Transition} transition @param {Worker} worker it has just become ready */
export function watchAge (transition, worker) {
  const maxAgeMs = transition.state.options.recycle?.maxAgeMs ?? 0
  if (maxAgeMs > 0) transition.command({ type: 'set-deadline', deadline: 'age', id: worker.id, ms: withJitter(maxAgeMs, transition.random) })
}

/** @param {Transition} transition @param {'memory-limit' | 'max-age' | 'max-requests'} cause whose limit is another one now: who is over it too is due again */
export function forgetDue ({ state, command }, cause) {
  state.recyclePace = blankPace()
  command({ type: 'clear-deadline', deadline: 'recycle-pace', id: 0 })
  for (const worker of Object.values(state.workers)) {
    if (worker.due?.cause === cause && state.recycling?.worker !== worker.id) worker.due = null
  }
}

/** @param {Transition} transition the age that workers may reach is another one now, for those that serve too */
export function watchAges (transition) {
  const { maxAgeMs = 0 } = transition.state.options.recycle ?? {}
  const now = Date.parse(transition.isoTime())
  for (const worker of Object.values(transition.state.workers)) {
    if (worker.state !== 'ready' || worker.orphan) continue
    const ageMs = now - Date.parse(String(worker.readyAt))
    if (maxAgeMs === 0) transition.command({ type: 'clear-deadline', deadline: 'age', id: worker.id })
    else transition.command({ type: 'set-deadline', deadline: 'age', id: worker.id, ms: Math.max(0, withJitter(maxAgeMs, transition.random) - ageMs) })
  }
}

/** @param {Transition} transition @param {Worker} worker @param {{ cause: 'memory-limit' | 'max-age' | 'max-requests' | 'app-request', message: string, rssBytes?: number }} reason */
export function becomeDue (transition, worker, { cause, message, rssBytes = 0 }) {
  const servedMs = worker.readyAt === null ? 0 : Date.parse(transition.isoTime()) - Date.parse(worker.readyAt)
  // It is said once, also of one that does not serve yet, or not at the moment. An app that asks for it is not kept waiting.
  worker.due ??= { cause, message, ...(cause !== 'app-request' && servedMs <= SOON_MS && { soon: { servedMs, rssBytes } }) }
}

/** @param {Transition} transition @param {Worker} worker it is recycled now, soon after it was ready: those that follow may have to wait */
function countSoon (transition, worker) {
  const { state, at } = transition
  const before = at - (state.recyclePace.times.at(-1) ?? 0) >= RESET_MS ? blankPace() : state.recyclePace
  const times = [...before.times.filter((time) => at - time < WINDOW_MS), at].slice(-FREE)
  state.recyclePace = { ...before, times }
  if (before.delays === 0 && times.length < FREE) return
  const ms = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** before.delays)
  state.recyclePace = { times, delays: before.delays + 1, until: at + ms }
  transition.command({ type: 'set-deadline', deadline: 'recycle-pace', id: 0, ms })
  if (before.delays === 0) transition.emitForWorker('recycling.slowed', worker, { cause: worker.due?.cause, actor: 'system', message: tooLow(state.options, worker) })
}

/** @param {import('./state.js').LifecycleOptions} options @param {Worker} worker @returns {string} which limit it is, what the app needs, and what to set */
function tooLow ({ recycle }, { due }) {
  const { servedMs = 0, rssBytes = 0 } = due?.soon ?? {}
  const pace = 'until then a worker is recycled only every few minutes'
  if (due?.cause === 'memory-limit') {
    const enough = Math.ceil(rssBytes * 1.5 / MB)
    return `the limit recycle.maxRssBytes is ${inMB(recycle?.maxRssBytes ?? 0)}, but the app holds ${inMB(rssBytes)} soon after its start: set it to ${enough * MB} (${enough} MB) or more, or to 0 for no limit; ${pace}`
  }
  if (due?.cause === 'max-age') return `the limit recycle.maxAgeMs is ${recycle?.maxAgeMs}, so workers are replaced almost as soon as they serve: set it to 600000 (10 minutes) or more, or to 0 for no limit; ${pace}`
  const enough = Math.ceil((recycle?.maxRequests ?? 0) * LONGEST_DELAY_MS / Math.max(1000, servedMs))
  return `the limit recycle.maxRequests is ${recycle?.maxRequests}, and a worker begins that many within ${Math.ceil(servedMs / 1000)} s: set it to ${enough} or more, or to 0 for no limit; ${pace}`
}

const MB = 1024 ** 2

/** @param {number} bytes */
function inMB (bytes) {
  return `${Math.round(bytes / MB)} MB`
}

/** @param {Transition} transition begins the next one, if nothing else is going on */
export function recycleNext (transition) {
  const { state } = transition
  if (state.phase !== 'running' || state.rollout || state.upgrade || state.recycling) return
  // One that has made way is not replaced yet.
  if (stopsFirst(state) && Object.values(state.workers).some((worker) => worker.state === 'starting' && worker.slot !== null)) return
  for (const slot of state.slots) {
    const worker = state.workers[slot.serving ?? 0]
    if (worker?.state !== 'ready' || !worker.due) continue
    const { cause, message, soon } = worker.due
    if (soon && transition.at < state.recyclePace.until) continue
    state.recycling = { slot: slot.number, worker: worker.id, cause, message, state: 'starting' }
    if (isBlocked(transition, slot.release)) return postponeRecycling(transition, worker)
    transition.emitForWorker('worker.recycling', worker, { cause, actor: 'system', message })
    if (soon) countSoon(transition, worker)
    if (stopsFirst(state)) return makeWay(transition, worker)
    slot.candidate = forkWorker(transition, slot, slot.release)
    return
  }
}

/** @param {Transition} transition @param {Worker} worker goes first, and the slot gets the next one once it has gone */
function makeWay (transition, worker) {
  const recycling = /** @type {Recycling} */ (transition.state.recycling)
  recycling.state = 'draining'
  drainWorker(transition, worker, { cause: recycling.cause, actor: 'system', rollout: null, message: recycling.message })
}

/** @param {Transition} transition @param {Worker} worker its release has drifted: it goes on, as what replaced it would be something else */
function postponeRecycling (transition, worker) {
  const recycling = /** @type {Recycling} */ (transition.state.recycling)
  const due = /** @type {NonNullable<Worker['due']>} */ (worker.due)
  recycling.state = 'waiting'
  transition.command({ type: 'set-deadline', deadline: 'recycle', id: 0, ms: transition.state.options.restart.maxDelayMs })
  if (due.isBlocked) return
  due.isBlocked = true
  transition.emitForWorker('worker.recycle-failed', worker, {
    cause: due.cause,
    actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) is not recycled: files of ${worker.release} changed after its deploy (option releases.onDrift: hold): ${namesOf(transition.drift[worker.release])}`,
    detail: transition.drift[worker.release]
  })
}

/** @param {Transition} transition @param {Slot} slot @returns {boolean} whether its candidate is there to recycle its worker */
export function isRecycled ({ state }, slot) {
  return state.recycling?.slot === slot.number && slot.candidate !== null
}

/** @param {Transition} transition @param {Slot} slot its candidate is ready and takes over */
export function candidateTakesOver (transition, slot) {
  const recycling = /** @type {Recycling} */ (transition.state.recycling)
  const old = transition.state.workers[slot.serving ?? 0]
  slot.serving = slot.candidate
  slot.candidate = null
  recycling.state = 'draining'
  drainWorker(transition, old, { cause: recycling.cause, actor: 'system', rollout: null, message: recycling.message })
}

/** @param {Transition} transition @param {string} reason the candidate came to nothing: the old worker goes on, and it is tried again later */
export function recyclingFailed (transition, reason) {
  const recycling = /** @type {Recycling} */ (transition.state.recycling)
  const worker = transition.state.workers[recycling.worker]
  const ms = transition.state.options.restart.maxDelayMs
  recycling.state = 'waiting'
  transition.emitForWorker('worker.recycle-failed', worker, { cause: recycling.cause, actor: 'system', message: `worker ${worker.id} (slot ${worker.slot}) is not recycled, its replacement failed: ${reason}` })
  transition.command({ type: 'set-deadline', deadline: 'recycle', id: 0, ms })
}

/**
 * The worker that was to be recycled is lost before: what is starting for its slot takes its place.
 * @param {Transition} transition @param {Slot} slot @param {Worker} dead @param {string} cause
 * @returns {boolean} false: there is nothing that could
 */
export function promoteRecycled (transition, slot, dead, cause) {
  if (transition.state.recycling?.slot !== slot.number || transition.state.recycling.worker !== dead.id) return false
  const heir = slot.candidate
  endRecycling(transition)
  if (heir === null) return false
  slot.serving = heir
  slot.candidate = null
  slot.restarts++
  transition.emitForWorker('worker.restarted', dead, { cause, release: slot.release, detail: { delayMs: 0, attempt: slot.record.attempt } })
  return true
}

/** @param {Transition} transition @param {Worker} worker any that has exited */
export function recycledGone (transition, worker) {
  const { recycling } = transition.state
  if (recycling?.worker === worker.id && recycling.state === 'draining') endRecycling(transition)
}

/**
 * Makes way for what an operator wants.
 * @param {Transition} transition @param {{ cause: string, actor: string }} intent
 */
export function callOff (transition, { cause, actor }) {
  const { recycling } = transition.state
  if (!recycling) return
  const slot = transition.slot(recycling.slot)
  const candidate = transition.state.workers[slot?.candidate ?? 0]
  endRecycling(transition)
  drainWorker(transition, candidate, { cause, actor, rollout: null, message: 'its recycling is cancelled' })
}

/** @param {Transition} transition */
export function endRecycling (transition) {
  transition.state.recycling = null
  transition.command({ type: 'clear-deadline', deadline: 'recycle', id: 0 })
}
