import { addAddress, awaitAddresses, isOfUdp, keepAddresses, listensElsewhere, missingAddresses, opensLate,
  releaseAddresses, removeAddress } from './addresses.ts'
import { extendBoot, noteBoot, type Boot } from './boot-room.ts'
import { isSettled, settleState } from './consequences.ts'
import { beginCrash, beginOwnEnd } from './crashing.ts'
import { becomeResponsive, becomeUnresponsive, killHung, killStuck } from './hang.ts'
import { heapTooLarge, writeHeap } from './last-heap.ts'
import { endConnections, endConnectionsNow, endOfKeeping, lookAtDrain, noteHolds } from './old-workers.ts'
import { adoptOrphan, drainOrphans } from './orphans.ts'
import { becomeDue, callOff, candidateTakesOver, endRecycling, forgetDue, isRecycled, recycledGone, watchAge,
  watchAges } from './recycling.ts'
import { refusalOf } from './refusals.ts'
import { onWorkerLost, roleOf } from './role.ts'
import { endsByItself } from './restart-policy.ts'
import { askAnswers, goOnGuarding, liftGuard, takeAnswers } from './rollout/guard.ts'
import { beNoServer, isNoServer, isSurelyNoServer, listenLate, notReadyInTime, takeNoteOfProbe, tellThreadPort,
  tellWarmUp, watchNoServer } from './readiness.ts'
import { candidateReady, cutShort, hookEnded, noProgress, oldWorkerGone, releaseNotPrepared, releasePrepared,
  resizeRollout, endSoak, startRollout, takeTurn, waitForTurn } from './rollout/rollout.ts'
import { becomeStandby, endStandby, endStandbys, loseStandby, standbyTooSlow, readSlot,
  retryStandby } from './standby.ts'
import { cancelRetry, createSlot } from './slot.ts'
import { noteProgress } from './rollout/record.ts'
import { phaseOf } from './rollout/stages.ts'
import { STEERING } from './rollout/steering.ts'
import { askJudge, takeVerdict } from './rollout/trial.ts'
import { beginTransition, type Transition } from './transition.ts'
import { cancelUpgrade, UPGRADE_HANDLERS, upgradeTooSlow } from './upgrade.ts'
import { becomeReady, recordEnd, clearDeadlines, drainWorker, drainListening, resetBackoff, forkServing, killLate,
  leaveSlot, nameOf, terminateWorker } from './worker.ts'
import type { Command, DeadlineKind, Fact, Finished, Input, Inputs, PoolState, Refusal, Worker } from './state.ts'
import type { WorkerDeadline } from './worker.ts'

/** As many reasons why a program does not share its sockets are kept of each worker. */
const MAX_SOCKET_NOTES = 3

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
    if (isOfAll(deadline)) return DEADLINES_OF_ALL[deadline](transition, id)
    const worker = transition.state.workers[id]
    // A deadline may pass just as it is met.
    if (worker) DEADLINES_OF_WORKERS[deadline](transition, worker, starvedMs)
  }
}

/** `id`: of a slot, for `retry` */
const DEADLINES_OF_ALL: Record<Exclude<DeadlineKind, WorkerDeadline>, (transition: Transition, id: number) => void> = {
  retry: retrySlot,
  upgrade: upgradeTooSlow,
  recycle: endRecycling,
  // settleState recycles the workers that waited for it.
  'recycle-pace' () {},
  standby: retryStandby,
  progress: noProgress,
  answers: askAnswers,
  guard (transition) {
    if (!transition.state.guard?.isTripped) liftGuard(transition)
  },
  canary: (transition) => askJudge(transition, 'canary'),
  judge: (transition) => askJudge(transition, 'judge')
}

function isOfAll (deadline: DeadlineKind): deadline is keyof typeof DEADLINES_OF_ALL {
  return Object.hasOwn(DEADLINES_OF_ALL, deadline)
}

const DEADLINES_OF_WORKERS: Record<WorkerDeadline,
  (transition: Transition, worker: Worker, starvedMs: number) => void> = { ready (transition, worker, starvedMs) {
    if (worker.state !== 'starting') return
    if (extendBoot(transition, worker, starvedMs)) {
      if (roleOf(transition, worker) === 'candidate' && transition.state.rollout) noteProgress(transition)
      return
    }
    if (worker.slot === null) return standbyTooSlow(transition, worker)
    if (worker.report) return endWaitForAddresses(transition, worker, worker.report)
    if (isNoServer(transition.state, worker)) takeUpNoServer(transition, worker)
    else failBoot(transition, worker, notReadyInTime(worker, transition.state.options.ready))
  }, alive (transition, worker) {
    if (worker.state === 'starting' && isNoServer(transition.state, worker)) takeUpNoServer(transition, worker)
  }, addresses (transition, worker) {
    if (worker.state === 'starting' && missingAddresses(transition, worker, { mayBeLate: false }).length > 0)
      failForAddresses(transition, worker)
  }, drain: lookAtDrain, 'long-lived': endOfKeeping, term (transition, worker) {
    if (worker.state === 'stopping') killLate(transition, worker)
  }, steady (transition, worker) {
    const slot = transition.slot(worker.slot)
    if (slot?.serving === worker.id) resetBackoff(transition, slot)
  }, stack: killStuck, soak: endSoak, age (transition, worker) {
    const { maxAgeMs } = transition.state.options.recycle ?? {}
    becomeDue(transition, worker, { cause: 'max-age',
      message: `${nameOf(worker)} reached its maximum age (option recycle.maxAgeMs: ${maxAgeMs})` })
  } }

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

function retrySlot (transition: Transition, number: number) {
  const slot = transition.slot(number)
  if (slot && slot.retryAt !== null) forkServing(transition, slot)
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
