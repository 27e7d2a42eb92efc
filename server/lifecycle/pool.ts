import { addAddress, awaitAddresses, isOfUdp, keepAddresses, listensElsewhere, missingAddresses, opensLate,
  releaseAddresses, removeAddress } from './addresses.ts'
import { extendBoot, noteBoot, type Boot } from './boot-room.ts'
import { beginCrash, beginOwnEnd } from './crashing.ts'
import { driftRefusal, whyNoReturn } from './drift.ts'
import { endsSlot, finishSlot, isFinished } from './finished.ts'
import { becomeResponsive, becomeUnresponsive, drainReplaced, killHung, killStuck } from './hang.ts'
import { endHeaps, heapTooLarge, writeHeap } from './last-heap.ts'
import { endConnections, endConnectionsNow, endOfKeeping, endSurplus, lookAtDrain, noteHolds } from './old-workers.ts'
import { adoptOrphan, drainOrphans } from './orphans.ts'
import { becomeDue, callOff, candidateTakesOver, endRecycling, forgetDue, promoteRecycled, isRecycled, recycledGone,
  recycleNext, recyclingFailed, watchAge, watchAges } from './recycling.ts'
import { endsByItself } from './restart-policy.ts'
import { askAnswers, goOnGuarding, liftGuard, takeAnswers } from './rollout/guard.ts'
import { listStandbys } from './promotion.ts'
import { beNoServer, isNoServer, isSurelyNoServer, listenLate, notReadyInTime, takeNoteOfProbe, tellThreadPort,
  tellWarmUp, watchNoServer } from './readiness.ts'
import { advanceRollout, candidateFinished, candidateLost, candidateReady, cutShort, hookEnded, noProgress,
  oldWorkerGone, releaseNotPrepared, releasePrepared, resizeRollout, servingLost, endSoak, startRollout, takeTurn,
  waitForTurn } from './rollout/rollout.ts'
import { becomeStandby, endStandby, endStandbys, keepStandbys, loseStandby, standbyTooSlow, readSlot,
  retryStandby } from './standby.ts'
import { createSlot } from './state.ts'
import { noteProgress } from './rollout/record.ts'
import { phaseOf } from './rollout/stages.ts'
import { refuseSteering, STEERING } from './rollout/steering.ts'
import { contradictsOrder } from './rollout/strategy.ts'
import { askJudge, takeVerdict } from './rollout/trial.ts'
import { beginTransition, type Transition } from './transition.ts'
import { cancelUpgrade, UPGRADE_HANDLERS, upgradeTooSlow } from './upgrade.ts'
import { isClaimed, isOccupied, isVacant, stopsFirst } from './vacancy.ts'
import { becomeReady, recordEnd, cancelRetry, clearDeadlines, drainWorker, drainListening, resetBackoff, forkServing,
  killLate, leaveSlot, nameOf, replaceWorker, terminateWorker } from './worker.ts'
import type { Command, Fact, Finished, Input, Inputs, PoolState, Refusal, Slot, Worker } from './state.ts'
import type { WorkerDeadline } from './worker.ts'

/** As many reasons why a program does not share its sockets are kept of each worker. */
const MAX_SOCKET_NOTES = 3

type Role = 'serving' | 'candidate' | 'standby' | null

/**
 * What should happen: pure, so that every schedule of events can be tried in a test. An input that fits no transition
 * becomes an `unexpected` event, never a throw. `state`: never changed. Returns `refusal`: the input was an operator's,
 * and is not possible now; then nothing else has changed.
 */
export function reduce (state: PoolState,
  input: Input): { state: PoolState, commands: Command[], events: Fact[], refusal: Refusal | null }
{
  const refusal = refusalOf(state, input)
  if (refusal) return { state, commands: [], events: [], refusal }

  const wasSettled = isSettled(state)
  const transition = beginTransition(state, input)
  passToHandler(transition, input.type, input)
  settleState(transition)
  // By now every worker has asked for its sockets.
  if (!wasSettled && isSettled(transition.state)) transition.command({ type: 'expire-unused-sockets' })
  return { state: transition.state, commands: transition.commands, events: transition.events, refusal: null }
}

