import { shownRelease } from './state.js'
import { cancelRetry, drain, forgive, fork } from './worker.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Rollout} Rollout */
/** @typedef {import('./state.js').RolloutStep} RolloutStep */
/** @typedef {import('./state.js').Worker} Worker */

/**
 * Begins a rollout: restart (same release, every new worker before any old one goes) or deploy (slot by slot).
 * @param {Turn} turn
 * @param {{ kind: 'restart' | 'deploy', release?: Omit<import('./state.js').Release, 'id' | 'createdAt'> | import('./state.js').Release, slots?: number[], note?: string | null, actor: string }} input
 *   `slots`: only these
 */
export function startRollout (turn, { kind, release, slots, note = null, actor }) {
  const { state } = turn
  const from = state.release.id
  const to = kind === 'deploy' && release ? addRelease(turn, release, actor) : from
  const chosen = state.slots.filter(({ number }) => !slots || slots.includes(number))
  state.rollout = {
    id: state.nextRollout++,
    kind,
    state: 'rolling',
    from,
    to,
    actor,
    note,
    surge: kind === 'deploy' ? 1 : chosen.length,
    startedAt: turn.isoTime(),
    finishedAt: null,
    done: false,
    reason: null,
    progress: { total: chosen.length, replaced: 0 },
    steps: chosen.map(({ number, release: own }) => ({
      slot: number, state: 'pending', oldWorker: null, newWorker: null, from: own, startedAt: null, finishedAt: null
    }))
  }
  tellRollout(turn, 'rollout.started')
  advance(turn)
}

/** @param {Turn} turn @param {Worker} worker a candidate that has become ready */
export function candidateReady (turn, worker) {
  const { rollout, step } = find(turn, worker)
  if (rollout.state === 'rolling') step.state = 'ready'
  else promote(turn, rollout, step)
  tellRollout(turn, 'rollout.step', step)
  advance(turn)
}

/**
 * A candidate that died or was not ready in time ends the rollout; one that should have brought an old release back
 * leaves its slot as it is, because what serves there is better than nothing.
 * @param {Turn} turn @param {Worker} worker @param {string} reason
 */
export function candidateLost (turn, worker, reason) {
  const { rollout, step, slot } = find(turn, worker)
  step.state = 'failed'
  step.finishedAt = turn.isoTime()
  if (rollout.state === 'rolling') return fail(turn, reason)
  const serving = slot.serving === null ? null : turn.state.workers[slot.serving]
  slot.release = serving?.release ?? slot.release
  tellRollout(turn, 'rollout.step', step)
  advance(turn)
}

/**
 * A worker that already serves the new release crashed while the rollout still runs: the release is not to be trusted.
 * @param {Turn} turn @param {Worker} worker @param {string} cause @param {string} reason
 */
export function servingLost (turn, worker, cause, reason) {
  const rollout = turn.state.rollout
  if (rollout?.state !== 'rolling' || rollout.kind !== 'deploy' || cause === 'killed' || cause === 'operator') return
  const step = rollout.steps.find(({ newWorker }) => newWorker === worker.id)
  if (!step) return
  step.state = 'failed'
  step.finishedAt = turn.isoTime()
  const slot = turn.slot(step.slot)
  if (slot) slot.release = step.from
  fail(turn, reason)
}

/** @param {Turn} turn @param {Worker} worker any that has exited: a step ends with its old worker */
export function oldWorkerGone (turn, worker) {
  const step = turn.state.rollout?.steps.find(({ oldWorker, state }) => oldWorker === worker.id && state === 'draining')
  if (!step) return
  step.state = 'done'
  step.finishedAt = turn.isoTime()
  tellRollout(turn, 'rollout.step', step)
  advance(turn)
}

/** @param {Turn} turn @param {string} reason ends it where it stands */
export function cutShort (turn, reason) {
  const { rollout } = turn.state
  if (!rollout) return
  rollout.reason ??= reason
  finish(turn, 'failed')
}

/** @param {Turn} turn */
function advance (turn) {
  const { rollout } = turn.state
  if (rollout?.state === 'rolling') roll(turn, rollout)
  else if (rollout?.state === 'aborting') revert(turn, rollout)
}

/** @param {Turn} turn @param {Rollout} rollout */
function roll (turn, rollout) {
  const inState = (/** @type {string[]} */ ...states) => rollout.steps.filter(({ state }) => states.includes(state))
  if (inState('starting').length > 0) return
  for (const step of inState('ready')) {
    promote(turn, rollout, step)
    tellRollout(turn, 'rollout.step', step)
  }
  const batch = inState('pending').slice(0, rollout.surge)
  for (const step of batch) begin(turn, step, rollout.to, 'starting')
  if (inState('done').length === rollout.steps.length) finish(turn, 'succeeded')
}

/** @param {Turn} turn @param {Rollout} rollout what was already replaced goes back, one slot at a time */
function revert (turn, rollout) {
  const steps = rollout.steps.filter(({ state }) => state === 'reverting')
  if (steps.some((step) => turn.slot(step.slot)?.candidate != null)) return
  const [next] = steps
  if (next) begin(turn, next, next.from, 'reverting')
  else finish(turn, 'failed')
}

