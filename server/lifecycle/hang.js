import { isFinished } from './finished.js'
import { isClaimed, isVacant } from './vacancy.js'
import { drain } from './worker.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Worker} Worker */

/** What the capture of a stack may take in all; whoever captures gives up well before. */
const CAPTURE_MS = 5000

/**
 * A worker whose event loop does not answer serves nobody: it loses its slot, and the next one is started before this
 * one is killed, with the stack where it is stuck on record.
 * @param {Turn} turn @param {Worker} worker one that was ready @param {string} message
 */
export function becomeUnresponsive (turn, worker, message) {
  worker.state = 'unresponsive'
  worker.intent = { cause: 'hung', actor: 'system', rollout: turn.state.rollout?.id ?? null }
  turn.tellOf('worker.unresponsive', worker, { cause: 'hung', actor: 'system', message })
  for (const deadline of /** @type {const} */ (['steady', 'age'])) turn.order({ type: 'clear-deadline', deadline, id: worker.id })
  turn.order({ type: 'capture-stack', worker: worker.id })
  turn.order({ type: 'set-deadline', deadline: 'stack', id: worker.id, ms: CAPTURE_MS })
}

/** @param {Turn} turn @param {Worker} worker its stack is known, or never will be */
export function killStuck (turn, worker) {
  if (worker.state !== 'unresponsive') return
  worker.state = 'stopping'
  turn.order({ type: 'clear-deadline', deadline: 'stack', id: worker.id })
  turn.order({ type: 'kill', worker: worker.id })
}

/**
 * It has answered before it was killed, and serves again. Its slot has been given away by then, so it goes once its
 * replacement is ready: both are of use until then, and one that has hung is the one to let go.
 * @param {Turn} turn @param {Worker} worker
 */
export function becomeResponsive (turn, worker) {
  if (worker.state !== 'unresponsive') return
  const { intent } = worker
  worker.state = 'ready'
  worker.intent = null
  turn.order({ type: 'clear-deadline', deadline: 'stack', id: worker.id })
  const isStopping = turn.state.phase === 'stopping'
  const isBack = !isStopping && takeSlotBack(turn, worker)
  turn.tellOf('worker.responsive', worker, { message: `worker ${worker.id} (slot ${worker.slot}) is responsive again; ${isStopping ? 'it stops with the others' : isBack ? 'it has its slot back' : 'it drains once its replacement is ready'}` })
  // The stop has passed it by while it could not hear.
  if (isStopping && intent) drain(turn, worker, intent)
}

/** @param {Turn} turn @param {Worker} worker @returns {boolean} whether nobody else is to have its slot, as its end was waited for first, or would have been the last */
function takeSlotBack (turn, worker) {
  const slot = turn.slot(worker.slot)
  if (!slot || slot.release !== worker.release || isClaimed(turn.state, slot) || !(isVacant(slot) || isFinished(slot))) return false
  slot.serving = worker.id
  slot.finished = null
  return true
}

/** @param {Turn} turn those that have answered again and are not needed any more */
export function drainReplaced (turn) {
  for (const worker of Object.values(turn.state.workers)) {
    if (!isReplaced(turn, worker)) continue
    const serving = turn.state.workers[turn.slot(worker.slot)?.serving ?? 0]
    if (turn.slot(worker.slot) && serving?.state !== 'ready') continue
    drain(turn, worker, { cause: 'hung', actor: 'system', rollout: null, message: 'it was unresponsive; its replacement is ready' })
  }
}

/** @param {Turn} turn @param {Worker} worker @returns {boolean} whether it serves without a slot of this master's */
function isReplaced (turn, { id, slot, state, orphan }) {
  const own = turn.slot(slot)
  return state === 'ready' && !orphan && own?.serving !== id && own?.candidate !== id
}
