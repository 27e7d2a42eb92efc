import { bootRoom } from '../boot-room.js'
import { isBlocked, whyBlocked } from '../drift.js'
import { isVacant } from '../vacancy.js'
import { endHook, isHookRunning } from './hook.js'
import { clearClocks, countReplaced, finish, noteProgress, running, tellRollout } from './record.js'
import { askFigures } from './sides.js'
import { canMove, move } from './stages.js'
import { beginStep, isReplaced, leaveStep, undoStep } from './step.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

/**
 * Something speaks against the new release.
 * @param {Turn} turn @param {string} reason @param {{ hasReplaced?: boolean }} [how]
 */
export function giveUp (turn, reason, { hasReplaced } = {}) {
  const rollout = running(turn)
  if (rollout.strategy.onFailure === 'hold') awaitOperator(turn, rollout, reason)
  else goBack(turn, { reason, hasReplaced })
}

/** @param {Turn} turn @param {Rollout} rollout @returns {boolean} whether nothing may start on its release, as files of it have changed since it began */
export function giveUpIfBlocked (turn, { to }) {
  if (to === null || !isBlocked(turn, to)) return false
  giveUp(turn, whyBlocked(turn, to))
  return true
}

/** @param {Turn} turn @param {Rollout} rollout @param {string} reason */
function awaitOperator (turn, rollout, reason) {
  clearClocks(turn)
  move(rollout, 'hold')
  rollout.reason = reason
  rollout.pausedAt = turn.isoTime()
  askFigures(turn, rollout)
  tellRollout(turn, 'rollout.held', { message: `${reason}; retry, resume or abort it` })
}

/**
 * Whatever was already replaced gets its old release back, new before old again.
 * @param {Turn} turn
 * @param {{ reason: string, actor?: string, hasReplaced?: boolean }} why `actor`: an operator has aborted it;
 *   `hasReplaced`: it has put something into service, also where its steps tell no more
 */
export function goBack (turn, { reason, actor, hasReplaced = false }) {
  const rollout = running(turn)
  clearClocks(turn)
  endHook(turn, rollout)
  move(rollout, actor ? 'abort' : hasReplaced || rollout.steps.some(isReplaced) ? 'roll-back' : 'withdraw')
  rollout.reason = reason
  rollout.pausedAt = null
  for (const step of rollout.steps) undoStep(turn, rollout, step)
  // What goes back may have to wait for its turn to start.
  noteProgress(turn)
  countReplaced(rollout)
  tellRollout(turn, 'rollout.aborting', { actor, message: reason })
}

/** @param {Turn} turn @param {Rollout} rollout what is left to go back goes on; the rollout ends with the last of it */
export function revert (turn, rollout) {
  // The next deploy may have a hook too, and two of them do not run side by side.
  if (isHookRunning(rollout)) return
  const isUnderWay = (/** @type {RolloutStep} */ step) => isGoing(turn, rollout, step)
  for (const step of rollout.steps) if (step.state === 'reverting' && !isUnderWay(step) && isBlocked(turn, step.from)) leaveStep(turn, rollout, step)
  const steps = rollout.steps.filter(({ state }) => state === 'reverting')
  const room = rollout.strategy.surge - steps.filter(isUnderWay).length
  for (const step of steps.filter((one) => !isUnderWay(one)).slice(0, Math.max(0, Math.min(room, bootRoom(turn.state))))) beginStep(turn, rollout, step, step.from, 'reverting')
  if (steps.length === 0) finish(turn, isBack(turn, rollout) && canMove(rollout, 'roll-back') ? 'roll-back' : 'fail')
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step @returns {boolean} whether its old release is on its way, or with stop-first what it replaces is on its way out */
function isGoing (turn, { strategy }, { slot: number }) {
  const slot = turn.slot(number)
  return slot != null && (slot.candidate !== null || (strategy.order === 'stop-first' && isVacant(slot)))
}

/** @param {Turn} turn @param {Rollout} rollout one that could not go back everywhere has failed */
function isBack (turn, rollout) {
  return rollout.steps.every(({ slot, from }) => turn.slot(slot)?.release === from)
}
