import { addAddress, awaitAddresses, keepAddresses, listensElsewhere, missingAddresses, releaseAddresses, removeAddress } from './addresses.js'
import { extendBoot, noteBoot } from './boot-room.js'
import { beginCrash } from './crashing.js'
import { driftRefusal } from './drift.js'
import { endsSlot, finishSlot, isFinished } from './finished.js'
import { becomeResponsive, becomeUnresponsive, drainReplaced, killStuck } from './hang.js'
import { adoptOrphan, drainOrphans } from './orphans.js'
import { becomeDue, callOff, candidateTakesOver, endRecycling, forgetDue, promoteRecycled, isRecycled, recycledGone, recycleNext, recyclingFailed, watchAge, watchAges } from './recycling.js'
import { endsByItself } from './restart-policy.js'
import { goOnGuarding, liftGuard } from './rollout/guard.js'
import { listStandbys } from './promotion.js'
import { beNoServer, isNoServer, isSurelyNoServer, listenLate, notReadyInTime, takeNoteOfProbe, tellThreadPort, tellWarmUp, watchNoServer } from './readiness.js'
import { advance, candidateFinished, candidateLost, candidateReady, cutShort, hookEnded, noProgress, oldWorkerGone, releaseNotPrepared, releasePrepared, resized, servingLost, soaked, startRollout } from './rollout/rollout.js'
import { becomeStandby, endStandby, endStandbys, keepStandbys, killHungStandby, loseStandby, neverHeld, readSlot, retryStandby } from './standby.js'
import { createSlot } from './state.js'
import { noteProgress } from './rollout/record.js'
import { phaseOf } from './rollout/stages.js'
import { refuseSteering, STEERING } from './rollout/steering.js'
import { contradicts } from './rollout/strategy.js'
import { askJudge, judged } from './rollout/trial.js'
import { openTurn } from './turn.js'
import { cancelUpgrade, UPGRADE_HANDLERS, upgradeTooSlow } from './upgrade.js'
import { isClaimed, isOccupied, isVacant, stopsFirst } from './vacancy.js'
import { becomeReady, recordEnd, cancelRetry, clearDeadlines, drain, drainListening, resetBackoff, forkServing, killLate, leaveSlot, nameOf, replace, terminate } from './worker.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').PoolState} PoolState */
/** @typedef {import('./state.js').Worker} Worker */
/** @typedef {'serving' | 'candidate' | 'standby' | null} Role */

/**
 * What should happen: pure, so that every schedule of events can be tried in a test.
 * An input that fits no transition becomes an `unexpected` event, never a throw.
 * @param {PoolState} state never changed
 * @param {import('./state.js').Input} input
 * @returns {{ state: PoolState, commands: import('./state.js').Command[], events: import('./state.js').Fact[], refusal: import('./state.js').Refusal | null }}
 *   `refusal`: the input was an operator's, and is not possible now; then nothing else has changed
 */
export function reduce (state, input) {
  const refusal = refuse(state, input)
  if (refusal) return { state, commands: [], events: [], refusal }

  const wasSettled = isSettled(state)
  const turn = openTurn(state, input)
  const handle = /** @type {Record<string, (turn: Turn, input: any) => void>} */ (HANDLERS)[input.type]
  handle(turn, input)
  settle(turn)
  // Whoever was to ask for a socket has done so by now.
  if (!wasSettled && isSettled(turn.state)) turn.order({ type: 'expire-unused-sockets' })
  return { state: turn.state, commands: turn.commands, events: turn.events, refusal: null }
}

