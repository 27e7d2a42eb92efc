import { isEmpty } from './vacancy.js'
import { cancelRetry } from './worker.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {import('./state.js').Slot} Slot */

/**
 * A program that may come to its end, such as a job: its slot is finished then, until something is deployed to it or it
 * is restarted on purpose.
 * @param {Transition} transition @param {string} cause of its worker's end @returns {boolean} whether no other worker follows
 */
export function endsSlot ({ state: { options } }, cause) {
  return cause === 'finished' || options.restart.policy === 'never'
}

/**
 * @param {Transition} transition @param {Slot} slot @param {Worker} worker has ended, or is about to
 * @param {{ cause: string, code: number | null }} how
 */
export function finishSlot (transition, slot, worker, { cause, code }) {
  cancelRetry(transition, slot)
  const { policy } = transition.state.options.restart
  slot.finished = { at: transition.isoTime(), worker: worker.id, release: worker.release, cause, code, succeeded: cause === 'finished' && code === 0 }
  transition.emitForWorker('slot.finished', worker, {
    cause,
    code,
    detail: slot.finished,
    message: `slot ${slot.number} is finished: worker ${worker.id} ${howEnded(cause, code)} (option restart.policy: ${policy}); a restart or a deploy starts it again`
  })
}

/** @param {string} cause @param {number | null} code */
function howEnded (cause, code) {
  if (cause === 'finished') return `exited with code ${code}`
  return `ended by ${cause}${code === null ? '' : ` with code ${code}`}`
}

/** @param {Slot} slot @returns {boolean} whether its program has ended and no worker is to follow */
export function isFinished (slot) {
  return isEmpty(slot) && slot.finished !== null
}