function passToHandler<Type extends keyof Inputs> (transition: Transition, type: Type, input: Inputs[Type]) {
  HANDLERS[type](transition, input)
}

const HANDLERS: { [Type in keyof Inputs]: (transition: Transition, input: Inputs[Type]) => void } = {
  start (transition, { workers, guard, orphans = [], finished, hasHook = false, awaitsTurn = null, actor }) {
    const { state } = transition
    state.phase = 'starting'
    state.awaitsTurn = awaitsTurn
    goOnGuarding(transition, guard)
    for (const orphan of orphans) adoptOrphan(transition, orphan)
    state.hasBeenReady ||= orphans.some(({ readyAt }) => readyAt !== null)
    if (hasHook) runStartHook(transition)
    resizePool(transition, workers, { actor, finished })
  },

  // settleState starts the workers that waited for it.
  'start-hook-passed' ({ state }) {
    state.awaitsHook = false
  },

  'turn-came' (transition, { release, hasHook = false }) {
    const { state } = transition
    state.awaitsTurn = null
    if (release?.id === state.release.id) {
      state.release = release
      state.releases[release.id] = release
    }
    if (hasHook && state.phase === 'starting') runStartHook(transition)
  },

  scale (transition, { workers, actor }) {
    const from = transition.state.slots.length
    if (from === workers) return
    transition.emit('scale.changed', { actor, message: `from ${from} to ${workers} workers`,
      detail: { from, to: workers } })
    resizePool(transition, workers, { actor })
  },

  configure (transition, { options }) {
    const before = transition.state.options.recycle
    transition.state.options = options
    if (before?.maxRssBytes !== options.recycle?.maxRssBytes) forgetDue(transition, 'memory-limit')
    if (before?.maxRequests !== options.recycle?.maxRequests) forgetDue(transition, 'max-requests')
    if (before?.maxAgeMs === options.recycle?.maxAgeMs) return
    forgetDue(transition, 'max-age')
    watchAges(transition)
  },

  rollout (transition, input) {
    callOff(transition, { cause: input.kind, actor: input.actor })
    startRollout(transition, input)
  },

  'rollout-waits': waitForTurn,

  'rollout-turn-came': takeTurn,

  'release-prepared': releasePrepared,

  'release-not-prepared': releaseNotPrepared,

  'hook-ended': hookEnded,

  judged: takeVerdict,

  'answers-counted': takeAnswers,

  ...STEERING,

  'restart-worker' (transition, { worker, actor, client }) {
    callOff(transition, { cause: 'restart', actor })
    startRollout(transition, { kind: 'restart', slots: [Number(transition.state.workers[worker].slot)], actor, client })
  },

  // It kills at once, whatever else is going on: nothing else helps against such a worker.
  'kill-worker' (transition, { worker: id, actor }) {
    const worker = transition.state.workers[id]
    const role = roleOf(transition, worker)
    leaveSlot(transition, worker)
    worker.state = 'stopping'
    worker.intent = { cause: 'operator', actor, rollout: null }
    transition.emitForWorker('worker.killed', worker, { cause: 'operator', actor })
    transition.command({ type: 'kill', worker: id })
    clearDeadlines(transition, id)
    onWorkerLost(transition, worker, role, { cause: 'operator', reason: `${nameOf(worker)} was killed by an operator` })
  },

  'end-connections': endConnectionsNow,

  ...UPGRADE_HANDLERS,

  upgrade (transition, input) {
    callOff(transition, { cause: 'upgrade', actor: input.actor })
    UPGRADE_HANDLERS.upgrade(transition, input)
  },

  'take-over' (transition, { orphans, nextWorker, guard }) {
    const { state } = transition
    goOnGuarding(transition, guard)
    state.nextWorker = Math.max(state.nextWorker, nextWorker)
    for (const orphan of orphans) adoptOrphan(transition, orphan)
  },

  stop (transition, { actor, cause = 'shutdown' }) {
    const { state } = transition
    state.phase = 'stopping'
    endRecycling(transition)
    cutShort(transition, 'the master is stopping')
    cancelUpgrade(transition, 'the master was told to stop')
    transition.command({ type: 'close-sockets' })
    for (const slot of state.slots) cancelRetry(transition, slot)
    endStandbys(transition, { cause, actor, rollout: null })
    for (const worker of Object.values(state.workers)) {
      if (cause === 'shutdown') endConnections(transition, worker, { message: 'all workers stop', actor, isLast: true })
      drainWorker(transition, worker, { cause, actor, rollout: null })
    }
  },

  'kill-all' (transition, { reason }) {
    for (const worker of Object.values(transition.state.workers)) {
      worker.state = 'stopping'
      worker.intent ??= { cause: 'shutdown', actor: 'system', rollout: null }
      worker.killedFor = reason
      transition.command({ type: 'kill', worker: worker.id })
    }
  },

  'address-blocked' (transition) {
    drainOrphans(transition, () => true)
  },

  'worker-forked': ofWorker((transition, worker, { pid }) => {
    worker.pid = pid
    transition.emitForWorker('worker.forked', worker)
  }),

  'worker-online': ofWorker((transition, worker) => {
    transition.emitForWorker('worker.online', worker)
  }),

  'worker-held': ofWorker(becomeStandby),

  'worker-read-slot': ofWorker(readSlot),

  'worker-listening': ofWorker((transition, worker, address) => {
    addAddress(transition, worker, address)
    if (!isOfUdp(address.url)) transition.state.hasListened = true
    drainListening(transition, worker)
    // A worker that starts for its slot meanwhile has to listen there too.
    if (worker.isNoServer || opensLate(transition, worker)) keepAddresses(transition, worker)
    if (worker.report && missingAddresses(transition, worker).length === 0) markReady(transition, worker, worker.report)
  }),

  'worker-closed': ofWorker((transition, worker, { url }) => {
    removeAddress(worker, url)
    if (worker.isNoServer || opensLate(transition, worker)) keepAddresses(transition, worker)
  }),

  'worker-active': ofWorker((transition, worker, { resources, isIdle = false }) => {
    if (worker.state !== 'starting') return
    worker.resources = resources
    if (isIdle && isSurelyNoServer(transition.state, worker)) takeUpNoServer(transition, worker)
    else watchNoServer(transition, worker)
  }),

  'thread-port-taken': ofWorker(tellThreadPort),

  'worker-probed': ofWorker(takeNoteOfProbe),

  'worker-socket-note': ofWorker((_transition, worker, { text }) => {
    worker.socketNotes = [...new Set([...worker.socketNotes ?? [], text])].slice(0, MAX_SOCKET_NOTES)
  }),
  'worker-status-text': ofWorker((_transition, worker, { text }) => {
    worker.statusText = text
  }),

  'worker-ready': ofWorker((transition, worker, report) => {
    listenLate(transition, worker)
    // A worker on its way out may still report ready.
    if (worker.state !== 'starting' || worker.slot === null) return
    if (missingAddresses(transition, worker).length > 0)
      awaitAddresses(transition, worker, { probe: report.probe, warmupFailed: report.warmupFailed })
    else markReady(transition, worker, report)
  }),

  'worker-holds': ofWorker((transition, worker, { holds }) => noteHolds(transition, worker, holds)),

  'worker-drained': ofWorker((transition, worker, { heapBytes = 0 }) => {
    worker.drainEnd = 'drained'
    if (worker.state === 'draining' && !writeHeap(transition, worker, heapBytes)) terminateWorker(transition, worker)
  }),

  'heap-too-large': ofWorker(heapTooLarge),

  'worker-silent': ofWorker((transition, worker, { message }) => {
    if (worker.keptUntil && worker.state === 'draining') return killHung(transition, worker, message)
    // A worker that starts or drains has a deadline of its own.
    if (!['standby', 'ready'].includes(worker.state) || transition.state.phase === 'stopping') return
    const role = roleOf(transition, worker)
    if (role === 'standby') killHung(transition, worker, message)
    else becomeUnresponsive(transition, worker, message)
    leaveSlot(transition, worker)
    onWorkerLost(transition, worker, role, { cause: 'hung', reason: message })
  }),

  'worker-answered': ofWorker(becomeResponsive),

  'stack-captured': ofWorker(killStuck),

  'worker-due': ofWorker((transition, worker, reason) => {
    if (worker.state === 'draining' && reason.cause === 'memory-limit') {
      // One that may not be kept ends what it has anyway.
      if (worker.drain?.limits.longLivedMs) endConnections(transition, worker, { message: reason.message })
      return
    }
    if (roleOf(transition, worker) !== 'standby') return becomeDue(transition, worker, reason)
    endStandby(transition, worker, { cause: reason.cause, actor: 'system', rollout: null, message: reason.message })
    loseStandby(transition, worker, reason.cause)
  }),

  'worker-crashing': ofWorker((transition, worker, error) => {
    const role = roleOf(transition, worker)
    const loss = beginCrash(transition, worker, error)
    if (loss) onWorkerLost(transition, worker, role, loss)
  }),

  'worker-stopping': ofWorker((transition, worker) => {
    const role = roleOf(transition, worker)
    const loss = beginOwnEnd(transition, worker)
    if (loss) onWorkerLost(transition, worker, role, loss)
  }),

  'worker-exited': ofWorker((transition, worker, exit) => {
    const role = roleOf(transition, worker)
    const cause = recordEnd(transition, worker, exit)
    const reason = String(transition.events.at(-1)?.message)
    onWorkerLost(transition, worker, role, { cause, reason, code: exit.code })
    oldWorkerGone(transition, worker, { cause, reason })
    recycledGone(transition, worker)
  }),

  'deadline-passed' (transition, { deadline, id, starvedMs = 0 }) {
    if (deadline === 'retry') return retrySlot(transition, id)
    if (deadline === 'upgrade') return upgradeTooSlow(transition)
    if (deadline === 'recycle') return endRecycling(transition)
    // settleState recycles the workers that waited for it.
    if (deadline === 'recycle-pace') return
    if (deadline === 'standby') return retryStandby(transition)
    if (deadline === 'progress') return noProgress(transition)
    if (deadline === 'answers') return askAnswers(transition)
    if (deadline === 'guard') return transition.state.guard?.isTripped ? undefined : liftGuard(transition)
    if (deadline === 'canary' || deadline === 'judge') return askJudge(transition, deadline)
    const worker = transition.state.workers[id]
    // A deadline may pass just as it is met.
    if (worker) DEADLINES[deadline](transition, worker, starvedMs)
  }
}