const HANDLERS = {
  start (/** @type {Turn} */ turn, /** @type {{ workers: number, guard?: import('./rollout/guard.js').Guard | null, orphans?: import('./state.js').Orphan[], finished?: Record<number, import('./state.js').Finished>, hasHook?: boolean, actor: string }} */ { workers, guard, orphans = [], finished, hasHook = false, actor }) {
    const { state } = turn
    state.phase = 'starting'
    state.awaitsHook = hasHook
    goOnGuarding(turn, guard)
    for (const orphan of orphans) adoptOrphan(turn, orphan)
    state.hasBeenReady ||= orphans.some(({ readyAt }) => readyAt !== null)
    resize(turn, workers, { actor, finished })
    if (hasHook) turn.order({ type: 'run-start-hook', release: state.releases[state.release.id] })
  },

  // Who waited for it is started as what is vacant.
  'start-hook-passed' (/** @type {Turn} */ { state }) {
    state.awaitsHook = false
  },

  scale (/** @type {Turn} */ turn, /** @type {{ workers: number, actor: string }} */ { workers, actor }) {
    const from = turn.state.slots.length
    if (from === workers) return
    turn.tell('scale.changed', { actor, message: `from ${from} to ${workers} workers`, detail: { from, to: workers } })
    resize(turn, workers, { actor })
  },

  configure (/** @type {Turn} */ turn, /** @type {{ options: import('./state.js').LifecycleOptions }} */ { options }) {
    const before = turn.state.options.recycle
    turn.state.options = options
    if (before?.maxRssBytes !== options.recycle?.maxRssBytes) forgetDue(turn, 'memory-limit')
    if (before?.maxRequests !== options.recycle?.maxRequests) forgetDue(turn, 'max-requests')
    if (before?.maxAgeMs === options.recycle?.maxAgeMs) return
    forgetDue(turn, 'max-age')
    watchAges(turn)
  },

  rollout (/** @type {Turn} */ turn, /** @type {Parameters<typeof startRollout>[1]} */ input) {
    callOff(turn, { cause: input.kind, actor: input.actor })
    startRollout(turn, input)
  },

  'release-prepared': releasePrepared,

  'release-not-prepared': releaseNotPrepared,

  'hook-ended': hookEnded,

  judged,

  ...STEERING,

  'restart-worker' (/** @type {Turn} */ turn, /** @type {{ worker: number, actor: string, client?: import('./state.js').Client | null }} */ { worker, actor, client }) {
    callOff(turn, { cause: 'restart', actor })
    startRollout(turn, { kind: 'restart', slots: [Number(turn.state.workers[worker].slot)], actor, client })
  },

  // At once and whatever else is going on: it is for a worker that nothing else helps against.
  'kill-worker' (/** @type {Turn} */ turn, /** @type {{ worker: number, actor: string }} */ { worker: id, actor }) {
    const worker = turn.state.workers[id]
    const role = roleOf(turn, worker)
    leaveSlot(turn, worker)
    worker.state = 'stopping'
    worker.intent = { cause: 'operator', actor, rollout: null }
    turn.tellOf('worker.killed', worker, { cause: 'operator', actor })
    turn.order({ type: 'kill', worker: id })
    clearDeadlines(turn, id)
    lose(turn, worker, role, { cause: 'operator', reason: `${nameOf(worker)} was killed by an operator` })
  },

  ...UPGRADE_HANDLERS,

  upgrade (/** @type {Turn} */ turn, /** @type {{ actor: string }} */ input) {
    callOff(turn, { cause: 'upgrade', actor: input.actor })
    UPGRADE_HANDLERS.upgrade(turn, input)
  },

  'take-over' (/** @type {Turn} */ turn, /** @type {{ orphans: import('./state.js').Orphan[], nextWorker: number, guard?: import('./rollout/guard.js').Guard | null }} */ { orphans, nextWorker, guard }) {
    const { state } = turn
    goOnGuarding(turn, guard)
    state.nextWorker = Math.max(state.nextWorker, nextWorker)
    for (const orphan of orphans) adoptOrphan(turn, orphan)
  },

  stop (/** @type {Turn} */ turn, /** @type {{ actor: string, cause?: 'shutdown' | 'rollback' }} */ { actor, cause = 'shutdown' }) {
    const { state } = turn
    state.phase = 'stopping'
    endRecycling(turn)
    cutShort(turn, 'the master is stopping')
    cancelUpgrade(turn, 'the master was told to stop')
    turn.order({ type: 'close-sockets' })
    for (const slot of state.slots) cancelRetry(turn, slot)
    endStandbys(turn, { cause, actor, rollout: null })
    for (const worker of Object.values(state.workers)) drain(turn, worker, { cause, actor, rollout: null })
  },

  'kill-all' (/** @type {Turn} */ turn, /** @type {{ reason: string }} */ { reason }) {
    for (const worker of Object.values(turn.state.workers)) {
      worker.state = 'stopping'
      worker.intent ??= { cause: 'shutdown', actor: 'system', rollout: null }
      worker.killedFor = reason
      turn.order({ type: 'kill', worker: worker.id })
    }
  },

  'address-blocked' (/** @type {Turn} */ turn) {
    drainOrphans(turn, () => true)
  },

  'worker-forked': ofWorker((turn, worker, { pid }) => {
    worker.pid = pid
    turn.tellOf('worker.forked', worker)
  }),

  'worker-online': ofWorker((turn, worker) => {
    turn.tellOf('worker.online', worker)
  }),

  'worker-held': ofWorker(becomeStandby),

  'worker-read-slot': ofWorker(readSlot),

  'worker-listening': ofWorker((turn, worker, address) => {
    addAddress(turn, worker, address)
    turn.state.hasListened = true
    drainListening(turn, worker)
    // What starts for its slot meanwhile is to know.
    if (worker.isNoServer) keepAddresses(turn, worker)
    if (worker.report && missingAddresses(turn, worker).length === 0) takeUp(turn, worker, worker.report)
  }),

  'worker-closed': ofWorker((turn, worker, { url }) => {
    removeAddress(worker, url)
    if (worker.isNoServer) keepAddresses(turn, worker)
  }),

  'worker-active': ofWorker((turn, worker, { resources, isIdle = false }) => {
    if (worker.state !== 'starting') return
    worker.resources = resources
    if (isIdle && isSurelyNoServer(turn.state, worker)) takeUpNoServer(turn, worker)
    else watchNoServer(turn, worker)
  }),

  'thread-port-taken': ofWorker(tellThreadPort),

  'worker-probed': ofWorker(takeNoteOfProbe),

  'worker-ready': ofWorker((turn, worker, report) => {
    listenLate(turn, worker)
    // One that is on its way out may still become ready.
    if (worker.state !== 'starting' || worker.slot === null) return
    if (missingAddresses(turn, worker).length > 0) awaitAddresses(turn, worker, { probe: report.probe, warmupFailed: report.warmupFailed })
    else takeUp(turn, worker, report)
  }),

  'worker-drained': ofWorker((turn, worker) => {
    worker.drainEnd = 'drained'
    if (worker.state === 'draining') terminate(turn, worker)
  }),

  'worker-silent': ofWorker((turn, worker, { message }) => {
    // One that is on its way in or out has a deadline of its own.
    if (!['standby', 'ready'].includes(worker.state) || turn.state.phase === 'stopping') return
    const role = roleOf(turn, worker)
    if (role === 'standby') killHungStandby(turn, worker, message)
    else becomeUnresponsive(turn, worker, message)
    leaveSlot(turn, worker)
    lose(turn, worker, role, { cause: 'hung', reason: message })
  }),

  'worker-answered': ofWorker(becomeResponsive),

  'stack-captured': ofWorker(killStuck),

  'worker-due': ofWorker((turn, worker, reason) => {
    if (roleOf(turn, worker) !== 'standby') return becomeDue(turn, worker, reason)
    endStandby(turn, worker, { cause: reason.cause, actor: 'system', rollout: null, message: reason.message })
    loseStandby(turn, worker, reason.cause)
  }),

  'worker-crashing': ofWorker((turn, worker, error) => {
    const role = roleOf(turn, worker)
    const loss = beginCrash(turn, worker, error)
    if (loss) lose(turn, worker, role, loss)
  }),

  'worker-exited': ofWorker((turn, worker, exit) => {
    const role = roleOf(turn, worker)
    const cause = recordEnd(turn, worker, exit)
    const reason = String(turn.events.at(-1)?.message)
    lose(turn, worker, role, { cause, reason, code: exit.code })
    oldWorkerGone(turn, worker, { cause, reason })
    recycledGone(turn, worker)
  }),

  'deadline-passed' (/** @type {Turn} */ turn, /** @type {{ deadline: import('./state.js').DeadlineKind, id: number, starvedMs?: number }} */ { deadline, id, starvedMs = 0 }) {
    if (deadline === 'retry') return retry(turn, id)
    if (deadline === 'upgrade') return upgradeTooSlow(turn)
    if (deadline === 'recycle') return endRecycling(turn)
    // Whoever has waited for it is recycled as the state is settled.
    if (deadline === 'recycle-pace') return
    if (deadline === 'standby') return retryStandby(turn)
    if (deadline === 'progress') return noProgress(turn)
    if (deadline === 'guard') return turn.state.guard?.isTripped ? undefined : liftGuard(turn)
    if (deadline === 'canary' || deadline === 'judge') return askJudge(turn, deadline)
    const worker = turn.state.workers[id]
    // A deadline that passed in the very turn in which it was met.
    if (worker) DEADLINES[deadline](turn, worker, starvedMs)
  }
}

