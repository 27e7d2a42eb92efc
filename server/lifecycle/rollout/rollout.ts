import { BLAMED_CAUSES, isOneOf } from '../../causes.ts'
import { bootRoom } from '../boot-room.ts'
import { isBlocked, whyNoReturn } from '../drift.ts'
import { giveUp, giveUpIfBlocked, rollBackSteps } from './rolling-back.ts'
import { beginHook, closeHook, dueHook, isHookRunning } from './hook.ts'
import { countReplaced, findStepOf, finishRollout, mustFind, noteProgress, tellRollout, addWarning } from './record.ts'
import { isHeld, isPausedOrHeld, makeMove, phaseOf, shownStage, type Stage } from './stages.ts'
import { becomeReadyOrSoak, beginStep, endStep, isReplaced, keepWhatServes, leaveStep, markFinished, promoteStep,
  replaceGone, startCandidate, stepIsReady, toSteps, UNDER_WAY } from './step.ts'
import { strategyOf } from './strategy.ts'
import { awaitsTurn, turnText } from './turn.ts'
import { askJudge, awaitsVerdict, beginJudging, tryOut } from './trial.ts'
import { durationText } from '../duration.ts'
import type { Transition } from '../transition.ts'
import type { PlainInput, Release, Rollout, Worker } from '../state.ts'

/** Causes of an old worker's end that may have cost requests. */
const UNMEANT_CAUSES = ['crash', 'out-of-memory', 'killed']

/**
 * Begins a rollout: restart (same release), deploy (a new one, which has to be prepared first where it is not given) or
 * rollback (one that was deployed before). `slots`: only these; `source`: what is to be prepared;
 * `awaitsTurn`: other apps may come first; `isTried`: a rollback goes on only if it is of use.
 */
export function startRollout (transition: Transition,
  { kind, release, source = {}, slots, note = null, strategy: wish, actor, client = null, awaitsTurn: isInTurn = false,
    isTried = false }: Omit<Extract<PlainInput, { type: 'rollout' }>, 'type'> & { isTried?: boolean })
{
  const { state } = transition
  const chosen = slots ?? state.slots.map(({ number }) => number)
  state.rollout = { id: state.nextRollout++, kind, stage: 'preparing', from: state.release.id, to: null, actor, client,
    note, strategy: strategyOf(kind, chosen.length, state.options.rollout, wish, isTried), crashes: 0, verdicts: [],
    comparison: null, comparisons: [], timeline: [], canaryEndsAt: null, pausedAt: null, progressDueAt: null,
    progressLeftMs: null, startedAt: transition.isoTime(), finishedAt: null, reason: null, abortedBy: null,
    warnings: [], hook: null, progress: { total: chosen.length, replaced: 0 }, steps: [],
    plan: { release: release ?? null, source, slots: chosen }, waitingFor: null }
  // A rollback does not wait for the rollouts of other apps.
  if (!isInTurn || kind === 'rollback') return begin(transition, state.rollout, 'rollout.started')
  tellRollout(transition, 'rollout.started')
  transition.command({ type: 'take-turn', rollout: state.rollout.id })
}

/** `apps`: whose rollouts come first */
export function waitForTurn (transition: Transition, { rollout: id, apps }: { rollout: number, apps: string[] }) {
  const { rollout } = transition.state
  if (rollout?.id !== id || !awaitsTurn(rollout)) return
  rollout.waitingFor = apps
  tellRollout(transition, 'rollout.step', { message: turnText(apps) })
}

export function takeTurn (transition: Transition, { rollout: id }: { rollout: number }) {
  const { rollout } = transition.state
  if (rollout?.id === id && awaitsTurn(rollout))
    begin(transition, rollout, rollout.waitingFor ? 'rollout.step' : null, 'its turn has come')
}

/** `event`: by which that is told */
function begin (transition: Transition, rollout: Rollout, event: 'rollout.started' | 'rollout.step' | null,
  message?: string)
{
  const { release, source, slots } = mustFind(rollout.plan)
  const { id, kind, note, actor } = rollout
  rollout.plan = null
  rollout.waitingFor = null
  if (kind === 'restart') setOut(transition, rollout, { to: transition.state.release.id, slots })
  else if (release) setOut(transition, rollout, { to: addRelease(transition, release), slots })
  if (event) tellRollout(transition, event, { message })
  if (rollout.to === null) transition.command({ type: 'prepare-release', rollout: id, source, note, actor })
  else beginJudging(transition)
}

/** `hasHook`: a deploy runs a hook first */
export function releasePrepared (transition: Transition,
  { rollout: id, release, hasHook = false }: { rollout: number, release: Release, hasHook?: boolean })
{
  const rollout = transition.state.rollout
  // The rollout was cancelled meanwhile, or nothing was to be prepared for it.
  if (rollout?.id !== id || phaseOf(rollout) !== 'preparing' || rollout.to !== null || awaitsTurn(rollout)) return
  rollout.to = addRelease(transition, release)
  const message = `release ${rollout.to} is prepared`
  if (!hasHook || rollout.kind !== 'deploy') return goAhead(transition, rollout, message)
  rollout.hook = dueHook()
  tellRollout(transition, 'rollout.step', { message })
}

