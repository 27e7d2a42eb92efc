import { countReplaced, mustFind, noteProgress, tellRollout } from './record.ts'
import { phaseOf } from './stages.ts'
import { cancelRetry, isEmpty, isOccupied, isVacant } from '../slot.ts'
import { drainWorker, resetBackoff, forkWorker } from '../worker.ts'
import type { Transition } from '../transition.ts'
import type { Intent, Rollout, RolloutStep, Slot } from '../state.ts'
import type { Strategy } from '../../api/shapes.ts'

/** States in which the new worker exists or starts, and has not taken over the slot. */
export const UNDER_WAY = Object.freeze(['stopping', 'starting', 'soaking', 'ready'])

export function toSteps ({ state }: Transition, numbers: number[], { canary }: Strategy): RolloutStep[] {
  return state.slots.filter(({ number }) => numbers.includes(number)).map(({ number, release }, index) => ({
    slot: number,
    state: 'pending',
    oldWorker: null,
    newWorker: null,
    from: release,
    isCanary: index < (canary?.workers ?? 0),
    startedAt: null,
    readyAt: null,
    promotedAt: null,
    drainedAt: null,
    revertingAt: null,
    finishedAt: null
  }))
}

export function beginStep (transition: Transition, rollout: Rollout, step: RolloutStep, release: string,
  state: 'starting' | 'reverting')
{
  const slot = mustFind(transition.slot(step.slot))
  step.state = state
  step.startedAt ??= transition.isoTime()
  step.finishedAt = null
  if (state === 'starting') Object.assign(step, { readyAt: null, drainedAt: null })
  step.oldWorker = slot.serving
  if (rollout.strategy.order === 'stop-first') {
    cancelRetry(transition, slot)
    clearSlot(transition, rollout, step)
  }
  if (rollout.strategy.order === 'start-first' || !isOccupied(transition.state, step.slot))
    return startCandidate(transition, rollout, step, release)
  if (state === 'starting') step.state = 'stopping'
  noteProgress(transition)
  tellRollout(transition, 'rollout.step', { step })
}

/** `step`: all workers of its slot drain */
function clearSlot (transition: Transition, rollout: Rollout, step: RolloutStep) {
  const intent = replacingIntent(rollout, step)
  for (const worker of Object.values(transition.state.workers))
    if (worker.slot === step.slot) drainWorker(transition, worker, intent)
}

/** @returns of its old worker: who reads how that ended asks what came instead */
function replacingIntent ({ kind, from, to, actor, id }: Rollout, step: RolloutStep): Intent {
  const isReverting = step.state === 'reverting'
  const next = isReverting ? step.from : mustFind(to)
  return { cause: isReverting ? 'rollback' : kind, actor, rollout: id,
    message: `${from === to ? 'another worker' : next} replaces it` }
}

/** With rollout.order stop-first: whether the next worker of a step can be started now. */
export function replaceGone (transition: Transition, rollout: Rollout, step: RolloutStep): boolean {
  const slot = mustFind(transition.slot(step.slot))
  // A worker that hung and answers again makes way too.
  if (step.state === 'stopping') clearSlot(transition, rollout, step)
  const isWaiting = step.state === 'stopping'
    ? isEmpty(slot)
    : step.state === 'reverting' && rollout.strategy.order === 'stop-first' && isVacant(slot)
  return isWaiting && !isOccupied(transition.state, step.slot)
}

export function startCandidate (transition: Transition, rollout: Rollout, step: RolloutStep, release: string) {
  const slot = mustFind(transition.slot(step.slot))
  if (step.state === 'stopping') step.state = 'starting'
  slot.candidate = forkWorker(transition, slot, release, {
    readyTimeoutMs: step.state === 'starting' ? rollout.strategy.limits.readyTimeoutMs : undefined
  })
  step.newWorker = slot.candidate
  noteProgress(transition)
  tellRollout(transition, 'rollout.step', { step })
}

export function stepIsReady (transition: Transition, step: RolloutStep) {
  step.readyAt ??= transition.isoTime()
  step.state = 'ready'
  noteProgress(transition)
  tellRollout(transition, 'rollout.step', { step })
}