/** @type {Record<Exclude<import('./state.js').DeadlineKind, 'retry' | 'upgrade' | 'recycle' | 'recycle-pace' | 'standby' | 'progress' | 'guard' | 'canary' | 'judge'>, (turn: Turn, worker: Worker, starvedMs: number) => void>} */
const DEADLINES = {
  ready (turn, worker, starvedMs) {
    if (worker.state !== 'starting') return
    if (extendBoot(turn, worker, starvedMs)) return roleOf(turn, worker) === 'candidate' && turn.state.rollout ? noteProgress(turn) : undefined
    if (worker.slot === null) return neverHeld(turn, worker)
    if (worker.report) return DEADLINES.addresses(turn, worker, 0)
    if (isNoServer(turn.state, worker)) takeUpNoServer(turn, worker)
    else failBoot(turn, worker, notReadyInTime(worker, turn.state.options.ready))
  },
  alive (turn, worker) {
    if (worker.state === 'starting' && isNoServer(turn.state, worker)) takeUpNoServer(turn, worker)
  },
  addresses (turn, worker) {
    if (worker.state !== 'starting') return
    const message = listensElsewhere(turn, worker)
    releaseAddresses(turn, worker)
    failBoot(turn, worker, message)
  },
  drain (turn, worker) {
    if (worker.state !== 'draining') return
    worker.drainEnd = 'deadline'
    terminate(turn, worker)
  },
  term (turn, worker) {
    if (worker.state === 'stopping') killLate(turn, worker)
  },
  steady (turn, worker) {
    const slot = turn.slot(worker.slot)
    if (slot?.serving === worker.id) resetBackoff(turn, slot)
  },
  stack: killStuck,
  soak: soaked,
  age (turn, worker) {
    const { maxAgeMs } = /** @type {{ maxAgeMs: number }} */ (turn.state.options.recycle)
    becomeDue(turn, worker, { cause: 'max-age', message: `${nameOf(worker)} reached its maximum age (option recycle.maxAgeMs: ${maxAgeMs})` })
  }
}