const DEADLINES: Record<WorkerDeadline, (transition: Transition, worker: Worker, starvedMs: number) => void> = {
  ready (transition, worker, starvedMs) {
    if (worker.state !== 'starting') return
    if (extendBoot(transition, worker, starvedMs)) {
      if (roleOf(transition, worker) === 'candidate' && transition.state.rollout) noteProgress(transition)
      return
    }
    if (worker.slot === null) return standbyTooSlow(transition, worker)
    if (worker.report) return endWaitForAddresses(transition, worker, worker.report)
    if (isNoServer(transition.state, worker)) takeUpNoServer(transition, worker)
    else failBoot(transition, worker, notReadyInTime(worker, transition.state.options.ready))
  },
  alive (transition, worker) {
    if (worker.state === 'starting' && isNoServer(transition.state, worker)) takeUpNoServer(transition, worker)
  },
  addresses (transition, worker) {
    if (worker.state === 'starting' && missingAddresses(transition, worker, { mayBeLate: false }).length > 0)
      failForAddresses(transition, worker)
  },
  drain: lookAtDrain,
  'long-lived': endOfKeeping,
  term (transition, worker) {
    if (worker.state === 'stopping') killLate(transition, worker)
  },
  steady (transition, worker) {
    const slot = transition.slot(worker.slot)
    if (slot?.serving === worker.id) resetBackoff(transition, slot)
  },
  stack: killStuck,
  soak: endSoak,
  age (transition, worker) {
    const { maxAgeMs } = transition.state.options.recycle ?? {}
    becomeDue(transition, worker, { cause: 'max-age',
      message: `${nameOf(worker)} reached its maximum age (option recycle.maxAgeMs: ${maxAgeMs})` })
  }
}

