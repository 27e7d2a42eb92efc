import { bootRoom } from '../boot-room.ts'
import { isBlocked, returnCaveat, whyBlocked, whyNoReturn } from '../drift.ts'
import { isVacant } from '../slot.ts'
import { endHook, isHookRunning } from './hook.ts'
import { addWarning, clearClocks, countReplaced, finishRollout, noteProgress, runningRollout,
  tellRollout } from './record.ts'
import { askFigures } from './sides.ts'
import { canMove, makeMove } from './stages.ts'
import { beginStep, isReplaced, leaveStep, undoStep } from './step.ts'
import type { Transition } from '../transition.ts'
import type { Rollout, RolloutStep } from '../state.ts'

/** The new release has failed: rolls back, or holds the rollout, as rollout.onFailure says. */
export function giveUp (transition: Transition, reason: string, { hasReplaced }: { hasReplaced?: boolean } = {}) {
  const rollout = runningRollout(transition)
  if (rollout.strategy.onFailure === 'hold') holdRollout(transition, rollout, reason)
  else goBack(transition, { reason, hasReplaced })
}

/**
 * Gives a rollout up whose files have changed since it began, so that nothing may start on its release. A rollback goes
 * on with a warning where only other files than the code have changed. Returns whether it was given up.
 */
export function giveUpIfBlocked (transition: Transition, rollout: Rollout): boolean {
  const { kind, to } = rollout
  if (to === null) return false
  const whyNot = isBlocked(transition, to) ? whyBlocked(transition, to) : null
  const why = kind === 'rollback' ? whyNoReturn(transition, to) : whyNot
  const caveat = kind === 'rollback' ? returnCaveat(transition, to) : null
  if (why !== null) giveUp(transition, why)
  else if (caveat !== null && !rollout.warnings.includes(caveat)) addWarning(rollout, caveat)
  return why !== null
}

function holdRollout (transition: Transition, rollout: Rollout, reason: string) {
  clearClocks(transition)
  makeMove(rollout, 'hold')
  rollout.reason = reason
  rollout.pausedAt = transition.isoTime()
  askFigures(transition, rollout)
  tellRollout(transition, 'rollout.held', { message: `${reason}; retry or abort it` })
}

/**
 * Every slot that was replaced gets its old release back; its worker is ready before the new one drains. A slot stays
 * as it is if the files of its old release were changed in place: a new worker of that release would not run its code.
 * @param why `actor`: an operator has aborted it;
 * `hasReplaced`: it has replaced something, even if its steps no longer show that
 */
export function goBack (transition: Transition,
  { reason, actor, hasReplaced = false }: { reason: string, actor?: string, hasReplaced?: boolean })
{
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
  if (isReturning || staying.length === 0)
    tellRollout(transition, 'rollout.rolling-back', { actor, message: rollout.reason })
}

/** `rollout`: ends once the last of its steps is back */
export function rollBackSteps (transition: Transition, rollout: Rollout) {
  // The next deploy may have a hook too, and two hooks must not run side by side.
  if (isHookRunning(rollout)) return
  const isUnderWay = (step: RolloutStep) => isGoing(transition, rollout, step)
  for (const step of rollout.steps) {
    if (step.state === 'reverting' && !isUnderWay(step) && whyNoReturn(transition, step.from))
      leaveStep(transition, rollout, step)
  }
  const steps = rollout.steps.filter(({ state }) => state === 'reverting')
  const room = rollout.strategy.surge - steps.filter(isUnderWay).length
  const next = steps.filter((one) => !isUnderWay(one)).slice(0, Math.max(0, Math.min(room, bootRoom(transition.state))))
  for (const step of next) beginStep(transition, rollout, step, step.from, 'reverting')
  if (steps.length === 0)
    finishRollout(transition, isBack(transition, rollout) && canMove(rollout, 'roll-back') ? 'roll-back' : 'fail')
}

/** Tells whether a worker of its old release starts, or with stop-first the new one makes way */
function isGoing (transition: Transition, { strategy }: Rollout, { slot: number }: RolloutStep): boolean {
  const slot = transition.slot(number)
  return slot != null && (slot.candidate !== null || (strategy.order === 'stop-first' && isVacant(slot)))
}

/** Tells whether every slot has its old release */
function isBack (transition: Transition, rollout: Rollout): boolean {
  return rollout.steps.every(({ slot, from }) => transition.slot(slot)?.release === from)
}