/** @param {PoolState} state @param {import('./state.js').Input} input @returns {import('./state.js').Refusal | null} */
function refuse (state, input) {
  if (!OPERATOR_INPUTS.includes(input.type)) return null
  if (state.phase === 'stopping' || state.phase === 'stopped') return { code: 'stopping', message: 'the master is stopping' }
  if (input.type === 'stop') return null
  if (state.awaitsHook && !JOINING_INPUTS.includes(input.type)) return { code: 'starting', message: 'hooks.beforeStart is running, and no worker starts before it has passed' }
  if (input.type === 'kill-worker') return state.workers[input.worker] ? null : { code: 'not-found', message: `no worker ${input.worker} is alive` }
  if (input.type in STEERING) return refuseSteering(state, /** @type {any} */ (input))
  if (state.rollout && !JOINING_INPUTS.includes(input.type)) {
    const { id, kind } = state.rollout
    return { code: 'rollout-running', message: `rollout ${id} (${kind}) is running`, details: { rollout: id } }
  }
  const conflict = orderRefusal(state, input)
  if (conflict) return conflict
  if (state.upgrade) return { code: 'upgrade-running', message: 'an upgrade is running' }
  if (input.type === 'upgrade' && state.phase !== 'running') return { code: 'starting', message: 'the workers are still starting' }
  if (input.type === 'restart-worker' && !isServing(state, input.worker)) {
    return { code: 'not-found', message: `worker ${input.worker} serves no slot` }
  }
  return driftRefusal(state, input)
}

/** @param {PoolState} state @param {import('./state.js').Input} input @returns {import('./state.js').Refusal | null} of what has two workers of a slot live side by side */
function orderRefusal (state, input) {
  if (input.type === 'rollout' && input.kind === 'deploy' && contradicts(state.options.rollout, input.strategy)) {
    return { code: 'not-possible', message: 'canary: expected none with rollout.order "stop-first", as a canary serves beside all old workers' }
  }
  if (input.type !== 'upgrade' || !stopsFirst(state)) return null
  return { code: 'not-possible', message: 'an upgrade in place starts the next master\'s workers beside the old ones, and rollout.order is "stop-first": restart the master instead' }
}