/** `worker`: has had its time to get ready */
function endWaitForAddresses (transition: Transition, worker: Worker, report: NonNullable<Worker['report']>) {
  if (missingAddresses(transition, worker, { mayBeLate: false }).length > 0) return failForAddresses(transition, worker)
  const message = `nobody listens on ${
    missingAddresses(transition, worker).join(', ')
  } yet, as the worker before it did after it was ready`
  markReady(transition, worker, { ...report, probe: [report.probe, message].filter(Boolean).join('; ') })
}

function failForAddresses (transition: Transition, worker: Worker) {
  const message = listensElsewhere(transition, worker)
  releaseAddresses(transition, worker)
  failBoot(transition, worker, message)
}

function runStartHook ({ state, command }: Transition) {
  state.awaitsHook = true
  command({ type: 'run-start-hook', release: state.releases[state.release.id] })
}

function isSteering (input: Input): input is Inputs['pause'] {
  return input.type in STEERING
}

function refusalOf (state: PoolState, input: Input): Refusal | null {
  if (!OPERATOR_INPUTS.includes(input.type)) return null
  if (state.phase === 'stopping' || state.phase === 'stopped')
    return { code: 'stopping', message: 'the master is stopping' }
  if (input.type === 'stop') return null
  if (state.awaitsHook && !JOINING_INPUTS.includes(input.type)) {
    return { code: 'starting', message: 'hooks.beforeStart is running, and no worker starts before it has passed' }
  }
  if (state.awaitsTurn !== null && !JOINING_INPUTS.includes(input.type))
    return { code: 'starting', message: state.awaitsTurn }
  if (input.type === 'kill-worker')
    return state.workers[input.worker] ? null : { code: 'not-found', message: `no worker ${input.worker} is alive` }
  if (input.type === 'end-connections') return endRefusal(state, input.worker)
  if (isSteering(input)) return refuseSteering(state, input)
  if (state.rollout && !JOINING_INPUTS.includes(input.type)) {
    const { id, kind } = state.rollout
    return { code: 'rollout-running', message: `rollout ${id} (${kind}) is running`, details: { rollout: id } }
  }
  const conflict = orderRefusal(state, input)
  if (conflict) return conflict
  if (state.upgrade) return { code: 'upgrade-running', message: 'an upgrade is running' }
  if (input.type === 'upgrade' && state.phase !== 'running')
    return { code: 'starting', message: 'the workers are still starting' }
  if (input.type === 'restart-worker' && !isServing(state, input.worker)) {
    return { code: 'not-found', message: `worker ${input.worker} has already been replaced, or serves no slot yet` }
  }
  return driftRefusal(state, input)
}