/** `reason`: why it failed */
export function hookEnded (transition: Transition,
  { rollout: id, passed, reason, output }: { rollout: number, passed: boolean, reason: string | null, output: string })
{
  const rollout = transition.state.rollout
  if (rollout?.id !== id || !rollout.hook || !isHookRunning(rollout)) return
  if (phaseOf(rollout) !== 'preparing') return closeHook(transition, rollout.hook, 'ended')
  closeHook(transition, rollout.hook, passed ? 'passed' : 'failed', passed ? null : output)
  if (passed) goAhead(transition, rollout, `${rollout.hook.name} has passed`)
  else cutShort(transition, String(reason))
}

function goAhead (transition: Transition, rollout: Rollout, message: string) {
  setOut(transition, rollout, { to: mustFind(rollout.to), slots: transition.state.slots.map(({ number }) => number) })
  countReplaced(rollout)
  tellRollout(transition, 'rollout.step', { message })
  beginJudging(transition)
}

function setOut (transition: Transition, rollout: Rollout, { to, slots }: { to: string, slots: number[] }) {
  rollout.to = to
  rollout.steps = toSteps(transition, slots, rollout.strategy)
  makeMove(rollout, rollout.strategy.canary ? 'try' : 'roll')
  // Its first step may have to wait before it can start.
  noteProgress(transition)
}

export function releaseNotPrepared (transition: Transition,
  { rollout: id, reason }: { rollout: number, reason: string })
{
  const { rollout } = transition.state
  if (rollout?.id === id && phaseOf(rollout) === 'preparing' && rollout.to === null) cutShort(transition, reason)
}

/** `rollout`: is not paused: no migration should begin during a pause */
function runHook (transition: Transition, rollout: Rollout) {
  if (rollout.hook?.state !== 'due') return
  beginHook(transition, rollout, rollout.hook)
  tellRollout(transition, 'rollout.step', { message: `running ${rollout.hook.name}` })
}

/** What a rollout does by itself in a stage. */
const WORK: Partial<Record<Stage, (transition: Transition, rollout: Rollout) => void>> = { preparing: runHook,
  canary: tryOut, rolling: rollSlots, 'rolling-back': rollBackSteps, withdrawing: rollBackSteps }

/** Does all that can be done in this stage, and in the stages that it leads to. */
export function advanceRollout (transition: Transition) {
  startAfterStop(transition)
  for (let stage; transition.state.rollout && transition.state.rollout.stage !== stage;) {
    stage = transition.state.rollout.stage
    WORK[stage]?.(transition, transition.state.rollout)
  }
}

/** In any stage, a slot whose old worker has made way gets its next one. */
function startAfterStop (transition: Transition) {
  const { rollout } = transition.state
  for (const step of rollout?.steps ?? []) {
    if (!rollout || !replaceGone(transition, rollout, step)) continue
    if (step.state === 'stopping' && isBlocked(transition, mustFind(rollout.to))) endStep(transition, step, 'failed')
    if (step.state === 'failed') {
      giveUpIfBlocked(transition, rollout)
      return
    }
    if (step.state === 'reverting' && whyNoReturn(transition, step.from)) leaveStep(transition, rollout, step)
    else startCandidate(transition, rollout, step, step.state === 'reverting' ? step.from : mustFind(rollout.to))
  }
}

function rollSlots (transition: Transition, rollout: Rollout) {
  const inState = (...states: readonly string[]) => rollout.steps.filter(({ state }) => states.includes(state))
  // In a restart, all new workers are ready before any old one goes.
  const isWaiting = rollout.kind === 'restart' && rollout.strategy.order === 'start-first' &&
    inState('pending', 'starting').length > 0
  if (!isWaiting) { for (const step of inState('ready')) promoteStep(transition, rollout, step) }
  const room = rollout.strategy.surge - inState(...UNDER_WAY).length
  if (inState('pending').length > 0 && giveUpIfBlocked(transition, rollout)) return
  const next = inState('pending').slice(0, Math.max(0, Math.min(room, bootRoom(transition.state))))
  for (const step of next) beginStep(transition, rollout, step, mustFind(rollout.to), 'starting')
  if (inState('done').length < rollout.steps.length) return
  if (awaitsVerdict(transition, rollout)) askJudge(transition, 'end')
  else finishRollout(transition, 'succeed')
}

export function candidateReady (transition: Transition, worker: Worker) {
  const { rollout, step } = findStepOf(transition, worker)
  if (step.state === 'reverting') promoteStep(transition, rollout, step)
  else becomeReadyOrSoak(transition, rollout, step)
}

/** `worker`: a candidate whose program has ended as it may; its step goes on without it */
export function candidateFinished (transition: Transition, worker: Worker) {
  const { rollout, step } = findStepOf(transition, worker)
  if (step.state === 'reverting') promoteStep(transition, rollout, step)
  else stepIsReady(transition, step)
}