/** Those for which no rollout has to end. */
const JOINING_INPUTS = ['scale', 'configure']
const OPERATOR_INPUTS = [...JOINING_INPUTS, 'rollout', 'restart-worker', 'kill-worker', 'upgrade', 'stop', ...Object.keys(STEERING)]

/** @param {PoolState} state @param {number} id */
function isServing (state, id) {
  return state.slots.some(({ serving }) => serving === id)
}

/** @param {Turn} turn @param {number} size @param {{ actor: string, finished?: Record<number, import('./state.js').Finished> }} how `finished`: slots whose work was done under the master before */
function resize (turn, size, { actor, finished = {} }) {
  const { state } = turn
  const { rollout } = state
  const removed = state.slots.splice(size)
  const added = []
  for (const slot of removed) {
    delete state.addresses[slot.number]
    cancelRetry(turn, slot)
    if (state.recycling?.slot === slot.number) endRecycling(turn)
    if (slot.candidate !== null) drain(turn, state.workers[slot.candidate], { cause: 'scale-down', actor, rollout: null })
    if (slot.serving !== null) drain(turn, state.workers[slot.serving], { cause: 'scale-down', actor, rollout: null })
  }
  while (state.slots.length < size) {
    // What a rollback leaves is not to be started once more; a new release first has to show that it works.
    const isGoingTo = rollout?.kind === 'rollback' && phaseOf(rollout) !== 'aborting'
    const slot = createSlot(state.slots.length + 1, (isGoingTo && rollout.to) || state.release.id)
    state.slots.push(slot)
    added.push(slot.number)
    if (finished[slot.number] && endsByItself(state.options.restart)) slot.finished = finished[slot.number]
    else forkServing(turn, slot)
  }
  resized(turn, { added, removed: removed.map(({ number }) => number) })
}

/** @param {Turn} turn @param {Worker} worker it is ready, and listens where it has to @param {{ probe?: string, warmupFailed?: string | null, boot?: import('./boot-room.js').Boot | null }} report */
function takeUp (turn, worker, report) {
  noteBoot(turn, worker, report.boot)
  becomeReady(turn, worker, report.probe, report.boot)
  keepAddresses(turn, worker)
  tellWarmUp(turn, worker, report)
  watchAge(turn, worker)
  const slot = turn.slot(worker.slot)
  if (slot?.candidate !== worker.id) return
  if (isRecycled(turn, slot)) candidateTakesOver(turn, slot)
  else candidateReady(turn, worker)
}

/** @param {Turn} turn @param {Worker} worker that does not listen, and is not meant to */
function takeUpNoServer (turn, worker) {
  beNoServer(turn, worker)
  takeUp(turn, worker, {})
}

/** @param {Turn} turn @param {Worker} worker @param {string} message why it is not ready */
function failBoot (turn, worker, message) {
  const role = roleOf(turn, worker)
  drain(turn, worker, { cause: 'boot-failure', actor: 'system', rollout: turn.state.rollout?.id ?? null, message })
  lose(turn, worker, role, { cause: 'boot-failure', reason: message })
}

/** @param {Turn} turn @param {Worker} worker @returns {Role} what its slot has it for, or that it stands by */
function roleOf (turn, worker) {
  if (worker.slot === null) return listStandbys(turn.state).includes(worker) ? 'standby' : null
  const slot = turn.slot(worker.slot)
  if (slot?.serving === worker.id) return 'serving'
  return slot?.candidate === worker.id ? 'candidate' : null
}

/** @param {Turn} turn @param {Worker} worker @param {Role} role @param {{ cause: string, reason: string, code?: number | null }} end */
function lose (turn, worker, role, { cause, reason, code = null }) {
  if (role === 'standby') return loseStandby(turn, worker, cause)
  const slot = turn.slot(worker.slot)
  if (!slot || role === null || turn.state.phase === 'stopping') return
  if (role === 'candidate') return loseCandidate(turn, worker, slot, { cause, reason, code })
  servingLost(turn, worker, cause, reason)
  if (endsSlot(turn, cause)) {
    if (turn.state.recycling?.slot === slot.number) callOff(turn, { cause: turn.state.recycling.cause, actor: 'system' })
    return finishSlot(turn, slot, worker, { cause, code })
  }
  if (promoteRecycled(turn, slot, worker, cause)) return
  if (cause === 'operator') forkServing(turn, slot)
  else replace(turn, slot, worker, cause)
}

