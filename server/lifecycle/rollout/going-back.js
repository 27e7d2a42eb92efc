import { isHeld } from '../drift.js'
import { clearClocks, countReplaced, finish, mustFind, running, stageOf, tellRollout } from './record.js'
import { begin, UNDER_WAY } from './steps.js'
import { drain } from '../worker.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

/**
 * Something speaks against the new release.
 * @param {Turn} turn @param {string} reason
 */
export function giveUp (turn, reason) {
  const rollout = running(turn)
  if (rollout.strategy.onFailure === 'hold') hold(turn, rollout, reason)
  else goBack(turn, { reason })
}

/** @param {Turn} turn @param {Rollout} rollout @param {string} reason */
function hold (turn, rollout, reason) {
  clearClocks(turn)
  rollout.pausedIn = /** @type {'canary' | 'rolling'} */ (stageOf(rollout))
  rollout.state = 'paused'
  rollout.isHeld = true
  rollout.reason = reason
  tellRollout(turn, 'rollout.held', { message: `${reason}; it waits for a person: retry, resume or abort it` })
}

/**
 * Whatever was already replaced gets its old release back, new before old again.
 * @param {Turn} turn @param {{ reason: string, actor?: string }} why
 */
export function goBack (turn, { reason, actor }) {
  const rollout = running(turn)
  clearClocks(turn)
  rollout.state = 'aborting'
  rollout.pausedIn = null
  rollout.isHeld = false
  rollout.reason = reason
  for (const step of rollout.steps) undo(turn, rollout, step)
  countReplaced(rollout)
  tellRollout(turn, 'rollout.aborting', { actor, message: reason })
  revert(turn)
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step */
function undo (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  if (UNDER_WAY.includes(step.state)) {
    const candidate = slot.candidate === null ? undefined : turn.state.workers[slot.candidate]
    drain(turn, candidate, { cause: 'rollback', actor: rollout.actor, rollout: rollout.id, message: String(rollout.reason) })
    step.state = 'reverted'
    step.finishedAt = turn.isoTime()
  } else if ((step.state === 'draining' || step.state === 'done') && step.from !== rollout.to) {
    slot.release = step.from
    const serving = slot.serving === null ? undefined : turn.state.workers[slot.serving]
    // A slot without a worker comes back on its old release by itself, as does one whose worker runs that already.
    step.state = serving && serving.release !== step.from ? 'reverting' : 'reverted'
  }
}

/** @param {Turn} turn what is left to go back goes on; the rollout ends with the last of it */
export function revert (turn) {
  const rollout = running(turn)
  const isUnderWay = (/** @type {RolloutStep} */ { slot }) => turn.slot(slot)?.candidate != null
  for (const step of rollout.steps) if (step.state === 'reverting' && !isUnderWay(step) && isHeld(turn, step.from)) leave(turn, rollout, step)
  const steps = rollout.steps.filter(({ state }) => state === 'reverting')
  const room = rollout.strategy.surge - steps.filter(isUnderWay).length
  for (const step of steps.filter((one) => !isUnderWay(one)).slice(0, Math.max(0, room))) begin(turn, rollout, step, step.from, 'reverting')
  if (steps.length === 0) finish(turn, isWhole(turn, rollout) ? 'rolled-back' : 'failed')
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step goes no further back: what serves in its slot is better than nothing */
export function leave (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  const candidate = slot.candidate === null ? undefined : turn.state.workers[slot.candidate]
  drain(turn, candidate, { cause: 'rollback', actor: rollout.actor, rollout: rollout.id })
  const serving = slot.serving === null ? undefined : turn.state.workers[slot.serving]
  slot.release = serving?.release ?? slot.release
  step.state = 'failed'
  step.finishedAt = turn.isoTime()
  tellRollout(turn, 'rollout.step', { step })
}

/**
 * Whether it has put something into service and taken it back. One that never came so far has failed, and one that
 * could not go back everywhere has too.
 * @param {Turn} turn @param {Rollout} rollout
 */
function isWhole (turn, rollout) {
  const isBack = rollout.steps.every(({ slot, from }) => turn.slot(slot)?.release === from)
  return isBack && (rollout.hasReplaced || rollout.isAborted)
}
