import { draftOfRollout } from '../transition.ts'
import { renewStandbys } from '../standby.ts'
import { guardDeploy, liftGuard } from './guard.ts'
import { leaveHook } from './hook.ts'
import { isPausedOrHeld, makeMove, phaseOf, shownStage, type Shown } from './stages.ts'
import type { EventType } from '../../events/kinds.ts'
import type { Transition } from '../transition.ts'
import type { Comparison, Moment, Rollout, RolloutStep, Verdict, Worker } from '../state.ts'

export type RolloutView = ReturnType<typeof describeRollout>
type ShownRollout = Omit<Rollout, 'stage' | 'plan' | 'progressDueAt' | 'progressLeftMs'> & Shown

/** The events of its ends. */
const ENDS = { succeed: 'rollout.succeeded', fail: 'rollout.failed', 'roll-back': 'rollout.rolled-back' } as const
const MAX_VERDICTS = 50
const MAX_WARNINGS = 20
const MAX_COMPARISONS = 60
const MAX_MOMENTS = 100
const MAX_MESSAGE_CHARS = 500

/** `worker`: a candidate, or the one that took over its slot */
export function findStepOf (transition: Transition, worker: Worker) {
  const rollout = runningRollout(transition)
  return { rollout, step: mustFind(rollout.steps.find(({ slot }) => slot === worker.slot)),
    slot: mustFind(transition.slot(worker.slot)) }
}

export function runningRollout (transition: Transition): Rollout {
  return mustFind(transition.state.rollout)
}

export function countReplaced (rollout: Rollout) {
  rollout.progress = { total: rollout.steps.length,
    replaced: rollout.steps.filter(({ state }) => state === 'draining' || state === 'done').length }
}

export function addVerdict (rollout: Rollout, verdict: Verdict) {
  rollout.verdicts = [...rollout.verdicts, verdict].slice(-MAX_VERDICTS)
}

/** Of too many, the one that is closest to its neighbours goes, so that the others cover the time evenly. */
export function addComparison (rollout: Rollout, comparison: Comparison) {
  rollout.comparison = comparison
  const all = [...rollout.comparisons ?? [], comparison]
  rollout.comparisons = all.length > MAX_COMPARISONS ? all.toSpliced(indexOfClosest(all), 1) : all
}

/** @returns the index of one between the first and the last */
function indexOfClosest (comparisons: Comparison[]): number {
  const gapAround = (index: number) => Date.parse(comparisons[index + 1].at) - Date.parse(comparisons[index - 1].at)
  let least = 1
  for (let index = 2; index < comparisons.length - 1; index++) if (gapAround(index) < gapAround(least)) least = index
  return least
}

/** `warning`: something that went wrong without making it fail */
export function addWarning (rollout: Rollout, warning: string) {
  if (rollout.warnings.length < MAX_WARNINGS) rollout.warnings.push(warning)
}

/** `actor`: who did this, if not the actor of the rollout; `passed`: of a verdict */
export function tellRollout (transition: Transition, type: EventType,
  { step, actor, message, passed = null }: { step?: RolloutStep, actor?: string, message?: string | null,
    passed?: boolean | null } = {})
{
  const rollout = runningRollout(transition)
  if (!step) {
    const by = actor ?? (type === 'rollout.started' ? rollout.actor : null)
    addMoment(rollout, { at: transition.isoTime(), type, actor: by, message: message ?? messageOf(rollout), passed })
  }
  transition.emit(type, { rollout: rollout.id, release: rollout.to, cause: rollout.kind, actor: actor ?? rollout.actor,
    slot: step?.slot ?? null, worker: step?.newWorker ?? null,
    message: message ?? (type === 'rollout.step' && step ? `slot ${step.slot}: ${step.state}` : messageOf(rollout)),
    detail: describeRollout(rollout) })
}

function addMoment (rollout: Rollout, { message, ...moment }: Moment) {
  rollout.timeline = [...rollout.timeline ?? [], { ...moment, message: message?.slice(0, MAX_MESSAGE_CHARS) ?? null }]
    .slice(-MAX_MOMENTS)
}

function messageOf (rollout: Rollout) {
  const { reason, note, warnings } = rollout
  return reason ??
    (shownStage(rollout).done && warnings.length > 0 ? [note, ...warnings].filter(Boolean).join('; ') : note)
}

/** @returns the rollout as API and dashboard show it */
export function describeRollout (rollout: Rollout): ShownRollout {
  const { stage, plan, progressDueAt, progressLeftMs, ...rest } = rollout
  const { id, kind, ...more } = draftOfRollout(rest)
  return { id, kind, ...shownStage(rollout), ...more }
}

export function finishRollout (transition: Transition, how: keyof typeof ENDS) {
  const rollout = runningRollout(transition)
  makeMove(rollout, how)
  Object.assign(rollout, { finishedAt: transition.isoTime(), plan: null, waitingFor: null })
  clearClocks(transition)
  leaveHook(transition, rollout)
  if (how === 'succeed') {
    transition.state.release = transition.state.releases[mustFind(rollout.to)]
    guardDeploy(transition, rollout)
    renewStandbys(transition, rollout)
  } else if (rollout.actor === 'guard') {
    // The guard tries only once.
    liftGuard(transition)
  }
  tellRollout(transition, ENDS[how])
  transition.state.rollout = null
}

export function clearClocks (transition: Transition) {
  for (const deadline of ['progress', 'canary', 'judge'] as const)
    transition.command({ type: 'clear-deadline', deadline, id: 0 })
  runningRollout(transition).progressDueAt = null
}

/** The rollout has come further, so its progress deadline starts over. */
export function noteProgress (transition: Transition) {
  const rollout = runningRollout(transition)
  if (isPausedOrHeld(rollout) || phaseOf(rollout) === 'preparing') return
  const { progressDeadlineMs, minReadyMs } = rollout.strategy
  // A soak is a wait on purpose.
  countDown(transition, progressDeadlineMs + minReadyMs)
}

/** `ms`: until the next progress */
export function countDown (transition: Transition, ms: number) {
  runningRollout(transition).progressDueAt = transition.at + ms
  transition.command({ type: 'set-deadline', deadline: 'progress', id: 0, ms })
}

export function mustFind<T> (value: T | null | undefined): T {
  if (value == null) throw new Error('a rollout without its parts: the reducer is broken')
  return value
}