/** @param {Turn} turn @param {Worker} worker @param {import('./state.js').Slot} slot @param {{ cause: string, reason: string, code: number | null }} end */
function loseCandidate (turn, worker, slot, { cause, reason, code }) {
  if (turn.state.recycling) return recyclingFailed(turn, reason)
  if (cause !== 'finished') return candidateLost(turn, worker, cause, reason)
  finishSlot(turn, slot, worker, { cause, code })
  candidateFinished(turn, worker)
}

/** @param {Turn} turn @param {number} number */
function retry (turn, number) {
  const slot = turn.slot(number)
  if (slot && slot.retryAt !== null) forkServing(turn, slot)
}

/** @param {Turn} turn what follows from the state, whatever the input was */
function settle (turn) {
  const { state } = turn
  advance(turn)
  if (state.phase === 'starting' && state.slots.every((slot) => isReady(state, slot))) {
    state.phase = 'running'
  }
  if (state.phase !== 'stopping') drainOrphans(turn, (orphan) => isReplaced(turn, orphan))
  drainReplaced(turn)
  rollBackGuarded(turn)
  fillVacant(turn)
  recycleNext(turn)
  keepStandbys(turn)
  if (state.phase === 'stopping' && Object.keys(state.workers).length === 0 && !state.upgrade) {
    state.phase = 'stopped'
    turn.order({ type: 'finish' })
  }
}

/** @param {Turn} turn @param {Worker} orphan @returns {boolean} whether it is not needed any more, or is the next one to make way for its replacement */
function isReplaced (turn, { slot: number, state: its }) {
  const { state } = turn
  const slot = turn.slot(number)
  if (state.phase === 'running' || isReady(state, slot)) return true
  if (!stopsFirst(state) || !slot || !isVacant(slot) || its !== 'ready') return false
  const waiting = state.slots.filter((each) => !isReady(state, each))
  // One slot after the other.
  return waiting[0] === slot && waiting.every((each) => isVacant(each) && isServedByOrphan(state, each))
}

/** @param {PoolState} state @param {import('./state.js').Slot} slot */
function isServedByOrphan ({ workers }, { number }) {
  return Object.values(workers).some(({ slot, orphan, state }) => slot === number && orphan !== null && state === 'ready')
}

/** @param {Turn} turn what could not be started beside what was there before, see rollout.order */
function fillVacant (turn) {
  const { state } = turn
  if (state.phase !== 'starting' && state.phase !== 'running') return
  for (const slot of state.slots) if (isVacant(slot) && !isClaimed(state, slot) && !(stopsFirst(state) && isOccupied(state, slot.number))) forkServing(turn, slot)
}

/** @param {Turn} turn the release that was deployed last has begun to crash again and again */
function rollBackGuarded (turn) {
  const { guard, rollout, upgrade, phase } = turn.state
  if (!guard?.isTripped || rollout || upgrade || !['starting', 'running'].includes(phase)) return
  const note = `${guard.release} crashes again and again after rollout ${guard.rollout}`
  callOff(turn, { cause: 'rollback', actor: 'guard' })
  startRollout(turn, { kind: 'rollback', source: { release: guard.from }, note, actor: 'guard' })
}

/** @param {PoolState} state @returns {boolean} whether every slot is served, and nobody is to be replaced */
function isSettled (state) {
  return state.phase === 'running' && !state.rollout && !state.recycling && !state.upgrade && state.slots.every((slot) => isReady(state, slot))
}

/** @param {PoolState} state @param {import('./state.js').Slot | undefined} slot @returns {boolean} whether it is served, or has nothing left to do */
function isReady ({ workers }, slot) {
  return slot !== undefined && (isFinished(slot) || (slot.serving !== null && workers[slot.serving].state === 'ready'))
}

/** @param {(turn: Turn, worker: Worker, input: any) => void} handler */
function ofWorker (handler) {
  return (/** @type {Turn} */ turn, /** @type {{ type: string, worker: number }} */ input) => {
    const worker = turn.state.workers[input.worker]
    if (worker) return handler(turn, worker, input)
    turn.tell('unexpected', { worker: input.worker, message: `${input.type} of worker ${input.worker}, which is not alive` })
  }
}
