import { advance, abort, askJudge, beginTrialAnew, endTrial, watch } from './rollout.js'
import { noteProgress, running, stageOf, tellRollout } from './record.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {{ rollout: number, actor: string }} Steer */

/**
 * What an operator can do with the rollout that runs.
 * @type {Record<string, (turn: Turn, input: any) => void>}
 */
export const STEERING = {
  pause (turn, /** @type {Steer} */ { actor }) {
    const rollout = running(turn)
    rollout.pausedIn = /** @type {'preparing' | 'canary' | 'rolling'} */ (rollout.state)
    rollout.state = 'paused'
    rollout.progressLeftMs = rollout.progressDueAt === null ? null : Math.max(1, rollout.progressDueAt - turn.at)
    turn.order({ type: 'clear-deadline', deadline: 'progress', id: 0 })
    tellRollout(turn, 'rollout.paused', { actor, message: `paused by ${actor}` })
  },

  resume (turn, /** @type {Steer} */ { actor }) {
    resume(turn, actor, 'resumed')
  },

  abort (turn, /** @type {Steer} */ { actor }) {
    abort(turn, { reason: `aborted by ${actor}`, actor })
  },

  promote (turn, /** @type {Steer} */ { actor }) {
    tellRollout(turn, 'rollout.promoted', { actor, message: `${actor} has ended the trial` })
    endTrial(turn)
  },

  retry (turn, /** @type {Steer} */ { actor }) {
    resume(turn, actor, 'tried again')
  }
}

/** @param {Turn} turn @param {string} actor @param {string} how */
function resume (turn, actor, how) {
  const rollout = running(turn)
  const wasHeld = rollout.isHeld
  if (wasHeld) {
    rollout.crashes = 0
    for (const step of rollout.steps) if (step.state === 'failed') step.state = 'pending'
  }
  rollout.state = stageOf(rollout)
  rollout.pausedIn = null
  rollout.isHeld = false
  rollout.reason = null
  tellRollout(turn, 'rollout.resumed', { actor, message: `${how} by ${actor}` })
  if (rollout.progressLeftMs != null) {
    rollout.progressDueAt = turn.at + rollout.progressLeftMs
    turn.order({ type: 'set-deadline', deadline: 'progress', id: 0, ms: rollout.progressLeftMs })
  } else noteProgress(turn)
  rollout.progressLeftMs = null
  // What held it has stopped its clocks, and what was counted until then does not count any more.
  if (wasHeld) watch(turn)
  if (rollout.state === 'canary') beginTrialAnew(turn, { isForced: wasHeld })
  // The trial's time may have passed meanwhile.
  if (rollout.state === 'canary' && rollout.canaryEndsAt !== null && rollout.canaryEndsAt <= turn.isoTime()) askJudge(turn, 'canary')
  advance(turn)
}

/**
 * @param {import('../state.js').PoolState} state @param {{ type: string, rollout: number }} input
 * @returns {import('../state.js').Refusal | null} why it comes too late, or too early
 */
export function refuseSteering ({ rollout }, { type, rollout: id }) {
  if (rollout?.id !== id) return { code: 'rollout-ended', message: `rollout ${id} does not run any more`, details: { rollout: id } }
  const conflict = (/** @type {string} */ what) => /** @type {const} */ ({ code: 'rollout-state', message: `rollout ${id} ${what}`, details: { rollout: id, state: rollout.state } })
  const isPaused = rollout.state === 'paused'
  if (rollout.state === 'aborting') return conflict('is going back already')
  if (type === 'pause' && isPaused) return conflict('is paused already')
  if (type === 'resume' && !isPaused) return conflict(`is not paused but ${rollout.state}`)
  if (type === 'retry' && !rollout.isHeld) return conflict('is not held after a failure')
  if (type === 'promote' && stageOf(rollout) !== 'canary') return conflict('has no trial that could be ended')
  return null
}