/** `step`: its new worker is ready, and may have to soak first */
export function becomeReadyOrSoak (transition: Transition, rollout: Rollout, step: RolloutStep) {
  const { minReadyMs } = rollout.strategy
  const soaks = minReadyMs > 0 && phaseOf(rollout) !== 'canary'
  step.readyAt = transition.isoTime()
  if (soaks) beginSoak(transition, step, minReadyMs)
  else step.state = 'ready'
  noteProgress(transition)
  tellRollout(transition, 'rollout.step', { step })
}

export function beginSoak (transition: Transition, step: RolloutStep, ms: number) {
  step.state = 'soaking'
  transition.command({ type: 'set-deadline', deadline: 'soak', id: mustFind(step.newWorker), ms })
}

/** `step`: the candidate takes the slot over, its predecessor drains */
export function promoteStep (transition: Transition, rollout: Rollout, step: RolloutStep) {
  const slot = mustFind(transition.slot(step.slot))
  const isReverting = step.state === 'reverting'
  const old = transition.worker(slot.serving)
  const target = isReverting ? step.from : mustFind(rollout.to)
  const intent = replacingIntent(rollout, step)
  cancelRetry(transition, slot)
  if (slot.release !== target) resetBackoff(transition, slot)
  slot.serving = slot.candidate
  slot.candidate = null
  if (slot.serving !== null) slot.finished = null
  slot.release = target
  if (rollout.strategy.order === 'start-first') step.oldWorker = old?.id ?? null
  step.state = isReverting ? 'reverted' : old ? 'draining' : 'done'
  if (!isReverting) step.promotedAt = transition.isoTime()
  if (step.state !== 'draining') step.finishedAt = transition.isoTime()
  countReplaced(rollout)
  noteProgress(transition)
  drainWorker(transition, old, intent)
  tellRollout(transition, 'rollout.step', { step })
}

/** Tells whether its new worker has its slot */
export function isReplaced ({ state }: RolloutStep): boolean {
  return state === 'draining' || state === 'done'
}

export function markFinished (transition: Transition, step: RolloutStep, state: 'done' | 'reverted' | 'failed') {
  step.state = state
  step.finishedAt = transition.isoTime()
}

export function endStep (transition: Transition, step: RolloutStep, state: 'done' | 'failed') {
  markFinished(transition, step, state)
  noteProgress(transition)
  tellRollout(transition, 'rollout.step', { step })
}

/** `step`: goes back to its old release, in whatever state it is */
export function undoStep (transition: Transition, rollout: Rollout, step: RolloutStep) {
  const slot = mustFind(transition.slot(step.slot))
  if (UNDER_WAY.includes(step.state)) {
    drainCandidate(transition, rollout, slot)
    step.revertingAt = transition.isoTime()
    markFinished(transition, step, 'reverted')
  } else if (isReplaced(step) && step.from !== rollout.to) {
    slot.release = step.from
    step.revertingAt = transition.isoTime()
    const serving = transition.worker(slot.serving)
    // A slot without a worker gets its old release by itself; one whose worker runs that already needs nothing.
    step.state = serving && serving.release !== step.from ? 'reverting' : 'reverted'
  }
}

/** `step`: is not rolled back: the worker that serves in its slot is better than none */
export function leaveStep (transition: Transition, rollout: Rollout, step: RolloutStep) {
  const slot = mustFind(transition.slot(step.slot))
  drainCandidate(transition, rollout, slot)
  keepWhatServes(transition, slot)
  markFinished(transition, step, 'failed')
  tellRollout(transition, 'rollout.step', { step })
}

export function keepWhatServes (transition: Transition, slot: Slot) {
  slot.release = transition.worker(slot.serving)?.release ?? slot.release
}

function drainCandidate (transition: Transition, rollout: Rollout, slot: Slot) {
  const intent = { cause: 'rollback', actor: rollout.actor, rollout: rollout.id, message: rollout.reason ?? undefined }
  drainWorker(transition, transition.worker(slot.candidate), intent)
}
