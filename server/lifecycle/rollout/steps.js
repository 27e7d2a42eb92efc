import { countReplaced, find, mustFind, noteProgress, tellRollout } from './record.js'
import { cancelRetry, drain, forgive, fork } from '../worker.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

/** A step whose new worker is there, or on its way, and has not taken its slot over. */
export const UNDER_WAY = Object.freeze(['starting', 'soaking', 'ready'])

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step @param {string} release @param {'starting' | 'reverting'} state */
export function begin (turn, rollout, step, release, state) {
  const slot = mustFind(turn.slot(step.slot))
  step.state = state
  step.startedAt ??= turn.isoTime()
  step.oldWorker = slot.serving
  slot.candidate = fork(turn, slot, release, { readyTimeoutMs: state === 'starting' ? rollout.strategy.limits.readyTimeoutMs : undefined })
  step.newWorker = slot.candidate
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step the candidate takes the slot over, its predecessor drains */
export function promote (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  const isReverting = step.state === 'reverting'
  const old = slot.serving === null ? undefined : turn.state.workers[slot.serving]
  const target = isReverting ? step.from : mustFind(rollout.to)
  cancelRetry(turn, slot)
  if (slot.release !== target) forgive(turn, slot)
  slot.serving = slot.candidate
  slot.candidate = null
  slot.release = target
  step.oldWorker = old?.id ?? null
  step.state = isReverting ? 'reverted' : old ? 'draining' : 'done'
  if (step.state !== 'draining') step.finishedAt = turn.isoTime()
  rollout.hasReplaced ||= !isReverting
  countReplaced(rollout)
  noteProgress(turn)
  drain(turn, old, { cause: isReverting ? 'rollback' : rollout.kind, actor: rollout.actor, rollout: rollout.id })
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {import('../state.js').Worker} worker a candidate that has become ready */
export function candidateBecameReady (turn, worker) {
  const { rollout, step } = find(turn, worker)
  const isOnTrial = rollout.state === 'canary' || rollout.pausedIn === 'canary'
  const { minReadyMs } = rollout.strategy
  step.state = minReadyMs > 0 && !isOnTrial ? 'soaking' : 'ready'
  if (step.state === 'soaking') turn.order({ type: 'set-deadline', deadline: 'soak', id: worker.id, ms: minReadyMs })
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}
