import { goBack } from './going-back.js'
import { countDown, noteProgress, running, tellRollout } from './record.js'
import { canMove, move, phaseOf, shownStage } from './stages.js'
import { askJudge, beginJudging, beginTrialAnew, endTrial } from './trial.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {{ rollout: number, actor: string }} Steer */

/**
 * What an operator can do with the rollout that runs.
 * @type {Record<string, (turn: Turn, input: any) => void>}
 */
export const STEERING = {
  pause (turn, /** @type {Steer} */ { actor }) {
    const rollout = running(turn)
    move(rollout, 'pause')
    rollout.pausedAt = turn.isoTime()
    rollout.progressLeftMs = rollout.progressDueAt === null ? null : Math.max(1, rollout.progressDueAt - turn.at)
    turn.order({ type: 'clear-deadline', deadline: 'progress', id: 0 })
    tellRollout(turn, 'rollout.paused', { actor, message: `paused by ${actor}` })
  },

  resume (turn, /** @type {Steer} */ { actor }) {
    goOn(turn, 'resume', { actor, message: `resumed by ${actor}` })
  },

  retry (turn, /** @type {Steer} */ { actor }) {
    goOn(turn, 'retry', { actor, message: `retried by ${actor}` })
  },

  promote (turn, /** @type {Steer} */ { actor }) {
    tellRollout(turn, 'rollout.promoted', { actor, message: `canary promoted by ${actor}` })
    endTrial(turn)
  },

  abort (turn, /** @type {Steer} */ { actor }) {
    goBack(turn, { reason: `aborted by ${actor}`, actor })
  }
}

/** @param {Turn} turn @param {'resume' | 'retry'} verb @param {{ actor: string, message: string }} by */
function goOn (turn, verb, by) {
  const rollout = running(turn)
  const hadFailed = shownStage(rollout).isHeld
  if (hadFailed) {
    rollout.crashes = 0
    rollout.comparison = null
    for (const step of rollout.steps) if (step.state === 'failed') step.state = 'pending'
  }
  move(rollout, verb)
  rollout.reason = null
  rollout.pausedAt = null
  tellRollout(turn, 'rollout.resumed', by)
  if (rollout.progressLeftMs === null) noteProgress(turn)
  else countDown(turn, rollout.progressLeftMs)
  rollout.progressLeftMs = null
  // What stopped it has stopped its clocks, and what was counted until then does not count any more.
  if (hadFailed) beginJudging(turn)
  if (phaseOf(rollout) !== 'canary') return
  beginTrialAnew(turn, { isForced: hadFailed })
  // The trial's time may have passed meanwhile.
  if (rollout.canaryEndsAt !== null && rollout.canaryEndsAt <= turn.isoTime()) askJudge(turn, 'canary')
}

/**
 * @param {import('../state.js').PoolState} state @param {import('../state.js').Input & { type: keyof typeof CONFLICTS, rollout: number }} input
 * @returns {import('../state.js').Refusal | null} why it comes too late, or too early
 */
export function refuseSteering ({ rollout }, { type, rollout: id }) {
  if (rollout?.id !== id) return { code: 'rollout-ended', message: `rollout ${id} has ended`, details: { rollout: id } }
  if (canMove(rollout, type)) return null
  const { state } = shownStage(rollout)
  const why = state === 'aborting' ? 'is already reverting' : CONFLICTS[type](state)
  return { code: 'rollout-state', message: `rollout ${id} ${why}`, details: { rollout: id, state } }
}

const CONFLICTS = {
  pause: () => 'is already paused',
  resume: (/** @type {string} */ state) => `is ${state}, not paused`,
  retry: () => 'does not await an operator',
  promote: () => 'has no canary to promote',
  abort: () => 'is already reverting'
}
