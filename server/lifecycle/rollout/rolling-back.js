import { bootRoom } from '../boot-room.js'
import { isBlocked, returnCaveat, whyBlocked, whyNoReturn } from '../drift.js'
import { isVacant } from '../vacancy.js'
import { endHook, isHookRunning } from './hook.js'
import { addWarning, clearClocks, countReplaced, finishRollout, noteProgress, runningRollout, tellRollout } from './record.js'
import { askFigures } from './sides.js'
import { canMove, makeMove } from './stages.js'
import { beginStep, isReplaced, leaveStep, undoStep } from './step.js'

/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

/**
 * The new release has failed: rolls back, or holds the rollout, as rollout.onFailure says.
 * @param {Transition} transition @param {string} reason @param {{ hasReplaced?: boolean }} [how]
 */
export function giveUp (transition, reason, { hasReplaced } = {}) {
  const rollout = runningRollout(transition)
  if (rollout.strategy.onFailure === 'hold') holdRollout(transition, rollout, reason)
  else goBack(transition, { reason, hasReplaced })
}

/**
 * Gives a rollout up whose files have changed since it began, so that nothing may start on its release. A rollback goes on with a warning
 * where only other files than the code have changed.
 * @param {Transition} transition @param {Rollout} rollout
 * @returns {boolean} whether it was given up
 */
export function giveUpIfBlocked (transition, rollout) {
  const { kind, to } = rollout
  if (to === null) return false
  const whyNot = isBlocked(transition, to) ? whyBlocked(transition, to) : null
  const why = kind === 'rollback' ? whyNoReturn(transition, to) : whyNot
  const caveat = kind === 'rollback' ? returnCaveat(transition, to) : null
  if (why !== null) giveUp(transition, why)
  else if (caveat !== null && !rollout.warnings.includes(caveat)) addWarning(rollout, caveat)
  return why !== null
}

/** @param {Transition} transition @param {Rollout} rollout @param {string} reason */
function holdRollout (transition, rollout, reason) {
  clearClocks(transition)
  makeMove(rollout, 'hold')
  rollout.reason = reason
  rollout.pausedAt = transition.isoTime()
  askFigures(transition, rollout)
  tellRollout(transition, 'rollout.held', { message: `${reason}; retry, resume or abort it` })
}

/**
 * Every slot that was replaced gets its old release back; its worker is ready before the new one drains. A slot stays as it is if the
 * files of its old release were changed in place: a new worker of that release would not run its code.
 * @param {Transition} transition
 * @param {{ reason: string, actor?: string, hasReplaced?: boolean }} why `actor`: an operator has aborted it;
 *   `hasReplaced`: it has replaced something, even if its steps no longer show that
 */
export function goBack (transition, { reason, actor, hasReplaced = false }) {
  const rollout = runningRollout(transition)
  clearClocks(transition)
  endHook(transition, rollout)
  const replaced = rollout.steps.filter(isReplaced)
  const staying = replaced.filter(({ from }) => from !== rollout.to && whyNoReturn(transition, from) !== null)
  const isReturning = replaced.length > staying.length || (hasReplaced && staying.length === 0)
  makeMove(rollout, actor ? 'abort' : isReturning ? 'roll-back' : 'withdraw')
  const whyStaying = staying.length === 0 ? null : whyNoReturn(transition, staying[0].from)
  const caveat = isReturning ? returnCaveat(transition, rollout.from) : null
  rollout.reason = [reason, whyStaying, caveat].filter(Boolean).join('; ')
  rollout.abortedBy = actor ?? null
  rollout.pausedAt = null
  for (const step of rollout.steps) {
    if (staying.includes(step)) leaveStep(transition, rollout, step)
    else undoStep(transition, rollout, step)
  }
  // A worker of the old release may have to wait before it can start.
  noteProgress(transition)
  countReplaced(rollout)
  if (isReturning || staying.length === 0) tellRollout(transition, 'rollout.rolling-back', { actor, message: rollout.reason })
}

/** @param {Transition} transition @param {Rollout} rollout ends once the last of its steps is back */
export function rollBackSteps (transition, rollout) {
  // The next deploy may have a hook too, and two hooks must not run side by side.
  if (isHookRunning(rollout)) return
  const isUnderWay = (/** @type {RolloutStep} */ step) => isGoing(transition, rollout, step)
  for (const step of rollout.steps) {
    if (step.state === 'reverting' && !isUnderWay(step) && whyNoReturn(transition, step.from)) leaveStep(transition, rollout, step)
  }
  const steps = rollout.steps.filter(({ state }) => state === 'reverting')
  const room = rollout.strategy.surge - steps.filter(isUnderWay).length
  const next = steps.filter((one) => !isUnderWay(one)).slice(0, Math.max(0, Math.min(room, bootRoom(transition.state))))
  for (const step of next) beginStep(transition, rollout, step, step.from, 'reverting')
  if (steps.length === 0) finishRollout(transition, isBack(transition, rollout) && canMove(rollout, 'roll-back') ? 'roll-back' : 'fail')
}

/**
 * @param {Transition} transition @param {Rollout} rollout @param {RolloutStep} step
 * @returns {boolean} whether a worker of its old release starts, or with stop-first the new one makes way
 */
function isGoing (transition, { strategy }, { slot: number }) {
  const slot = transition.slot(number)
  return slot != null && (slot.candidate !== null || (strategy.order === 'stop-first' && isVacant(slot)))
}

/** @param {Transition} transition @param {Rollout} rollout @returns {boolean} whether every slot has its old release */
function isBack (transition, rollout) {
  return rollout.steps.every(({ slot, from }) => transition.slot(slot)?.release === from)
}
