import { drainLimits } from './drain-limits.ts'
import { recordEnd, drainWorker, nameOf } from './worker.ts'
import type { Transition } from './transition.ts'
import type { Intent, Orphan, OrphanCause, Worker } from './state.ts'

/**
 * Takes over a worker of another master. It serves until its slot has a worker of this master; if it was draining, it
 * drains on for the reason that the other master had.
 */
export function adoptOrphan (transition: Transition,
  { exit, intent, state, orphan, addresses = [], ...known }: Orphan)
{
  const worker: Worker = {
    ...known,
    state,
    forkedAt: transition.at - Math.max(0, Date.parse(transition.isoTime()) - Date.parse(known.startedAt)),
    // A worker that was still starting ends with its master.
    intent: intent ?? (state === 'starting' ? withoutMaster(orphan) : null),
    readyTimeoutMs: transition.state.options.ready.timeoutMs,
    addresses,
    orphan
  }
  transition.state.workers[worker.id] = worker
  if (exit) {
    recordEnd(transition, worker, exit)
    return
  }
  if (worker.intent) return goOnDraining(transition, worker)
  transition.emitForWorker('worker.orphaned', worker, { cause: orphan,
    message: `${nameOf(worker)} ${GOES_ON[orphan]}` })
}

const GOES_ON = Object.freeze({ 'master-lost': 'runs without its master',
  upgrade: 'serves until the next master replaces it' })

/** `worker`: is told once more, as the other master may not have told it */
function goOnDraining (transition: Transition, worker: Worker) {
  const { id, keptUntil, holds } = worker
  const sinceMs = worker.drain ? Math.max(0, Date.parse(transition.isoTime()) - Date.parse(worker.drain.since)) : 0
  worker.drain = { since: transition.isoTime(-sinceMs),
    limits: drainLimits(transition.state, worker, worker.intent ?? withoutMaster('master-lost')), ...worker.drain,
    at: transition.at - sinceMs }
  const { limits, isOver = false } = worker.drain
  if (holds) worker.holds = { ...holds, at: transition.at }
  worker.state = 'draining'
  transition.command({ type: 'drain', worker: id, limits })
  if (isOver)
    transition.command({ type: 'end-connections', worker: id, spreadMs: limits.spreadMs, isLast: limits.isLast })
  else if (keptUntil)
    transition.command({ type: 'set-deadline', deadline: 'long-lived', id,
      ms: Math.max(0, limits.longLivedMs - sinceMs) })
  transition.command({ type: 'set-deadline', deadline: 'drain', id,
    ms: limits.deadlineMs + (isOver ? limits.spreadMs : 0) })
}

/** `isMeant`: tells whose replacement is ready */
export function drainOrphans (transition: Transition, isMeant: (orphan: Worker) => boolean) {
  for (const worker of Object.values(transition.state.workers)) {
    if (worker.orphan && isMeant(worker))
      drainWorker(transition, worker, { ...withoutMaster(worker.orphan), message: 'its replacement is ready' })
  }
}

function withoutMaster (cause: OrphanCause): Intent {
  return { cause, actor: 'system', rollout: null }
}
