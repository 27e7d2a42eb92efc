import { bootRoom } from '../boot-room.js'
import { giveUp, giveUpIfBlocked } from './going-back.js'
import { addComparison, addVerdict, clearClocks, mustFind, noteProgress, running, tellRollout, warn } from './record.js'
import { move, phaseOf, shownStage } from './stages.js'
import { sidesOf } from './sides.js'
import { beginStep, soak } from './step.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */

const JUDGE_EVERY_MS = 5000

/** @param {Turn} turn from now on new workers and old ones are compared */
export function beginJudging (turn) {
  if (running(turn).kind !== 'deploy') return
  turn.order({ type: 'begin-judging' })
  turn.order({ type: 'set-deadline', deadline: 'judge', id: 0, ms: JUDGE_EVERY_MS })
}

/** @param {Turn} turn @param {Rollout} rollout the canaries serve beside all old workers, and none of those goes yet */
export function tryOut (turn, rollout) {
  const canaries = rollout.steps.filter(({ isCanary }) => isCanary)
  const pending = canaries.filter(({ state }) => state === 'pending')
  if (pending.length > 0 && giveUpIfBlocked(turn, rollout)) return
  for (const step of pending.slice(0, Math.max(0, bootRoom(turn.state)))) beginStep(turn, rollout, step, mustFind(rollout.to), 'starting')
  if (canaries.some(({ state }) => state !== 'ready')) return
  if (rollout.canaryEndsAt === null) return beginTrial(turn, rollout, canaries.length)
  if (rollout.progressDueAt === null) return
  // One of them was replaced meanwhile.
  rollout.progressDueAt = null
  turn.order({ type: 'clear-deadline', deadline: 'progress', id: 0 })
}

/** @param {Turn} turn @param {Rollout} rollout @param {number} count of canaries */
function beginTrial (turn, rollout, count) {
  const { durationMs } = mustFind(rollout.strategy.canary)
  // It waits on purpose from here on.
  clearClocks(turn)
  rollout.canaryEndsAt = turn.isoTime(durationMs)
  turn.order({ type: 'set-deadline', deadline: 'canary', id: 0, ms: durationMs })
  beginJudging(turn)
  tellRollout(turn, 'rollout.step', { message: `canary of ${count} of ${rollout.steps.length} slots for ${durationMs} ms` })
}

/**
 * A trial is one of all canaries for all of its time.
 * @param {Turn} turn @param {{ isForced: boolean }} how
 */
export function beginTrialAnew (turn, { isForced }) {
  const rollout = running(turn)
  if (!isForced && rollout.steps.every(({ isCanary, state }) => !isCanary || state === 'ready')) return
  rollout.canaryEndsAt = null
  turn.order({ type: 'clear-deadline', deadline: 'canary', id: 0 })
}

/** @param {Turn} turn @param {'canary' | 'judge'} deadline */
export function askJudge (turn, deadline) {
  const { rollout } = turn.state
  if (!rollout || !isJudged(rollout)) return
  const isFinal = deadline === 'canary'
  if (!isFinal) turn.order({ type: 'set-deadline', deadline: 'judge', id: 0, ms: JUDGE_EVERY_MS })
  // A person has the last word: the trial ends when they let it go on.
  else if (shownStage(rollout).state === 'paused') return
  turn.order({ type: 'judge', rollout: rollout.id, isFinal, ...sidesOf(turn, rollout), limits: rollout.strategy.limits })
}

/** @param {Turn} turn @param {{ rollout: number, verdict: import('../state.js').Verdict & { warning?: string } }} input what the judge has found; `warning`: it passes, with a flaw */
export function judged (turn, { rollout: id, verdict: { warning, ...verdict } }) {
  const rollout = turn.state.rollout
  // It has gone on meanwhile without waiting for this.
  if (rollout?.id !== id || phaseOf(rollout) === 'aborting') return
  addComparison(rollout, { at: verdict.at, fresh: verdict.fresh, old: verdict.old })
  if (!isJudged(rollout)) return
  if (warning && !rollout.warnings.includes(warning)) warn(rollout, warning)
  if (verdict.isFinal || verdict.passed === false) {
    addVerdict(rollout, verdict)
    tellRollout(turn, 'rollout.judged', { message: verdict.message })
  }
  if (verdict.passed === false) giveUp(turn, verdict.message)
  else if (verdict.isFinal && phaseOf(rollout) === 'canary') endTrial(turn)
}

/** @param {Turn} turn the canaries have passed, or need no judgement any more */
export function endTrial (turn) {
  const rollout = running(turn)
  turn.order({ type: 'clear-deadline', deadline: 'canary', id: 0 })
  rollout.canaryEndsAt = null
  for (const step of rollout.steps) if (step.state === 'ready') soakOn(turn, rollout, step)
  move(rollout, 'promote')
  noteProgress(turn)
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step its canary has been ready for a while, perhaps not for long enough */
function soakOn (turn, rollout, step) {
  const worker = turn.state.workers[step.newWorker ?? 0]
  const ms = rollout.strategy.minReadyMs - (Date.parse(turn.isoTime()) - Date.parse(String(worker?.readyAt)))
  if (ms > 0) soak(turn, step, ms)
}

/** @param {Rollout} rollout */
function isJudged (rollout) {
  return ['canary', 'rolling'].includes(phaseOf(rollout)) && !shownStage(rollout).isHeld
}