/** Refuses what needs two workers of a slot side by side, where rollout.order forbids that. */
function orderRefusal (state: PoolState, input: Input): Refusal | null {
  if (input.type === 'rollout' && input.kind === 'deploy' && contradictsOrder(state.options.rollout, input.strategy)) {
    return { code: 'not-possible',
      message: 'canary: expected none with rollout.order "stop-first", as a canary serves beside all old workers' }
  }
  if (input.type !== 'upgrade' || !stopsFirst(state)) return null
  const why =
    'an upgrade in place starts the next master\'s workers beside the old ones, and rollout.order is "stop-first"'
  return { code: 'not-possible', message: `${why}: restart the master instead` }
}

function endRefusal ({ workers }: PoolState, id: number): Refusal | null {
  if (!workers[id]) return { code: 'not-found', message: `no worker ${id} is alive` }
  if (workers[id].state === 'draining') return null
  return { code: 'not-possible',
    message: `${nameOf(workers[id])} is ${
      workers[id].state
    }: expected one that was replaced and drains; restart it first` }
}

/** Inputs that are possible during a rollout. */
const JOINING_INPUTS = ['scale', 'configure']
const OPERATOR_INPUTS = [...JOINING_INPUTS, 'rollout', 'restart-worker', 'kill-worker', 'end-connections', 'upgrade',
  'stop', ...Object.keys(STEERING)]

function isServing (state: PoolState, id: number) {
  return state.slots.some(({ serving }) => serving === id)
}

