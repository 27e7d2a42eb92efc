import { bootRoom } from '../boot-room.ts'
import { giveUp, giveUpIfBlocked, goBack } from './rolling-back.ts'
import { addComparison, addVerdict, clearClocks, mustFind, noteProgress, runningRollout, tellRollout,
  addWarning } from './record.ts'
import { isHeld, isPausedOrHeld, makeMove, phaseOf } from './stages.ts'
import { sidesOf } from './sides.ts'
import { beginStep, beginSoak } from './step.ts'
import { durationText } from '../duration.ts'
import type { Transition } from '../transition.ts'
import type { Figures, Rollout, RolloutStep, Verdict } from '../state.ts'

const JUDGE_EVERY_MS = 5000
/** So many answers of the release that the guard goes back to say whether it does better. */
export const ENOUGH = 5
const HALF = 0.5

/** From now on the judge compares canary and baseline. */
export function beginJudging (transition: Transition) {
  if (!isJudged(runningRollout(transition))) return
  transition.command({ type: 'begin-judging' })
  transition.command({ type: 'set-deadline', deadline: 'judge', id: 0, ms: JUDGE_EVERY_MS })
}

/** `rollout`: starts its canaries, which serve beside all old workers */
export function tryOut (transition: Transition, rollout: Rollout) {
  const canaries = rollout.steps.filter(({ isCanary }) => isCanary)
  const pending = canaries.filter(({ state }) => state === 'pending')
  if (pending.length > 0 && giveUpIfBlocked(transition, rollout)) return
  for (const step of pending.slice(0, Math.max(0, bootRoom(transition.state))))
    beginStep(transition, rollout, step, mustFind(rollout.to), 'starting')
  if (canaries.some(({ state }) => state !== 'ready')) return
  if (rollout.canaryEndsAt === null) return beginTrial(transition, rollout, canaries.length)
  if (rollout.progressDueAt === null) return
  // A canary was replaced meanwhile.
  rollout.progressDueAt = null
  transition.command({ type: 'clear-deadline', deadline: 'progress', id: 0 })
}

/** `count`: of canaries */
function beginTrial (transition: Transition, rollout: Rollout, count: number) {
  const { durationMs } = mustFind(rollout.strategy.canary)
  // From here on the rollout waits on purpose.
  clearClocks(transition)
  rollout.canaryEndsAt = transition.isoTime(durationMs)
  transition.command({ type: 'set-deadline', deadline: 'canary', id: 0, ms: durationMs })
  beginJudging(transition)
  tellRollout(transition, 'rollout.step', {
    message: `canary of ${count} of ${rollout.steps.length} slots for ${durationText(durationMs)}`
  })
}

/** A trial starts over unless all canaries serve for all of its time. */
export function beginTrialAnew (transition: Transition, { isForced }: { isForced: boolean }) {
  const rollout = runningRollout(transition)
  if (!isForced && rollout.steps.every(({ isCanary, state }) => !isCanary || state === 'ready')) return
  rollout.canaryEndsAt = null
  transition.command({ type: 'clear-deadline', deadline: 'canary', id: 0 })
}

/** Tells whether a deploy is over that nobody has judged; of what does not listen nothing could be said. */
export function awaitsVerdict ({ state }: Transition, { kind, verdicts }: Rollout): boolean {
  return kind === 'deploy' && verdicts.length === 0 && state.hasListened
}

export function askJudge (transition: Transition, deadline: 'canary' | 'judge' | 'end') {
  const { rollout } = transition.state
  if (!rollout || !isJudged(rollout)) return
  const isFinal = deadline !== 'judge'
  if (!isFinal) transition.command({ type: 'set-deadline', deadline: 'judge', id: 0, ms: JUDGE_EVERY_MS })
  // A paused trial ends when an operator resumes it.
  else if (isPausedOrHeld(rollout)) return
  transition.command({ type: 'judge', rollout: rollout.id, isFinal, ...sidesOf(transition, rollout),
    limits: rollout.strategy.limits })
}

/** `warning`: it passes, with a flaw */
export function takeVerdict (transition: Transition,
  { rollout: id, verdict: { warning, ...verdict } }: { rollout: number, verdict: Verdict & { warning?: string } })
{
  const rollout = transition.state.rollout
  // The rollout has gone on meanwhile.
  if (rollout?.id !== id || phaseOf(rollout) === 'rolling-back') return
  addComparison(rollout, { at: verdict.at, canary: verdict.canary, baseline: verdict.baseline })
  if (!isJudged(rollout)) return
  if (rollout.kind === 'rollback') return judgeReturn(transition, rollout, verdict)
  if (warning && !rollout.warnings.includes(warning)) addWarning(rollout, warning)
  if (verdict.isFinal || verdict.passed === false) {
    addVerdict(rollout, verdict)
    tellRollout(transition, 'rollout.judged', { message: verdict.message, passed: verdict.passed })
  }
  if (verdict.passed === false) giveUp(transition, verdict.message)
  else if (verdict.isFinal && phaseOf(rollout) === 'canary') endTrial(transition)
}

/** A release that only fails is left for the one before if that does better; else what both need is to blame. */
function judgeReturn (transition: Transition, rollout: Rollout, verdict: Verdict) {
  const { canary, baseline, isFinal } = verdict
  if (!isFinal && canary.requests < ENOUGH) return
  const passed = isBetter(canary, baseline)
  const [now, then] = [canary, baseline].map(({ requests, errorRate }) =>
    `${Math.round(requests * (errorRate ?? 0))} of ${requests} requests`
  )
  const message = `${rollout.to} answers ${now} by 5xx, ${rollout.from} ${then} in the same time`
  addVerdict(rollout, { ...verdict, passed, isFinal: true, message })
  if (passed) endTrial(transition)
  tellRollout(transition, 'rollout.judged', { message, passed })
  if (!passed) goBack(transition, { reason: message })
}

export function isBetter (canary: Pick<Figures, 'errorRate'>, baseline: Pick<Figures, 'errorRate'>): boolean {
  return (canary.errorRate ?? 0) < HALF && (baseline.errorRate ?? 1) >= HALF
}

/** The canaries have passed, or an operator has promoted them. */
export function endTrial (transition: Transition) {
  const rollout = runningRollout(transition)
  transition.command({ type: 'clear-deadline', deadline: 'canary', id: 0 })
  rollout.canaryEndsAt = null
  for (const step of rollout.steps) if (step.state === 'ready') soakOn(transition, rollout, step)
  makeMove(rollout, 'promote')
  noteProgress(transition)
}

/** `step`: whose canary may not have been ready for long enough yet */
function soakOn (transition: Transition, rollout: Rollout, step: RolloutStep) {
  const worker = transition.state.workers[step.newWorker ?? 0]
  const ms = rollout.strategy.minReadyMs - (Date.parse(transition.isoTime()) - Date.parse(String(worker?.readyAt)))
  if (ms > 0) beginSoak(transition, step, ms)
}

function isJudged (rollout: Rollout) {
  const phases = { deploy: ['canary', 'rolling'], rollback: ['canary'], restart: [] as string[] }
  return phases[rollout.kind].includes(phaseOf(rollout)) && !isHeld(rollout)
}
