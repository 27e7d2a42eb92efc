import { bootRoom } from '../boot-room.js'
import { isBlocked, whyBlocked } from '../drift.js'
import { isVacant } from '../vacancy.js'
import { endHook, isHookRunning } from './hook.js'
import { clearClocks, countReplaced, finishRollout, noteProgress, runningRollout, tellRollout } from './record.js'
import { askFigures } from './sides.js'
import { canMove, moveTo } from './stages.js'
import { beginStep, isReplaced, leaveStep, undoStep } from './step.js'

/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

/**
 * Something speaks against the new release.
 * @param {Transition} transition @param {string} reason @param {{ hasReplaced?: boolean }} [how]
 */
export function giveUp (transition, reason, { hasReplaced } = {}) {
  const rollout = runningRollout(transition)
  if (rollout.strategy.onFailure === 'hold') holdRollout(transition, rollout, reason)
  else goBack(transition, { reason, hasReplaced })
}

/** @param {Transition} transition @param {Rollout} rollout @returns {boolean} whether nothing may start on its release, as files of it have changed since it began */
export function giveUpIfBlocked (transition, { to }) {
  if (to === null || !isBlocked(transition, to)) return false
  giveUp(transition, whyBlocked(transition, to))
  return true
}

/** @param {Transition} transition @param {Rollout} rollout @param {string} reason */
function holdRollout (transition, rollout, reason) {
  clearClocks(transition)
  moveTo(rollout, 'hold')
  rollout.reason = reason
  rollout.pausedAt = transition.isoTime()
  askFigures(transition, rollout)
  tellRollout(transition, 'rollout.held', { message: `${reason}; retry, resume or abort it` })
}

/**
 * Whatever was already replaced gets its old release back, new before old again.
 * @param {Transition} transition
 * @param {{ reason: string, actor?: string, hasReplaced?: boolean }} why `actor`: an operator has aborted it;
 *   `hasReplaced`: it has put something into service, also where its steps tell no more
 */
export function goBack (transition, { reason, actor, hasReplaced = false }) {
  const rollout = runningRollout(transition)
  clearClocks(transition)
  endHook(transition, rollout)
  moveTo(rollout, actor ? 'abort' : hasReplaced || rollout.steps.some(isReplaced) ? 'roll-back' : 'withdraw')
  rollout.reason = reason
  rollout.abortedBy = actor ?? null
  rollout.pausedAt = null
  for (const step of rollout.steps) undoStep(transition, rollout, step)
  // What goes back may have to wait for its turn to start.
  noteProgress(transition)
  countReplaced(rollout)
  tellRollout(transition, 'rollout.rolling-back', { actor, message: reason })
}

/** @param {Transition} transition @param {Rollout} rollout what is left to go back goes on; the rollout ends with the last of it */
export function rollBackSteps (transition, rollout) {
  // The next deploy may have a hook too, and two of them do not run side by side.
  if (isHookRunning(rollout)) return
  const isUnderWay = (/** @type {RolloutStep} */ step) => isGoing(transition, rollout, step)
  for (const step of rollout.steps) if (step.state === 'reverting' && !isUnderWay(step) && isBlocked(transition, step.from)) leaveStep(transition, rollout, step)
  const steps = rollout.steps.filter(({ state }) => state === 'reverting')
  const room = rollout.strategy.surge - steps.filter(isUnderWay).length
  for (const step of steps.filter((one) => !isUnderWay(one)).slice(0, Math.max(0, Math.min(room, bootRoom(transition.state))))) beginStep(transition, rollout, step, step.from, 'reverting')
  if (steps.length === 0) finishRollout(transition, isBack(transition, rollout) && canMove(rollout, 'roll-back') ? 'roll-back' : 'fail')
}

/** @param {Transition} transition @param {Rollout} rollout @param {RolloutStep} step @returns {boolean} whether its old release is on its way, or with stop-first what it replaces is on its way out */
function isGoing (transition, { strategy }, { slot: number }) {
  const slot = transition.slot(number)
  return slot != null && (slot.candidate !== null || (strategy.order === 'stop-first' && isVacant(slot)))
}

/** @param {Transition} transition @param {Rollout} rollout one that could not go back everywhere has failed */
function isBack (transition, rollout) {
  return rollout.steps.every(({ slot, from }) => transition.slot(slot)?.release === from)
}
