import { countReplaced, mustFind, noteProgress, tellRollout } from './record.js'
import { phaseOf } from './stages.js'
import { isEmpty, isOccupied, isVacant } from '../vacancy.js'
import { cancelRetry, drain, resetBackoff, fork } from '../worker.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

/** A step whose new worker is there, or on its way, and has not taken its slot over. */
export const UNDER_WAY = Object.freeze(['stopping', 'starting', 'soaking', 'ready'])

/** @param {Turn} turn @param {number[]} numbers @param {import('./strategy.js').Strategy} strategy @returns {RolloutStep[]} */
export function toSteps ({ state }, numbers, { canary }) {
  return state.slots.filter(({ number }) => numbers.includes(number)).map(({ number, release }, index) => ({
    slot: number, state: 'pending', oldWorker: null, newWorker: null, from: release, isCanary: index < (canary?.workers ?? 0), startedAt: null, readyAt: null, promotedAt: null, drainedAt: null, revertingAt: null, finishedAt: null
  }))
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step @param {string} release @param {'starting' | 'reverting'} state */
export function beginStep (turn, rollout, step, release, state) {
  const slot = mustFind(turn.slot(step.slot))
  step.state = state
  step.startedAt ??= turn.isoTime()
  step.finishedAt = null
  if (state === 'starting') Object.assign(step, { readyAt: null, drainedAt: null })
  step.oldWorker = slot.serving
  if (rollout.strategy.order === 'stop-first') {
    cancelRetry(turn, slot)
    clear(turn, rollout, step)
  }
  if (rollout.strategy.order === 'start-first' || !isOccupied(turn.state, step.slot)) return startCandidate(turn, rollout, step, release)
  if (state === 'starting') step.state = 'stopping'
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step whoever has its slot makes way */
function clear (turn, rollout, step) {
  const cause = step.state === 'reverting' ? 'rollback' : rollout.kind
  for (const worker of Object.values(turn.state.workers)) if (worker.slot === step.slot) drain(turn, worker, { cause, actor: rollout.actor, rollout: rollout.id })
}

/**
 * With rollout.order stop-first: whether the next worker of a step can be started now.
 * @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step @returns {boolean}
 */
export function replaceGone (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  // One that had hung, and answers again, makes way too.
  if (step.state === 'stopping') clear(turn, rollout, step)
  const isWaiting = step.state === 'stopping' ? isEmpty(slot) : step.state === 'reverting' && rollout.strategy.order === 'stop-first' && isVacant(slot)
  return isWaiting && !isOccupied(turn.state, step.slot)
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step @param {string} release */
export function startCandidate (turn, rollout, step, release) {
  const slot = mustFind(turn.slot(step.slot))
  if (step.state === 'stopping') step.state = 'starting'
  slot.candidate = fork(turn, slot, release, { readyTimeoutMs: step.state === 'starting' ? rollout.strategy.limits.readyTimeoutMs : undefined })
  step.newWorker = slot.candidate
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {RolloutStep} step nothing more is to be waited for */
export function stepIsReady (turn, step) {
  step.readyAt ??= turn.isoTime()
  step.state = 'ready'
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step its new worker is ready, and perhaps has to stay so for a while first */
export function becomeReadyOrSoak (turn, rollout, step) {
  const { minReadyMs } = rollout.strategy
  const soaks = minReadyMs > 0 && phaseOf(rollout) !== 'canary'
  step.readyAt = turn.isoTime()
  if (soaks) soak(turn, step, minReadyMs)
  else step.state = 'ready'
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {RolloutStep} step @param {number} ms */
export function soak (turn, step, ms) {
  step.state = 'soaking'
  turn.order({ type: 'set-deadline', deadline: 'soak', id: mustFind(step.newWorker), ms })
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step the candidate takes the slot over, its predecessor drains */
export function promoteStep (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  const isReverting = step.state === 'reverting'
  const old = turn.worker(slot.serving)
  const target = isReverting ? step.from : mustFind(rollout.to)
  cancelRetry(turn, slot)
  if (slot.release !== target) resetBackoff(turn, slot)
  slot.serving = slot.candidate
  slot.candidate = null
  if (slot.serving !== null) slot.finished = null
  slot.release = target
  if (rollout.strategy.order === 'start-first') step.oldWorker = old?.id ?? null
  step.state = isReverting ? 'reverted' : old ? 'draining' : 'done'
  if (!isReverting) step.promotedAt = turn.isoTime()
  if (step.state !== 'draining') step.finishedAt = turn.isoTime()
  countReplaced(rollout)
  noteProgress(turn)
  drain(turn, old, { cause: isReverting ? 'rollback' : rollout.kind, actor: rollout.actor, rollout: rollout.id })
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {RolloutStep} step @returns {boolean} whether its new worker has its slot */
export function isReplaced ({ state }) {
  return state === 'draining' || state === 'done'
}

/** @param {Turn} turn @param {RolloutStep} step @param {'done' | 'reverted' | 'failed'} state */
export function markFinished (turn, step, state) {
  step.state = state
  step.finishedAt = turn.isoTime()
}

/** @param {Turn} turn @param {RolloutStep} step @param {'done' | 'failed'} state */
export function endStep (turn, step, state) {
  markFinished(turn, step, state)
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step its release is taken back, whatever has come of it */
export function undoStep (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  if (UNDER_WAY.includes(step.state)) {
    drainCandidate(turn, rollout, slot)
    step.revertingAt = turn.isoTime()
    markFinished(turn, step, 'reverted')
  } else if (isReplaced(step) && step.from !== rollout.to) {
    slot.release = step.from
    step.revertingAt = turn.isoTime()
    const serving = turn.worker(slot.serving)
    // A slot without a worker comes back on its old release by itself, as does one whose worker runs that already.
    step.state = serving && serving.release !== step.from ? 'reverting' : 'reverted'
  }
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step goes no further back: what serves in its slot is better than nothing */
export function leaveStep (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  drainCandidate(turn, rollout, slot)
  keepWhatServes(turn, slot)
  markFinished(turn, step, 'failed')
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {import('../state.js').Slot} slot */
export function keepWhatServes (turn, slot) {
  slot.release = turn.worker(slot.serving)?.release ?? slot.release
}

/** @param {Turn} turn @param {Rollout} rollout @param {import('../state.js').Slot} slot */
function drainCandidate (turn, rollout, slot) {
  drain(turn, turn.worker(slot.candidate), { cause: 'rollback', actor: rollout.actor, rollout: rollout.id, message: rollout.reason ?? undefined })
}
