import { isHeld, whyHeld } from '../drift.js'
import { giveUp, goBack, leave, revert } from './going-back.js'
import { addVerdict, clearClocks, countReplaced, find, finish, mustFind, noteProgress, running, stageOf, tellRollout, warn } from './record.js'
import { begin, candidateBecameReady, promote, UNDER_WAY } from './steps.js'
import { shownRelease } from '../state.js'
import { strategyOf } from './strategy.js'

/** @typedef {import('../turn.js').Turn} Turn */
/** @typedef {import('../state.js').Rollout} Rollout */
/** @typedef {import('../state.js').RolloutStep} RolloutStep */
/** @typedef {import('../state.js').Worker} Worker */

/** Ends that say nothing of the release. */
const OUTSIDE_CAUSES = ['killed', 'operator', 'scale-down', 'memory-limit', 'max-age', 'max-requests']
/** Ends of an old worker that may have cost requests. */
const UNMEANT_CAUSES = ['crash', 'out-of-memory', 'killed']
const JUDGE_EVERY_MS = 5000

/**
 * Begins a rollout: restart (same release), deploy (a new one, which has to be prepared first where it is not given) or
 * rollback (one that was deployed before).
 * @param {Turn} turn
 * @param {{ kind: 'restart' | 'deploy' | 'rollback', release?: any, source?: Record<string, unknown>, slots?: number[], note?: string | null, strategy?: import('./strategy.js').StrategyWish, actor: string }} input
 *   `slots`: only these; `source`: what is to be prepared
 */
export function startRollout (turn, { kind, release, source = {}, slots, note = null, strategy: wish, actor }) {
  const { state } = turn
  const chosen = slots ?? state.slots.map(({ number }) => number)
  const strategy = strategyOf(kind, chosen.length, state.options.rollout, wish)
  state.rollout = {
    id: state.nextRollout++,
    kind,
    state: 'preparing',
    pausedIn: null,
    isHeld: false,
    isAborted: false,
    from: state.release.id,
    to: kind === 'restart' ? state.release.id : null,
    actor,
    note,
    strategy,
    crashes: 0,
    verdicts: [],
    canaryEndsAt: null,
    progressDueAt: null,
    progressLeftMs: null,
    hasReplaced: false,
    startedAt: turn.isoTime(),
    finishedAt: null,
    done: false,
    reason: null,
    warnings: [],
    progress: { total: chosen.length, replaced: 0 },
    steps: []
  }
  if (kind !== 'restart' && !release) {
    tellRollout(turn, 'rollout.started')
    turn.order({ type: 'prepare-release', rollout: state.rollout.id, source, note, actor })
    return
  }
  if (release) state.rollout.to = addRelease(turn, release, actor)
  state.rollout.steps = toSteps(turn, chosen, strategy)
  state.rollout.state = strategy.canary ? 'canary' : 'rolling'
  tellRollout(turn, 'rollout.started')
  watch(turn)
  advance(turn)
}

/** @param {Turn} turn @param {{ rollout: number, release: any }} input its release is there */
export function releasePrepared (turn, { rollout: id, release }) {
  const rollout = turn.state.rollout
  // It was called off meanwhile.
  if (rollout?.id !== id || stageOf(rollout) !== 'preparing') return
  rollout.to = addRelease(turn, release, rollout.actor)
  rollout.steps = toSteps(turn, turn.state.slots.map(({ number }) => number), rollout.strategy)
  countReplaced(rollout)
  const next = rollout.strategy.canary ? 'canary' : 'rolling'
  if (rollout.pausedIn) rollout.pausedIn = next
  else rollout.state = next
  tellRollout(turn, 'rollout.step', { message: `release ${rollout.to} is prepared` })
  watch(turn)
  advance(turn)
}

/** @param {Turn} turn @param {{ rollout: number, reason: string }} input */
export function releaseNotPrepared (turn, { rollout: id, reason }) {
  if (turn.state.rollout?.id !== id || stageOf(turn.state.rollout) !== 'preparing') return
  cutShort(turn, reason)
}

/** @param {Turn} turn @param {Worker} worker */
export function candidateReady (turn, worker) {
  const { rollout, step } = find(turn, worker)
  if (step.state === 'reverting') promote(turn, rollout, step)
  else candidateBecameReady(turn, worker)
  advance(turn)
}

