import { guardDeploy, liftGuard } from './guard.js'
import { move, phaseOf, shownStage } from './stages.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */
/** @typedef {Omit<Rollout, 'stage' | 'progressDueAt' | 'progressLeftMs'> & import('./stages.js').Shown} ShownRollout */

const MAX_VERDICTS = 50
const MAX_WARNINGS = 20

/** @param {Turn} turn @param {import('../state.js').Worker} worker a candidate, or one that serves in its place */
export function find (turn, worker) {
  const rollout = running(turn)
  return { rollout, step: mustFind(rollout.steps.find(({ slot }) => slot === worker.slot)), slot: mustFind(turn.slot(worker.slot)) }
}

/** @param {Turn} turn @returns {Rollout} */
export function running (turn) {
  return mustFind(turn.state.rollout)
}

/** @param {Rollout} rollout */
export function countReplaced (rollout) {
  rollout.progress = { total: rollout.steps.length, replaced: rollout.steps.filter(({ state }) => state === 'draining' || state === 'done').length }
}

/** @param {Rollout} rollout @param {import('../state.js').Verdict} verdict */
export function addVerdict (rollout, verdict) {
  rollout.verdicts = [...rollout.verdicts, verdict].slice(-MAX_VERDICTS)
}

/** @param {Rollout} rollout @param {string} warning what went wrong without making it fail */
export function warn (rollout, warning) {
  if (rollout.warnings.length < MAX_WARNINGS) rollout.warnings.push(warning)
}

/**
 * @param {Turn} turn @param {string} type
 * @param {{ step?: RolloutStep, actor?: string, message?: string | null }} [about] `actor`: who did this, where it is not whose rollout it is
 */
export function tellRollout (turn, type, { step, actor, message } = {}) {
  const rollout = running(turn)
  turn.tell(type, {
    rollout: rollout.id,
    release: rollout.to,
    cause: rollout.kind,
    actor: actor ?? rollout.actor,
    slot: step?.slot ?? null,
    worker: step?.newWorker ?? null,
    message: message ?? (type === 'rollout.step' && step ? `slot ${step.slot}: ${step.state}` : messageOf(rollout)),
    detail: describe(rollout)
  })
}

/** @param {Rollout} rollout */
function messageOf (rollout) {
  const { reason, note, warnings } = rollout
  return reason ?? (shownStage(rollout).done && warnings.length > 0 ? [note, ...warnings].filter(Boolean).join('; ') : note)
}

/** @param {Rollout} rollout @returns {ShownRollout} as others see it */
export function describe (rollout) {
  const { stage, progressDueAt, progressLeftMs, ...rest } = rollout
  const { id, kind, ...more } = structuredClone(rest)
  return { id, kind, ...shownStage(rollout), ...more }
}

/** @param {Turn} turn @param {'succeed' | 'fail' | 'roll-back'} how */
export function finish (turn, how) {
  const rollout = running(turn)
  move(rollout, how)
  rollout.finishedAt = turn.isoTime()
  clearClocks(turn)
  if (how === 'succeed') {
    turn.state.release = turn.state.releases[mustFind(rollout.to)]
    guardDeploy(turn, rollout)
  } else if (rollout.actor === 'guard') {
    // It tries once.
    liftGuard(turn)
  }
  tellRollout(turn, `rollout.${shownStage(rollout).state}`)
  turn.state.rollout = null
}

/** @param {Turn} turn */
export function clearClocks (turn) {
  for (const deadline of /** @type {const} */ (['progress', 'canary', 'judge'])) turn.order({ type: 'clear-deadline', deadline, id: 0 })
  running(turn).progressDueAt = null
}

/** @param {Turn} turn it has come further, or begins to: from now on its time counts anew */
export function noteProgress (turn) {
  const rollout = running(turn)
  if (shownStage(rollout).state === 'paused' || phaseOf(rollout) === 'preparing') return
  const { progressDeadlineMs, minReadyMs } = rollout.strategy
  // A soak is waited for on purpose.
  countDown(turn, progressDeadlineMs + minReadyMs)
}

/** @param {Turn} turn @param {number} ms how long it may take to come further */
export function countDown (turn, ms) {
  running(turn).progressDueAt = turn.at + ms
  turn.order({ type: 'set-deadline', deadline: 'progress', id: 0, ms })
}

/** @template T @param {T | null | undefined} value @returns {T} */
export function mustFind (value) {
  if (value == null) throw new Error('a rollout without its parts: the reducer is broken')
  return value
}