/** `finished`: slots whose program ended under the master before */
function resizePool (transition: Transition, size: number,
  { actor, finished = {} }: { actor: string, finished?: Record<number, Finished> })
{
  const { state } = transition
  const { rollout } = state
  const removed = state.slots.splice(size)
  const added = []
  for (const slot of removed) {
    delete state.addresses[slot.number]
    cancelRetry(transition, slot)
    if (state.recycling?.slot === slot.number) endRecycling(transition)
    if (slot.candidate !== null)
      drainWorker(transition, state.workers[slot.candidate], { cause: 'scale-down', actor, rollout: null })
    if (slot.serving !== null)
      drainWorker(transition, state.workers[slot.serving], { cause: 'scale-down', actor, rollout: null })
  }
  while (state.slots.length < size) {
    // What a rollback leaves is not to be started once more; a new release first has to show that it works.
    const isGoingTo = rollout?.kind === 'rollback' && phaseOf(rollout) !== 'rolling-back'
    const slot = createSlot(state.slots.length + 1, (isGoingTo && rollout.to) || state.release.id)
    state.slots.push(slot)
    added.push(slot.number)
    if (finished[slot.number] && endsByItself(state.options.restart)) slot.finished = finished[slot.number]
    else forkServing(transition, slot)
  }
  resizeRollout(transition, { added, removed: removed.map(({ number }) => number) })
}

/** `worker`: is ready and listens where it has to */
function markReady (transition: Transition, worker: Worker,
  report: { probe?: string, warmupFailed?: string | null, boot?: Boot | null })
{
  noteBoot(transition, worker, report.boot)
  becomeReady(transition, worker, report.probe, report.boot)
  keepAddresses(transition, worker)
  tellWarmUp(transition, worker, report)
  watchAge(transition, worker)
  const slot = transition.slot(worker.slot)
  if (slot?.candidate !== worker.id) return
  if (isRecycled(transition, slot)) candidateTakesOver(transition, slot)
  else candidateReady(transition, worker)
}

/** `worker`: is not meant to listen */
function takeUpNoServer (transition: Transition, worker: Worker) {
  beNoServer(transition, worker)
  markReady(transition, worker, {})
}

/** `message`: why it is not ready */
function failBoot (transition: Transition, worker: Worker, message: string) {
  const role = roleOf(transition, worker)
  drainWorker(transition, worker, { cause: 'boot-failure', actor: 'system',
    rollout: transition.state.rollout?.id ?? null, message })
  onWorkerLost(transition, worker, role, { cause: 'boot-failure', reason: message })
}

/** @returns its role in its slot, or that it is on standby */
function roleOf (transition: Transition, worker: Worker): Role {
  if (worker.slot === null) return listStandbys(transition.state).includes(worker) ? 'standby' : null
  const slot = transition.slot(worker.slot)
  if (slot?.serving === worker.id) return 'serving'
  return slot?.candidate === worker.id ? 'candidate' : null
}

function onWorkerLost (transition: Transition, worker: Worker, role: Role,
  { cause, reason, code = null }: { cause: string, reason: string, code?: number | null })
{
  if (role === 'standby') return loseStandby(transition, worker, cause)
  const slot = transition.slot(worker.slot)
  if (!slot || role === null || transition.state.phase === 'stopping') return
  if (role === 'candidate') return loseCandidate(transition, worker, slot, { cause, reason, code })
  servingLost(transition, worker, cause, reason)
  if (endsSlot(transition, cause)) {
    if (transition.state.recycling?.slot === slot.number)
      callOff(transition, { cause: transition.state.recycling.cause, actor: 'system' })
    return finishSlot(transition, slot, worker, { cause, code })
  }
  if (promoteRecycled(transition, slot, worker, cause)) return
  if (cause === 'operator') forkServing(transition, slot)
  else replaceWorker(transition, slot, worker, cause)
}

function loseCandidate (transition: Transition, worker: Worker, slot: Slot,
  { cause, reason, code }: { cause: string, reason: string, code: number | null })
{
  if (transition.state.recycling) return recyclingFailed(transition, reason)
  if (cause !== 'finished') return candidateLost(transition, worker, cause, reason)
  finishSlot(transition, slot, worker, { cause, code })
  candidateFinished(transition, worker)
}

function retrySlot (transition: Transition, number: number) {
  const slot = transition.slot(number)
  if (slot && slot.retryAt !== null) forkServing(transition, slot)
}

