import { goBack } from './rolling-back.js'
import { countDown, noteProgress, runningRollout, tellRollout } from './record.js'
import { canMove, isHeld, makeMove, phaseOf, shownStage } from './stages.js'
import { askJudge, beginJudging, beginTrialAnew, endTrial } from './trial.js'

/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Inputs['pause']} Steer  all five verbs share it */

/**
 * What an operator can do with a running rollout.
 * @type {Record<Steer['type'], (transition: Transition, input: Steer) => void>}
 */
export const STEERING = {
  pause (transition, { actor }) {
    const rollout = runningRollout(transition)
    makeMove(rollout, 'pause')
    rollout.pausedAt = transition.isoTime()
    rollout.progressLeftMs = rollout.progressDueAt === null ? null : Math.max(1, rollout.progressDueAt - transition.at)
    transition.command({ type: 'clear-deadline', deadline: 'progress', id: 0 })
    tellRollout(transition, 'rollout.paused', { actor, message: `paused by ${actor}` })
  },

  resume (transition, { actor }) {
    goOn(transition, 'resume', { actor, message: `resumed by ${actor}` })
  },

  retry (transition, { actor }) {
    goOn(transition, 'retry', { actor, message: `retried by ${actor}` })
  },

  promote (transition, { actor }) {
    tellRollout(transition, 'rollout.promoted', { actor, message: `canary promoted by ${actor}` })
    endTrial(transition)
  },

  abort (transition, { actor }) {
    goBack(transition, { reason: `aborted by ${actor}`, actor })
  }
}

/** @param {Transition} transition @param {'resume' | 'retry'} verb @param {{ actor: string, message: string }} by */
function goOn (transition, verb, by) {
  const rollout = runningRollout(transition)
  const hadFailed = isHeld(rollout)
  if (hadFailed) {
    rollout.crashes = 0
    rollout.comparison = null
    for (const step of rollout.steps) if (step.state === 'failed') step.state = 'pending'
  }
  makeMove(rollout, verb)
  rollout.reason = null
  rollout.pausedAt = null
  tellRollout(transition, 'rollout.resumed', by)
  if (rollout.progressLeftMs === null) noteProgress(transition)
  else countDown(transition, rollout.progressLeftMs)
  rollout.progressLeftMs = null
  // The hold has stopped its clocks, and figures from before it no longer count.
  if (hadFailed) beginJudging(transition)
  if (phaseOf(rollout) !== 'canary') return
  beginTrialAnew(transition, { isForced: hadFailed })
  // The trial's time may have passed meanwhile.
  if (rollout.canaryEndsAt !== null && rollout.canaryEndsAt <= transition.isoTime()) askJudge(transition, 'canary')
}

/**
 * @param {import('../state.js').PoolState} state @param {Steer} input
 * @returns {import('../state.js').Refusal | null} why it is not possible now
 */
export function refuseSteering ({ rollout }, { type, rollout: id }) {
  if (rollout?.id !== id) return { code: 'rollout-ended', message: `rollout ${id} has ended`, details: { rollout: id } }
  if (canMove(rollout, type)) return null
  const { state } = shownStage(rollout)
  const why = state === 'rolling-back' ? 'is already rolling back' : CONFLICTS[type](state)
  return { code: 'rollout-state', message: `rollout ${id} ${why}`, details: { rollout: id, state } }
}

/** @type {Record<Steer['type'], (state: string) => string>} */
const CONFLICTS = {
  pause: (state) => `is already ${state}`,
  resume: (state) => `is ${state}, not paused`,
  retry: () => 'is not held',
  promote: () => 'has no canary to promote',
  abort: () => 'is already rolling back'
}