/** @param {Turn} turn @param {Worker} worker it has been ready for long enough */
export function soaked (turn, worker) {
  const step = turn.state.rollout?.steps.find(({ newWorker, state }) => newWorker === worker.id && state === 'soaking')
  if (!step) return
  step.state = 'ready'
  advance(turn)
}

/**
 * A candidate that died or was not ready in time speaks against its release; one that should have brought an old release
 * back leaves its slot as it is, because what serves there is better than nothing.
 * @param {Turn} turn @param {Worker} worker @param {string} cause @param {string} reason
 */
export function candidateLost (turn, worker, cause, reason) {
  const { rollout, step, slot } = find(turn, worker)
  // Killed from outside, one that should bring the old release back is tried again.
  if (step.state === 'reverting' && OUTSIDE_CAUSES.includes(cause)) return advance(turn)
  if (step.state === 'reverting') {
    const serving = slot.serving === null ? null : turn.state.workers[slot.serving]
    slot.release = serving?.release ?? slot.release
    endStep(turn, step, 'failed')
    return advance(turn)
  }
  // Where its files have changed meanwhile and nothing may start on them, it cannot be tried again.
  if (!isBlamed(rollout, cause) && !isHeld(turn, mustFind(rollout.to))) {
    step.state = 'pending'
    tellRollout(turn, 'rollout.step', { step })
    return advance(turn)
  }
  endStep(turn, step, 'failed')
  giveUp(turn, reason)
}

/**
 * A worker that already serves the new release died while the rollout still runs.
 * @param {Turn} turn @param {Worker} worker @param {string} cause @param {string} reason
 */
export function servingLost (turn, worker, cause, reason) {
  const rollout = turn.state.rollout
  if (!rollout || rollout.kind !== 'deploy' || rollout.state === 'aborting' || worker.release !== rollout.to) return
  const step = rollout.steps.find(({ slot, state }) => slot === worker.slot && (state === 'draining' || state === 'done'))
  if (!step || rollout.isHeld || !isBlamed(rollout, cause)) return
  if (rollout.strategy.onFailure === 'rollback') {
    const slot = turn.slot(step.slot)
    if (slot) slot.release = step.from
    step.state = 'failed'
    step.finishedAt = turn.isoTime()
  }
  giveUp(turn, reason)
}

/** @param {Turn} turn @param {Worker} worker any that has exited: a step ends with its old worker @param {{ cause: string, reason: string }} exit */
export function oldWorkerGone (turn, worker, { cause, reason }) {
  const { rollout } = turn.state
  const step = rollout?.steps.find(({ oldWorker, state }) => oldWorker === worker.id && state === 'draining')
  if (!rollout || !step) return
  if (UNMEANT_CAUSES.includes(cause)) warn(rollout, `${reason}, while it drained`)
  endStep(turn, step, 'done')
  advance(turn)
}

/** @param {Turn} turn @param {string} reason ends it where it stands */
export function cutShort (turn, reason) {
  const { rollout } = turn.state
  if (!rollout) return
  rollout.reason ??= reason
  finish(turn, 'failed')
}

/** @param {Turn} turn @param {{ rollout: number, verdict: import('../state.js').Verdict }} input what the judge has found */
export function judged (turn, { rollout: id, verdict }) {
  const rollout = turn.state.rollout
  // It has gone on meanwhile without waiting for this.
  if (rollout?.id !== id || !['canary', 'rolling'].includes(stageOf(rollout)) || rollout.isHeld) return
  const isTrialOver = verdict.isFinal && stageOf(rollout) === 'canary'
  if (verdict.isFinal || verdict.passed === false) {
    addVerdict(rollout, verdict)
    tellRollout(turn, 'rollout.judged', { message: verdict.message })
  }
  if (verdict.passed === false) return giveUp(turn, verdict.message)
  if (isTrialOver) endTrial(turn)
}