/** Does what follows from the state, whatever the input was. */
function settleState (transition: Transition) {
  const { state } = transition
  // The guard acts only after the running rollout, which therefore waits for no other app any more.
  if (state.guard?.isTripped && state.rollout) takeTurn(transition, { rollout: state.rollout.id })
  advanceRollout(transition)
  if (state.phase === 'starting' && state.slots.every((slot) => isReady(state, slot))) {
    state.phase = 'running'
  }
  if (state.phase !== 'stopping') drainOrphans(transition, (orphan) => isReplaced(transition, orphan))
  drainReplaced(transition)
  endSurplus(transition)
  endHeaps(transition)
  rollBackGuarded(transition)
  fillVacant(transition)
  recycleNext(transition)
  keepStandbys(transition)
  if (state.phase === 'stopping' && Object.keys(state.workers).length === 0 && !state.upgrade) {
    state.phase = 'stopped'
    transition.command({ type: 'finish' })
  }
}

/** Tells whether it is no longer needed, or makes way for its replacement next */
function isReplaced (transition: Transition, { slot: number, state: its }: Worker): boolean {
  const { state } = transition
  const slot = transition.slot(number)
  if (state.phase === 'running' || isReady(state, slot)) return true
  if (!stopsFirst(state) || !slot || !isVacant(slot) || its !== 'ready') return false
  const waiting = state.slots.filter((each) => !isReady(state, each))
  // Orphans make way one slot after the other.
  return waiting[0] === slot && waiting.every((each) => isVacant(each) && isServedByOrphan(state, each))
}

function isServedByOrphan ({ workers }: PoolState, { number }: Slot) {
  return Object.values(workers).some(({ slot, orphan, state }) =>
    slot === number && orphan !== null && state === 'ready'
  )
}

/** Starts workers that had to wait for the old ones to go, see rollout.order. */
function fillVacant (transition: Transition) {
  const { state } = transition
  if (state.phase !== 'starting' && state.phase !== 'running') return
  const mayFill = (slot: Slot) => !isClaimed(state, slot) && !(stopsFirst(state) && isOccupied(state, slot.number))
  for (const slot of state.slots) if (isVacant(slot) && mayFill(slot)) forkServing(transition, slot)
}

/** Rolls back the release that was deployed last if it crash-loops or fails. */
function rollBackGuarded (transition: Transition) {
  const { guard, rollout, upgrade, phase } = transition.state
  if (!guard?.isTripped || rollout || upgrade || !['starting', 'running'].includes(phase)) return
  const note = guard.failing ?? `${guard.release} kept crashing after rollout ${guard.rollout}`
  const whyNot = whyNoReturn(transition, guard.from)
  if (whyNot !== null) {
    liftGuard(transition)
    return transition.emit('rollback.refused', { release: guard.release, actor: 'guard', rollout: guard.rollout,
      message: `${note}, but ${whyNot}`, detail: transition.drift[guard.from] })
  }
  callOff(transition, { cause: 'rollback', actor: 'guard' })
  startRollout(transition, { kind: 'rollback', source: { release: guard.from }, note, actor: 'guard',
    isTried: guard.failing !== undefined })
}

/** Tells whether every slot is served and no worker is to be replaced */
function isSettled (state: PoolState): boolean {
  return state.phase === 'running' && !state.rollout && !state.recycling && !state.upgrade &&
    state.slots.every((slot) => isReady(state, slot))
}

/** Tells whether it is served, or finished */
function isReady ({ workers }: PoolState, slot: Slot | undefined): boolean {
  return slot !== undefined && (isFinished(slot) || (slot.serving !== null && workers[slot.serving].state === 'ready'))
}

function ofWorker<Each extends Extract<Input, { worker: number }>> (
  handler: (transition: Transition, worker: Worker, input: Each) => void
): (transition: Transition, input: Each) => void {
  return (transition, input) => {
    const worker = transition.state.workers[input.worker]
    if (worker) return handler(transition, worker, input)
    transition.emit('unexpected', { worker: input.worker,
      message: `${input.type} of worker ${input.worker}, which is not alive` })
  }
}
