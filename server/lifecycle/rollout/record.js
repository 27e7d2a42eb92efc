import { guardDeploy } from './guard.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

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

/** @param {Rollout} rollout one that runs @returns {'preparing' | 'canary' | 'rolling' | 'aborting'} what it does when it is not paused */
export function stageOf (rollout) {
  return rollout.pausedIn ?? /** @type {'preparing' | 'canary' | 'rolling' | 'aborting'} */ (rollout.state)
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
function messageOf ({ reason, note, done, warnings }) {
  return reason ?? (done && warnings.length > 0 ? [note, ...warnings].filter(Boolean).join('; ') : note)
}

/** @param {Rollout} rollout @returns {Omit<Rollout, 'progressDueAt' | 'progressLeftMs' | 'hasReplaced' | 'isAborted'>} as others see it */
export function describe ({ progressDueAt, progressLeftMs, hasReplaced, isAborted, ...rest }) {
  return structuredClone(rest)
}

/** @param {Turn} turn @param {'succeeded' | 'failed' | 'rolled-back'} outcome */
export function finish (turn, outcome) {
  const rollout = running(turn)
  rollout.state = outcome
  rollout.pausedIn = null
  rollout.isHeld = false
  rollout.done = true
  rollout.finishedAt = turn.isoTime()
  clearClocks(turn)
  if (outcome === 'succeeded') {
    turn.state.release = turn.state.releases[mustFind(rollout.to)]
    guardDeploy(turn, rollout)
  }
  tellRollout(turn, `rollout.${outcome}`)
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
  if (rollout.state !== 'rolling' && rollout.state !== 'canary' && rollout.state !== 'aborting') return
  const { progressDeadlineMs, minReadyMs } = rollout.strategy
  // A soak is waited for on purpose.
  const ms = progressDeadlineMs + minReadyMs
  rollout.progressDueAt = turn.at + ms
  turn.order({ type: 'set-deadline', deadline: 'progress', id: 0, ms })
}

/** @template T @param {T | null | undefined} value @returns {T} */
export function mustFind (value) {
  if (value == null) throw new Error('a rollout without its parts: the reducer is broken')
  return value
}