/** @param {Turn} turn the canaries have passed, or need no judgement any more */
export function endTrial (turn) {
  const rollout = running(turn)
  turn.order({ type: 'clear-deadline', deadline: 'canary', id: 0 })
  rollout.canaryEndsAt = null
  for (const step of rollout.steps) if (step.state === 'ready') soak(turn, rollout, step)
  if (rollout.pausedIn) rollout.pausedIn = 'rolling'
  else rollout.state = 'rolling'
  noteProgress(turn)
  advance(turn)
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step its canary has been ready for a while, perhaps not for long enough */
function soak (turn, rollout, step) {
  const worker = turn.state.workers[step.newWorker ?? 0]
  const ms = rollout.strategy.minReadyMs - (Date.parse(turn.isoTime()) - Date.parse(String(worker?.readyAt)))
  if (!(ms > 0)) return
  step.state = 'soaking'
  turn.order({ type: 'set-deadline', deadline: 'soak', id: worker.id, ms })
}

/**
 * The wanted number of workers has changed while it runs: what is gone needs no step any more, and what has come gets one.
 * @param {Turn} turn @param {{ added: number[], removed: number[] }} slots
 */
export function resized (turn, { added, removed }) {
  const { rollout } = turn.state
  if (!rollout || stageOf(rollout) === 'preparing') return
  rollout.steps = rollout.steps.filter(({ slot }) => !removed.includes(slot))
  const joins = rollout.kind === 'deploy' && rollout.state !== 'aborting'
  if (joins) rollout.steps.push(...toSteps(turn, added, { ...rollout.strategy, canary: null }))
  countReplaced(rollout)
  advance(turn)
}

/** @param {Turn} turn it has come no further for too long */
export function noProgress (turn) {
  const { rollout } = turn.state
  if (!rollout) return
  const reason = `it has come no further for ${rollout.strategy.progressDeadlineMs} ms (option rollout.progressDeadlineMs)`
  if (rollout.state === 'aborting') {
    for (const step of rollout.steps) if (step.state === 'reverting') leave(turn, rollout, step)
    cutShort(turn, reason)
  } else if (rollout.state !== 'paused') giveUp(turn, reason)
}

/** @param {Turn} turn @param {'canary' | 'judge'} deadline */
export function askJudge (turn, deadline) {
  const { rollout, workers } = turn.state
  if (!rollout || !['canary', 'rolling'].includes(stageOf(rollout)) || rollout.isHeld) return
  const isFinal = deadline === 'canary'
  if (!isFinal) turn.order({ type: 'set-deadline', deadline: 'judge', id: 0, ms: JUDGE_EVERY_MS })
  // A person has the last word: the trial ends when they let it go on.
  else if (rollout.state === 'paused') return
  // A release may be deployed once more: then only the worker itself tells which is new.
  const isNew = (/** @type {Worker} */ { release, slot, id }) => release === rollout.to && rollout.steps.some((step) => step.slot === slot && (step.from !== rollout.to || step.newWorker === id))
  const ready = Object.values(workers).filter(({ state }) => state === 'ready')
  const fresh = ready.filter(isNew).map(({ id }) => id)
  // What drains has answered in the same time too, and at the end of a rollout nothing else is left of them.
  const old = Object.values(workers).filter((worker) => !worker.orphan && (worker.state === 'ready' ? !isNew(worker) : worker.readyAt !== null && worker.release !== rollout.to)).map(({ id }) => id)
  turn.order({ type: 'judge', rollout: rollout.id, isFinal, fresh, old, limits: rollout.strategy.limits })
}

/** @param {Turn} turn whatever can go on does */
export function advance (turn) {
  const { rollout } = turn.state
  if (rollout?.state === 'rolling') roll(turn, rollout)
  else if (rollout?.state === 'canary') tryOut(turn, rollout)
  else if (rollout?.state === 'aborting') revert(turn)
}

/** @param {Turn} turn @param {Rollout} rollout */
function roll (turn, rollout) {
  const inState = (/** @type {readonly string[]} */ ...states) => rollout.steps.filter(({ state }) => states.includes(state))
  // Of a restart all new workers are ready before any old one goes.
  const isWaiting = rollout.kind === 'restart' && inState('pending', 'starting').length > 0
  if (!isWaiting) for (const step of inState('ready')) promote(turn, rollout, step)
  const room = rollout.strategy.surge - inState(...UNDER_WAY).length
  if (inState('pending').length > 0 && giveUpIfHeld(turn, rollout)) return
  for (const step of inState('pending').slice(0, Math.max(0, room))) begin(turn, rollout, step, mustFind(rollout.to), 'starting')
  if (inState('done').length === rollout.steps.length) finish(turn, 'succeeded')
}

/** @param {Turn} turn @param {Rollout} rollout @returns {boolean} whether nothing may start on its release, as files of it have changed since it began */
function giveUpIfHeld (turn, { to }) {
  if (to === null || !isHeld(turn, to)) return false
  giveUp(turn, whyHeld(turn, to))
  return true
}

/** @param {Turn} turn @param {Rollout} rollout the canaries serve beside all old workers, and none of those goes yet */
function tryOut (turn, rollout) {
  const canaries = rollout.steps.filter(({ isCanary }) => isCanary)
  if (canaries.some(({ state }) => state === 'pending') && giveUpIfHeld(turn, rollout)) return
  for (const step of canaries.filter(({ state }) => state === 'pending')) begin(turn, rollout, step, mustFind(rollout.to), 'starting')
  if (canaries.some(({ state }) => state !== 'ready')) return
  if (rollout.canaryEndsAt !== null) {
    // One of them was replaced meanwhile.
    rollout.progressDueAt = null
    return turn.order({ type: 'clear-deadline', deadline: 'progress', id: 0 })
  }
  const { durationMs } = mustFind(rollout.strategy.canary)
  // It waits on purpose from here on.
  clearClocks(turn)
  rollout.canaryEndsAt = turn.isoTime(durationMs)
  turn.order({ type: 'set-deadline', deadline: 'canary', id: 0, ms: durationMs })
  watch(turn)
  tellRollout(turn, 'rollout.step', { message: `${canaries.length} of ${rollout.steps.length} on trial for ${durationMs} ms` })
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

/** @param {Turn} turn from now on new workers and old ones are compared */
export function watch (turn) {
  if (running(turn).kind !== 'deploy') return
  turn.order({ type: 'begin-judging' })
  turn.order({ type: 'set-deadline', deadline: 'judge', id: 0, ms: JUDGE_EVERY_MS })
}

/** @param {Rollout} rollout @param {string} cause @returns {boolean} whether this death is one too many */
function isBlamed (rollout, cause) {
  if (OUTSIDE_CAUSES.includes(cause)) return false
  rollout.crashes++
  return rollout.crashes > rollout.strategy.limits.crashes
}

/** @param {Turn} turn @param {RolloutStep} step @param {'done' | 'failed'} state */
function endStep (turn, step, state) {
  step.state = state
  step.finishedAt = turn.isoTime()
  noteProgress(turn)
  tellRollout(turn, 'rollout.step', { step })
}

/** @param {Turn} turn @param {number[]} numbers @param {import('./strategy.js').Strategy} strategy @returns {RolloutStep[]} */
function toSteps ({ state }, numbers, { canary }) {
  return state.slots.filter(({ number }) => numbers.includes(number)).map(({ number, release }, index) => ({
    slot: number, state: 'pending', oldWorker: null, newWorker: null, from: release, isCanary: index < (canary?.workers ?? 0), startedAt: null, finishedAt: null
  }))
}

/** @param {Turn} turn @param {any} release one with an id is known outside, and has been told of @param {string} actor */
function addRelease (turn, release, actor) {
  const { state } = turn
  const id = release.id ?? `r${state.nextRelease++}`
  forgetUnused(turn, id)
  state.releases[id] = { createdAt: turn.isoTime(), ...release, id }
  state.nextRelease = Math.max(state.nextRelease, Number(id.slice(1)) + 1)
  if (!release.id) turn.tell('release.created', { release: id, actor, detail: shownRelease(state.releases[id]) })
  return id
}

/** @param {Turn} turn @param {string} next */
function forgetUnused ({ state }, next) {
  const used = new Set([next, state.release.id, state.rollout?.from, ...state.slots.map(({ release }) => release), ...Object.values(state.workers).map(({ release }) => release)])
  for (const id of Object.keys(state.releases)) if (!used.has(id)) delete state.releases[id]
}

/** @param {Turn} turn @param {{ reason: string, actor: string }} why */
export function abort (turn, why) {
  const rollout = running(turn)
  rollout.isAborted = true
  goBack(turn, why)
}