/** @param {Turn} turn @param {RolloutStep} step @param {string} release @param {'starting' | 'reverting'} state */
function begin (turn, step, release, state) {
  const slot = mustFind(turn.slot(step.slot))
  step.state = state
  step.startedAt ??= turn.isoTime()
  step.oldWorker = slot.serving
  slot.candidate = fork(turn, slot, release)
  step.newWorker = slot.candidate
  tellRollout(turn, 'rollout.step', step)
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step the candidate takes the slot over, its predecessor drains */
function promote (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  const isReverting = step.state === 'reverting'
  const old = slot.serving === null ? undefined : turn.state.workers[slot.serving]
  const target = isReverting ? step.from : rollout.to
  cancelRetry(turn, slot)
  if (slot.release !== target) forgive(turn, slot)
  slot.serving = slot.candidate
  slot.candidate = null
  slot.release = target
  step.oldWorker = old?.id ?? null
  step.state = isReverting ? 'reverted' : old ? 'draining' : 'done'
  if (step.state !== 'draining') step.finishedAt = turn.isoTime()
  countReplaced(rollout)
  drain(turn, old, { cause: isReverting ? 'rollback' : rollout.kind, actor: rollout.actor, rollout: rollout.id })
}

/** @param {Turn} turn @param {string} reason */
function fail (turn, reason) {
  const rollout = mustFind(turn.state.rollout)
  rollout.state = 'aborting'
  rollout.reason = reason
  for (const step of rollout.steps) undo(turn, rollout, step)
  countReplaced(rollout)
  tellRollout(turn, 'rollout.step', rollout.steps.find(({ state }) => state === 'failed'))
  advance(turn)
}

/** @param {Turn} turn @param {Rollout} rollout @param {RolloutStep} step */
function undo (turn, rollout, step) {
  const slot = mustFind(turn.slot(step.slot))
  if (step.state === 'starting' || step.state === 'ready') {
    const candidate = slot.candidate === null ? undefined : turn.state.workers[slot.candidate]
    drain(turn, candidate, { cause: 'rollback', actor: rollout.actor, rollout: rollout.id, message: 'the rollout failed' })
    step.state = 'reverted'
    step.finishedAt = turn.isoTime()
  } else if ((step.state === 'draining' || step.state === 'done') && step.from !== rollout.to) {
    slot.release = step.from
    const serving = slot.serving === null ? undefined : turn.state.workers[slot.serving]
    // A slot without a worker comes back on its old release by itself.
    step.state = serving ? 'reverting' : 'reverted'
  }
}

/** @param {Turn} turn @param {'succeeded' | 'failed'} outcome */
function finish (turn, outcome) {
  const rollout = mustFind(turn.state.rollout)
  rollout.state = outcome
  rollout.done = true
  rollout.finishedAt = turn.isoTime()
  if (outcome === 'succeeded') turn.state.release = turn.state.releases[rollout.to]
  tellRollout(turn, `rollout.${outcome}`)
  turn.state.rollout = null
}

/** @param {Turn} turn @param {string} type @param {RolloutStep} [step] */
function tellRollout (turn, type, step) {
  const rollout = mustFind(turn.state.rollout)
  turn.tell(type, {
    rollout: rollout.id,
    release: rollout.to,
    cause: rollout.kind,
    actor: rollout.actor,
    slot: step?.slot ?? null,
    worker: step?.newWorker ?? null,
    message: type === 'rollout.step' && step ? `slot ${step.slot}: ${step.state}` : rollout.reason ?? rollout.note,
    detail: structuredClone(rollout)
  })
}

/**
 * @param {Turn} turn @param {Omit<import('./state.js').Release, 'id' | 'createdAt'> | import('./state.js').Release} release
 *   one with an id is known outside, and has been told of
 * @param {string} actor
 */
function addRelease (turn, release, actor) {
  if ('id' in release) {
    turn.state.releases[release.id] = release
    turn.state.nextRelease = Math.max(turn.state.nextRelease, Number(release.id.slice(1)) + 1)
    return release.id
  }
  const id = `r${turn.state.nextRelease++}`
  turn.state.releases[id] = { id, createdAt: turn.isoTime(), ...release }
  turn.tell('release.created', { release: id, actor, detail: shownRelease(turn.state.releases[id]) })
  return id
}

/** @param {Rollout} rollout */
function countReplaced (rollout) {
  rollout.progress.replaced = rollout.steps.filter(({ state }) => state === 'draining' || state === 'done').length
}

/** @param {Turn} turn @param {Worker} worker */
function find (turn, worker) {
  const rollout = mustFind(turn.state.rollout)
  return { rollout, step: mustFind(rollout.steps.find(({ slot }) => slot === worker.slot)), slot: mustFind(turn.slot(worker.slot)) }
}

/** @template T @param {T | null | undefined} value @returns {T} */
function mustFind (value) {
  if (value == null) throw new Error('a rollout without its parts: the reducer is broken')
  return value
}
