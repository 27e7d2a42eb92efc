import { draftOfRollout } from '../draft.js'
import { renewStandbys } from '../standby.js'
import { guardDeploy, liftGuard } from './guard.js'
import { leaveHook } from './hook.js'
import { isPausedOrHeld, makeMove, phaseOf, shownStage } from './stages.js'

/** @typedef {ReturnType<typeof describeRollout>} RolloutView */
/** @typedef {import('../transition.js').Transition} Transition */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */
/** @typedef {Omit<Rollout, 'stage' | 'plan' | 'progressDueAt' | 'progressLeftMs'> & import('./stages.js').Shown} ShownRollout */

const MAX_VERDICTS = 50
const MAX_WARNINGS = 20
const MAX_COMPARISONS = 60
const MAX_MOMENTS = 100
const MAX_MESSAGE_CHARS = 500

/** @param {Transition} transition @param {import('../state.js').Worker} worker a candidate, or the one that took over its slot */
export function findStepOf (transition, worker) {
  const rollout = runningRollout(transition)
  return { rollout, step: mustFind(rollout.steps.find(({ slot }) => slot === worker.slot)), slot: mustFind(transition.slot(worker.slot)) }
}

/** @param {Transition} transition @returns {Rollout} */
export function runningRollout (transition) {
  return mustFind(transition.state.rollout)
}

/** @param {Rollout} rollout */
export function countReplaced (rollout) {
  rollout.progress = { total: rollout.steps.length, replaced: rollout.steps.filter(({ state }) => state === 'draining' || state === 'done').length }
}

/** @param {Rollout} rollout @param {import('../state.js').Verdict} verdict */
export function addVerdict (rollout, verdict) {
  rollout.verdicts = [...rollout.verdicts, verdict].slice(-MAX_VERDICTS)
}

/**
 * Of too many, the one that is closest to its neighbours goes, so that the others cover the time evenly.
 * @param {Rollout} rollout @param {import('../state.js').Comparison} comparison
 */
export function addComparison (rollout, comparison) {
  rollout.comparison = comparison
  const all = [...rollout.comparisons ?? [], comparison]
  rollout.comparisons = all.length > MAX_COMPARISONS ? all.toSpliced(indexOfClosest(all), 1) : all
}

/** @param {import('../state.js').Comparison[]} comparisons @returns {number} the index of one between the first and the last */
function indexOfClosest (comparisons) {
  const gapAround = (/** @type {number} */ index) => Date.parse(comparisons[index + 1].at) - Date.parse(comparisons[index - 1].at)
  let least = 1
  for (let index = 2; index < comparisons.length - 1; index++) if (gapAround(index) < gapAround(least)) least = index
  return least
}

/** @param {Rollout} rollout @param {string} warning something that went wrong without making it fail */
export function addWarning (rollout, warning) {
  if (rollout.warnings.length < MAX_WARNINGS) rollout.warnings.push(warning)
}

/**
 * @param {Transition} transition @param {string} type
 * @param {{ step?: RolloutStep, actor?: string, message?: string | null, passed?: boolean | null }} [about] `actor`: who did this, if not the actor of the rollout; `passed`: of a verdict
 */
export function tellRollout (transition, type, { step, actor, message, passed = null } = {}) {
  const rollout = runningRollout(transition)
  if (!step) {
    const by = actor ?? (type === 'rollout.started' ? rollout.actor : null)
    addMoment(rollout, { at: transition.isoTime(), type, actor: by, message: message ?? messageOf(rollout), passed })
  }
  transition.emit(type, {
    rollout: rollout.id,
    release: rollout.to,
    cause: rollout.kind,
    actor: actor ?? rollout.actor,
    slot: step?.slot ?? null,
    worker: step?.newWorker ?? null,
    message: message ?? (type === 'rollout.step' && step ? `slot ${step.slot}: ${step.state}` : messageOf(rollout)),
    detail: describeRollout(rollout)
  })
}

/** @param {Rollout} rollout @param {import('../state.js').Moment} moment */
function addMoment (rollout, { message, ...moment }) {
  rollout.timeline = [...rollout.timeline ?? [], { ...moment, message: message?.slice(0, MAX_MESSAGE_CHARS) ?? null }].slice(-MAX_MOMENTS)
}

/** @param {Rollout} rollout */
function messageOf (rollout) {
  const { reason, note, warnings } = rollout
  return reason ?? (shownStage(rollout).done && warnings.length > 0 ? [note, ...warnings].filter(Boolean).join('; ') : note)
}

/** @param {Rollout} rollout @returns {ShownRollout} the rollout as API and dashboard show it */
export function describeRollout (rollout) {
  const { stage, plan, progressDueAt, progressLeftMs, ...rest } = rollout
  const { id, kind, ...more } = draftOfRollout(rest)
  return { id, kind, ...shownStage(rollout), ...more }
}

/** @param {Transition} transition @param {'succeed' | 'fail' | 'roll-back'} how */
export function finishRollout (transition, how) {
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
  tellRollout(transition, `rollout.${shownStage(rollout).state}`)
  transition.state.rollout = null
}

/** @param {Transition} transition */
export function clearClocks (transition) {
  for (const deadline of /** @type {const} */ (['progress', 'canary', 'judge'])) transition.command({ type: 'clear-deadline', deadline, id: 0 })
  runningRollout(transition).progressDueAt = null
}

/** The rollout has come further, so its progress deadline starts over. @param {Transition} transition */
export function noteProgress (transition) {
  const rollout = runningRollout(transition)
  if (isPausedOrHeld(rollout) || phaseOf(rollout) === 'preparing') return
  const { progressDeadlineMs, minReadyMs } = rollout.strategy
  // A soak is a wait on purpose.
  countDown(transition, progressDeadlineMs + minReadyMs)
}

/** @param {Transition} transition @param {number} ms until the next progress */
export function countDown (transition, ms) {
  runningRollout(transition).progressDueAt = transition.at + ms
  transition.command({ type: 'set-deadline', deadline: 'progress', id: 0, ms })
}

/** @template T @param {T | null | undefined} value @returns {T} */
export function mustFind (value) {
  if (value == null) throw new Error('a rollout without its parts: the reducer is broken')
  return value
}