/** `worker`: has been ready for long enough */
export function endSoak (transition: Transition, worker: Worker) {
  const step = transition.state.rollout?.steps.find(({ newWorker, state }) =>
    newWorker === worker.id && state === 'soaking'
  )
  if (step) step.state = 'ready'
}

/**
 * A candidate that died or was not ready in time counts against its release. If it was to bring an old release back,
 * its slot stays as it is, because the worker that serves there is better than none.
 */
export function candidateLost (transition: Transition, worker: Worker, cause: string, reason: string) {
  const { rollout, step, slot } = findStepOf(transition, worker)
  if (step.state === 'reverting') {
    // A candidate that was killed from outside is tried again.
    if (!isOneOf(BLAMED_CAUSES, cause)) return
    keepWhatServes(transition, slot)
    return endStep(transition, step, 'failed')
  }
  // If its files have changed meanwhile and nothing may start on them, it cannot be tried again.
  if (!exceedsCrashLimit(rollout, cause) && !isBlocked(transition, mustFind(rollout.to))) {
    step.state = 'pending'
    return tellRollout(transition, 'rollout.step', { step })
  }
  endStep(transition, step, 'failed')
  giveUp(transition, reason)
}

/** A worker that already serves the new release died while the rollout still runs. */
export function servingLost (transition: Transition, worker: Worker, cause: string, reason: string) {
  const rollout = transition.state.rollout
  if (!rollout || rollout.kind !== 'deploy' || phaseOf(rollout) === 'rolling-back' || worker.release !== rollout.to)
    return
  const step = rollout.steps.find((each) => each.slot === worker.slot && isReplaced(each))
  if (!step || isHeld(rollout) || !exceedsCrashLimit(rollout, cause)) return
  if (rollout.strategy.onFailure === 'rollback' && !whyNoReturn(transition, step.from)) {
    const slot = transition.slot(step.slot)
    if (slot) slot.release = step.from
    markFinished(transition, step, 'failed')
  }
  giveUp(transition, reason, { hasReplaced: true })
}

/** A step ends with its old worker. `exit`: null: it is kept, and nobody waits for its end any more. */
export function oldWorkerGone (transition: Transition, worker: Worker, exit: { cause: string, reason: string } | null) {
  const { rollout } = transition.state
  const step = rollout?.steps.find(({ oldWorker, state }) =>
    oldWorker === worker.id && (state === 'draining' || state === 'stopping')
  )
  if (!rollout || !step) return
  if (exit && UNMEANT_CAUSES.includes(exit.cause)) addWarning(rollout, `${exit.reason}, while it drained`)
  step.drainedAt = transition.isoTime()
  if (step.state === 'draining') endStep(transition, step, 'done')
}

/** `reason`: why the rollout ends where it is */
export function cutShort (transition: Transition, reason: string) {
  const { rollout } = transition.state
  if (!rollout) return
  rollout.reason ??= reason
  finishRollout(transition, 'fail')
}

/** The number of slots has changed during a rollout: removed slots lose their steps, and added ones get one. */
export function resizeRollout (transition: Transition, { added, removed }: { added: number[], removed: number[] }) {
  const { rollout } = transition.state
  if (!rollout || phaseOf(rollout) === 'preparing') return
  rollout.steps = rollout.steps.filter(({ slot }) => !removed.includes(slot))
  const joins = rollout.kind === 'deploy' && phaseOf(rollout) !== 'rolling-back'
  if (joins) rollout.steps.push(...toSteps(transition, added, { ...rollout.strategy, canary: null }))
  countReplaced(rollout)
}

/** The progress deadline has passed. */
export function noProgress (transition: Transition) {
  const { rollout } = transition.state
  if (!rollout) return
  const reason = `no progress for ${
    durationText(rollout.strategy.progressDeadlineMs)
  } (option rollout.progressDeadlineMs)`
  const { state } = shownStage(rollout)
  if (state === 'rolling-back') {
    for (const step of rollout.steps) if (step.state === 'reverting') leaveStep(transition, rollout, step)
    cutShort(transition, reason)
  } else if (!isPausedOrHeld(rollout)) giveUp(transition, reason)
}

/** Counts a crash of the new release. Returns whether it is one too many. */
function exceedsCrashLimit (rollout: Rollout, cause: string): boolean {
  if (!isOneOf(BLAMED_CAUSES, cause)) return false
  rollout.crashes++
  return rollout.crashes > rollout.strategy.limits.crashes
}

function addRelease (transition: Transition, release: Release) {
  forgetUnused(transition, release.id)
  transition.state.releases[release.id] = release
  return release.id
}

function forgetUnused ({ state }: Transition, next: string) {
  const running = [...state.slots, ...Object.values(state.workers)].map(({ release }) => release)
  const used = new Set([next, state.release.id, state.rollout?.from, ...running])
  for (const id of Object.keys(state.releases)) if (!used.has(id)) delete state.releases[id]
}
