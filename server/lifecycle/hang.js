import { isFinished } from './finished.js'
import { isClaimed, isVacant } from './vacancy.js'
import { drainWorker } from './worker.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */

/** What the capture of a stack may take in all; whoever captures gives up well before. */
const CAPTURE_MS = 5000

/**
 * A worker whose event loop does not answer serves nobody: it loses its slot, and the next one is started before this
 * one is killed, with the stack where it is stuck on record.
 * @param {Transition} transition @param {Worker} worker one that was ready @param {string} message
 */
export function becomeUnresponsive (transition, worker, message) {
  worker.state = 'unresponsive'
  worker.intent = { cause: 'hung', actor: 'system', rollout: transition.state.rollout?.id ?? null }
  transition.emitForWorker('worker.unresponsive', worker, { cause: 'hung', actor: 'system', message })
  for (const deadline of /** @type {const} */ (['steady', 'age'])) transition.command({ type: 'clear-deadline', deadline, id: worker.id })
  transition.command({ type: 'capture-stack', worker: worker.id })
  transition.command({ type: 'set-deadline', deadline: 'stack', id: worker.id, ms: CAPTURE_MS })
}

/** @param {Transition} transition @param {Worker} worker its stack is known, or never will be */
export function killStuck (transition, worker) {
  if (worker.state !== 'unresponsive') return
  worker.state = 'stopping'
  transition.command({ type: 'clear-deadline', deadline: 'stack', id: worker.id })
  transition.command({ type: 'kill', worker: worker.id })
}

/**
 * It has answered before it was killed, and serves again. Its slot has been given away by then, so it goes once its
 * replacement is ready: both are of use until then, and one that has hung is the one to let go.
 * @param {Transition} transition @param {Worker} worker
 */
export function becomeResponsive (transition, worker) {
  if (worker.state !== 'unresponsive') return
  const { intent } = worker
  worker.state = 'ready'
  worker.intent = null
  transition.command({ type: 'clear-deadline', deadline: 'stack', id: worker.id })
  const isStopping = transition.state.phase === 'stopping'
  const isBack = !isStopping && takeSlotBack(transition, worker)
  transition.emitForWorker('worker.responsive', worker, { message: `worker ${worker.id} (slot ${worker.slot}) is responsive again; ${isStopping ? 'it stops with the others' : isBack ? 'it has its slot back' : 'it drains once its replacement is ready'}` })
  // The stop has passed it by while it could not hear.
  if (isStopping && intent) drainWorker(transition, worker, intent)
}

/** @param {Transition} transition @param {Worker} worker @returns {boolean} whether nobody else is to have its slot, as its end was waited for first, or would have been the last */
function takeSlotBack (transition, worker) {
  const slot = transition.slot(worker.slot)
  if (!slot || slot.release !== worker.release || isClaimed(transition.state, slot) || !(isVacant(slot) || isFinished(slot))) return false
  slot.serving = worker.id
  slot.finished = null
  return true
}

/** @param {Transition} transition those that have answered again and are not needed any more */
export function drainReplaced (transition) {
  for (const worker of Object.values(transition.state.workers)) {
    if (!isReplaced(transition, worker)) continue
    const serving = transition.state.workers[transition.slot(worker.slot)?.serving ?? 0]
    if (transition.slot(worker.slot) && serving?.state !== 'ready') continue
    drainWorker(transition, worker, { cause: 'hung', actor: 'system', rollout: null, message: 'it was unresponsive; its replacement is ready' })
  }
}

/** @param {Transition} transition @param {Worker} worker @returns {boolean} whether it serves without a slot of this master's */
function isReplaced (transition, { id, slot, state, orphan }) {
  const own = transition.slot(slot)
  return state === 'ready' && !orphan && own?.serving !== id && own?.candidate !== id
}
