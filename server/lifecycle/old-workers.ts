import { countLongLived, heldWords } from '../words/held.ts'
import { maxOldWorkers } from './drain-limits.ts'
import { durationText } from './duration.ts'
import { recycledGone } from './recycling.ts'
import { oldWorkerGone } from './rollout/rollout.ts'
import { stopsFirst } from './slot.ts'
import { nameOf, terminateWorker } from './worker.ts'
import type { Transition } from './transition.ts'
import type { Holds, Worker } from './state.ts'

/**
 * A worker that reports every 2 s is silent after this long; one that is kept is watched by the watchdog too, which
 * knows how busy the machine is.
 */
const SILENT_AFTER_MS = 5000
const SILENT_WHILE_KEPT_MS = 30_000
/** A master that could not run for a moment has to hear first what was said meanwhile. */
const DOUBT_MS = 1000
const LOOK_AGAIN_MS = 5000

/**
 * What a draining worker still has. Once that is long-lived alone, nothing waits for its end any more. `holds`: by its
 * report.
 */
export function noteHolds (transition: Transition, worker: Worker, holds: Holds) {
  const { drain } = worker
  if (worker.state !== 'draining' || !drain) return
  worker.holds = { ...holds, at: transition.at }
  delete drain.isDoubted
  // A client may still send its next request on a connection that is idle.
  const mayBeAsked = transition.at - drain.at < drain.limits.idleGraceMs
  // Where it has sessions, there is always a next request.
  const isAnswering = holds.requests > 0 && holds.sessions === 0
  if (!isAnswering && !mayBeAsked && mayStay(worker)) keepWorker(transition, worker)
}

/** `worker`: has reached its drain deadline, or is to be looked at again */
export function lookAtDrain (transition: Transition, worker: Worker) {
  const { drain, holds } = worker
  if (worker.state !== 'draining') return
  const silentMs = transition.at - (holds?.at ?? 0)
  const isSilent = silentMs > (worker.keptUntil ? SILENT_WHILE_KEPT_MS : SILENT_AFTER_MS)
  if (!drain || !mayStay(worker) || (isSilent && drain.isDoubted)) {
    worker.drainEnd = 'deadline'
    return terminateWorker(transition, worker)
  }
  if (isSilent) drain.isDoubted = true
  else keepWorker(transition, worker)
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id,
    ms: isSilent ? DOUBT_MS : LOOK_AGAIN_MS })
}

/** `worker`: was kept for as long as it may be */
export function endOfKeeping (transition: Transition, worker: Worker) {
  const { longLivedMs } = worker.drain?.limits ?? transition.state.options.drain
  endConnections(transition, worker, {
    message: `it was kept for ${durationText(longLivedMs)} (option drain.longLivedMs)`
  })
}

/**
 * Ends the long-lived connections of a draining worker, each in its own way, and then the worker.
 * @param why `isLast`: nobody serves their clients after this
 */
export function endConnections (transition: Transition, worker: Worker,
  { message, actor = 'system', isLast = false }: { message: string, actor?: string, isLast?: boolean })
{
  const { drain, keptUntil, id } = worker
  if (worker.state !== 'draining' || worker.writesHeap || !drain || drain.limits.isLast || (drain.isOver && !isLast))
    return
  const { deadlineMs } = drain.limits
  const spreadMs = isLast ? 0 : drain.limits.spreadMs
  drain.isOver = true
  drain.limits.isLast = isLast
  transition.command({ type: 'clear-deadline', deadline: 'long-lived', id })
  transition.command({ type: 'end-connections', worker: id, spreadMs, isLast })
  // At a stop, one that finishes its requests has no more time than before.
  if (keptUntil || !isLast)
    transition.command({ type: 'set-deadline', deadline: 'drain', id, ms: spreadMs + deadlineMs })
  if (!keptUntil) return
  worker.keptUntil = transition.isoTime()
  const how = `${heldWords(worker.holds)}${spreadMs > 0 ? ` within ${durationText(spreadMs)}` : ''}`
  transition.emitForWorker('worker.closing', worker, { cause: worker.intent?.cause, actor,
    message: `${nameOf(worker)} closes ${how}, as ${message}` })
}

/** Ends what may not be kept any longer, the oldest first. */
export function endSurplus (transition: Transition) {
  const { state } = transition
  const keeping = Object.values(state.workers).filter(mayKeepOn)
  if (stopsFirst(state)) {
    for (const worker of keeping)
      endConnections(transition, worker, {
        message: 'no two workers of a slot may run side by side (option rollout.order)'
      })
    return
  }
  const old = keeping.filter(({ keptUntil }) => keptUntil).sort((a, b) =>
    Number(a.drain?.at) - Number(b.drain?.at) || a.id - b.id
  )
  const limit = maxOldWorkers(state)
  for (const worker of old.slice(0, Math.max(0, old.length - limit))) {
    endConnections(transition, worker, {
      message: `more than ${limit} old workers would be kept (option drain.maxOldWorkers)`
    })
  }
}

export function endConnectionsNow (transition: Transition, { worker, actor }: { worker: number, actor: string }) {
  endConnections(transition, transition.state.workers[worker], { message: 'an operator has asked for it', actor })
}

/** `worker`: has nothing but long-lived connections */
function keepWorker (transition: Transition, worker: Worker) {
  const { drain } = worker
  if (worker.keptUntil || !drain) return
  const { longLivedMs } = drain.limits
  const ms = Math.max(0, longLivedMs - (transition.at - drain.at))
  worker.keptUntil = transition.isoTime(ms)
  transition.command({ type: 'set-deadline', deadline: 'long-lived', id: worker.id, ms })
  transition.emitForWorker('worker.kept', worker, { cause: worker.intent?.cause, detail: { until: worker.keptUntil },
    message: `${nameOf(worker)} is kept for ${heldWords(worker.holds)}, for ${durationText(longLivedMs)} at most` })
  oldWorkerGone(transition, worker, null)
  recycledGone(transition, worker)
}

/** Tells whether it may be kept, and has what it is kept for */
function mayStay (worker: Worker): boolean {
  return mayKeepOn(worker) && countLongLived(worker.holds) > 0
}

function mayKeepOn ({ state, drain }: Worker) {
  return state === 'draining' && drain !== undefined && drain.limits.longLivedMs > 0 && !drain.isOver
}
