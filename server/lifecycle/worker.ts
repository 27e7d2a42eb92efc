import { BLAMED_CAUSES, CRASH_CAUSES, isOneOf } from '../causes.ts'
import { mayStart, type Boot } from './boot-room.ts'
import { drainLimits } from './drain-limits.ts'
import { holdSlot, isBlocked, knownDrift, tellDrift, resumeSlot } from './drift.ts'
import { isAsked } from './readiness.ts'
import { takeStandby } from './promotion.ts'
import { lossOf, toEndDetail, unfinishedOf, warnOfLoss, type Exit } from './loss.ts'
import { tripGuard } from './rollout/guard.ts'
import { recordExit, blankRecord } from './restart-policy.ts'
import { cancelRetry, isOccupied, stopsFirst } from './slot.ts'
import { canMove, causeOfExit } from './worker-state.ts'
import { durationText } from './duration.ts'
import { codeText, signalText } from './exit-words.ts'
import type { Transition } from './transition.ts'
import type { DeadlineKind, Intent, Slot, Worker } from './state.ts'

/** Forks a worker for a slot. The caller puts it into `serving` or `candidate`. Returns the worker's id. */
export function forkWorker (transition: Transition, slot: Slot, release: string,
  how?: { readyTimeoutMs?: number }): number
{
  return forkFor(transition, slot.number, release, how)
}

/** `release`: of a worker without a slot */
export function forkStandby (transition: Transition, release: string) {
  forkFor(transition, null, release)
}

function forkFor (transition: Transition, slot: number | null, release: string,
  { readyTimeoutMs = transition.state.options.ready.timeoutMs }: { readyTimeoutMs?: number } = {})
{
  const id = transition.state.nextWorker++
  transition.state.workers[id] = { id, slot, state: 'starting', release, pid: null, forkedAt: transition.at,
    startedAt: transition.isoTime(), readyAt: null, intent: null, readyTimeoutMs,
    drift: knownDrift(transition, release), orphan: null, addresses: [] }
  transition.command({ type: 'fork', worker: id, slot, release: transition.state.releases[release] })
  transition.command({ type: 'set-deadline', deadline: 'ready', id, ms: readyTimeoutMs })
  tellDrift(transition, transition.state.workers[id])
  return id
}

/** `slot`: gets a worker of its own release, unless that has to wait: then it stays vacant, or is held */
export function forkServing (transition: Transition, slot: Slot) {
  slot.finished = null
  if (stopsFirst(transition.state) && isOccupied(transition.state, slot.number)) return cancelRetry(transition, slot)
  const standby = takeStandby(transition, slot)
  if (standby === null && isBlocked(transition, slot.release)) return holdSlot(transition, slot)
  if (standby === null && !mayStart(transition.state, slot)) return cancelRetry(transition, slot)
  if (standby === null) resumeSlot(transition, slot)
  slot.blocked = null
  slot.retryAt = null
  slot.serving = standby ?? forkWorker(transition, slot, slot.release)
}

/** `probe`: the answer of its app */
export function becomeReady (transition: Transition, worker: Worker, probe?: string, boot: Boot | null = null) {
  worker.state = 'ready'
  for (const name of ['probed', 'report', 'resources'] as const) delete worker[name]
  worker.readyAt = transition.isoTime()
  clearDeadlines(transition, worker.id, ['ready', 'addresses', 'alive'])
  transition.command({ type: 'set-deadline', deadline: 'steady', id: worker.id,
    ms: transition.state.options.restart.resetAfterMs })
  const detail = boot && { boot: transition.state.bootCost }
  transition.emitForWorker('worker.ready', worker, { uptimeMs: uptimeOf(transition, worker), message: probe ?? null,
    detail })
}

/**
 * Lets a worker drain, in whatever state it is: even one that is not ready may still be serving. `worker`: is left
 * alone if it is already on its way out; `isTold`: it drains already by itself.
 */
export function drainWorker (transition: Transition, worker: Worker | undefined, intent: Intent,
  { isTold = false, deadlineMs }: { isTold?: boolean, deadlineMs?: number } = {})
{
  if (!worker || !canMove(worker.state, 'draining')) return
  const longestMs = transition.state.options.drain.deadlineMs
  worker.servesNobody = deadlineMs === undefined && hasServedNobody(transition, worker)
  leaveSlot(transition, worker)
  worker.state = 'draining'
  worker.intent = intent
  const limits = drainLimits(transition.state, worker, intent)
  worker.drain = { since: transition.isoTime(), at: transition.at, limits }
  transition.emitForWorker('worker.draining', worker, { cause: intent.cause, actor: intent.actor,
    rollout: intent.rollout, message: intent.message ?? null })
  clearDeadlines(transition, worker.id, ['ready', 'addresses', 'alive', 'steady', 'age'])
  if (!isTold) transition.command({ type: 'drain', worker: worker.id, limits })
  const ms = deadlineMs ?? (worker.servesNobody ? Math.min(UNSERVED_DRAIN_MS, longestMs) : longestMs)
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms })
}

/** A worker without connections drains at once; one that is too busy to say so gets this long. */
const UNSERVED_DRAIN_MS = 1000

/** Tells whether it cannot have had a connection so far */
function hasServedNobody ({ state: { options } }: Transition, { readyAt, orphan, addresses }: Worker): boolean {
  return readyAt === null && orphan === null && (addresses.length === 0 || isAsked(options.ready))
}

/** `worker`: listens, though it was just told to go: it may serve somebody */
export function drainListening (transition: Transition, worker: Worker) {
  if (worker.state !== 'draining' || !worker.servesNobody || isAsked(transition.state.options.ready)) return
  delete worker.servesNobody
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id,
    ms: transition.state.options.drain.deadlineMs })
}

/** `worker`: has drained, or has reached its drain deadline; `how`: where it is not given the usual time */
export function terminateWorker (transition: Transition, worker: Worker,
  { withinMs = Infinity }: { withinMs?: number } = {})
{
  worker.state = 'stopping'
  delete worker.report
  clearDeadlines(transition, worker.id, ['drain', 'long-lived'])
  transition.command({ type: 'terminate', worker: worker.id })
  transition.command({ type: 'set-deadline', deadline: 'term', id: worker.id,
    ms: Math.min(withinMs, transition.state.options.stop.termGraceMs) })
}

/** `worker`: was told by a signal to end, and still runs */
export function killLate (transition: Transition, worker: Worker) {
  const { termGraceMs, signal } = transition.state.options.stop
  worker.killedFor = worker.writesHeap
    ? 'it was still writing its heap'
    : `it had not ended ${durationText(termGraceMs)} after ${signal} (option stop.termGraceMs)`
  transition.command({ type: 'kill', worker: worker.id })
}

/** `id`: of a worker; `kinds`: all of a worker by default */
export function clearDeadlines (transition: Transition, id: number, kinds: readonly DeadlineKind[] = WORKER_DEADLINES) {
  for (const deadline of kinds) transition.command({ type: 'clear-deadline', deadline, id })
}

export type WorkerDeadline = typeof WORKER_DEADLINES[number]
const WORKER_DEADLINES = ['ready', 'addresses', 'alive', 'drain', 'long-lived', 'term', 'steady', 'stack', 'age',
  'soak'] as const

/** Takes note of an exit. Returns its cause. */
export function recordEnd (transition: Transition, worker: Worker, seen: Exit): string {
  const cause = causeOfExit(worker, seen, worker.slot === null ? 'always' : transition.state.options.restart.policy)
  const exit = { ...seen, hint: isOneOf(BLAMED_CAUSES, cause) ? seen.hint ?? hintOfEnd(worker, seen) : null }
  const unfinished = unfinishedOf(worker, exit)
  const message = `${exitMessage(worker, exit, cause)}${exit.hint ? `; ${exit.hint}` : ''}${
    lossOf(unfinished, exit.left)
  }`
  warnOfLoss(transition, worker, unfinished)
  clearDeadlines(transition, worker.id)
  transition.emitForWorker('worker.exited', worker, {
    cause,
    code: exit.code,
    signal: exit.signal,
    uptimeMs: uptimeOf(transition, worker),
    // A crash has no actor, even if somebody told the worker to go.
    actor: worker.intent?.cause === cause ? worker.intent.actor : null,
    rollout: worker.intent?.rollout ?? transition.state.rollout?.id ?? null,
    message,
    detail: toEndDetail(exit, unfinished)
  })
  delete transition.state.workers[worker.id]
  leaveSlot(transition, worker)
  worker.state = 'exited'
  return cause
}

/** @returns what may help one that has ended as a job does */
function hintOfEnd ({ intent, addresses }: Worker, { code, error }: Exit): string | null {
  const isOfJob = code === 0 && !error && !intent && addresses.length === 0
  return isOfJob
    ? 'it has come to its end without an error: if the app is a job that is meant to end, set restart.policy: on-failure (--restart-policy on-failure)'
    : null
}

/** An app that ends its workers sooner than this counts as crashing, so that it does not fork all the time. */
const RECYCLES_ITSELF_AFTER_MS = 1000

/** Decides when a slot whose worker failed gets its next one, on the slot's own release. */
export function replaceWorker (transition: Transition, slot: Slot, dead: Worker, cause: string) {
  const { restart } = transition.state.options
  const wasLooping = slot.record.crashLooping
  const isNoFailure = cause === 'app-request' && uptimeOf(transition, dead) >= RECYCLES_ITSELF_AFTER_MS
  const exit = { at: transition.at, uptimeMs: uptimeOf(transition, dead), random: transition.random }
  const { record, delayMs: backoffMs } = isNoFailure
    ? { record: slot.record, delayMs: 0 }
    : recordExit(slot.record, exit, restart)
  // The watchdog's timeout has slowed this down already, and the hung worker still occupies its place.
  const delayMs = cause === 'hung' ? 0 : backoffMs
  slot.record = record
  slot.restarts++
  if (record.crashLooping && !wasLooping) {
    tripGuard(transition, slot)
    const { restarts, windowMs } = restart.intensity
    transition.emit('worker.crash-looping', { slot: slot.number, release: slot.release,
      message: `slot ${slot.number} crash-loops: more than ${restarts} restarts within ${
        durationText(windowMs)
      }; the next ones wait longer` })
  }
  transition.emitForWorker('worker.restarted', dead, { cause, release: slot.release,
    detail: { delayMs, attempt: record.attempt } })
  if (delayMs === 0) return forkServing(transition, slot)
  slot.retryAt = transition.isoTime(delayMs)
  transition.command({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms: delayMs })
}

/** `slot`: whose worker has run long enough */
export function resetBackoff (transition: Transition, slot: Slot) {
  if (slot.record.crashLooping)
    transition.emit('worker.recovered', { slot: slot.number, worker: slot.serving, release: slot.release })
  slot.record = blankRecord()
}

/** @returns ms since its fork, or since it got its slot */
export function uptimeOf (transition: Transition, worker: Worker): number {
  return Math.round(transition.at - worker.forkedAt)
}

export function leaveSlot (transition: Transition, worker: Worker) {
  const slot = transition.slot(worker.slot)
  if (slot?.serving === worker.id) slot.serving = null
  if (slot?.candidate === worker.id) slot.candidate = null
}

export function nameOf ({ id, slot }: Pick<Worker, 'id' | 'slot'>) {
  return slot === null ? `standby worker ${id}` : `worker ${id} (slot ${slot})`
}

function exitMessage (worker: Worker, exit: Exit, cause: string) {
  const { code, error, isAsTold = false } = exit
  const order = worker.intent?.message
  // It did as it was told, and what it was told for says more than its code.
  if (order && (code === 0 || isAsTold) && !isOneOf(CRASH_CAUSES, cause)) return `${nameOf(worker)} ended, as ${order}`
  const when = worker.state === 'starting' && cause !== 'finished' ? ' before it was ready' : ''
  const why = whyItEnded(exit, cause)
  // The message of an exception is in the intent already.
  const told = `${nameOf(worker)} ${howItEnded(worker, exit)}${when}${why && `: ${why}`}`
  if (!order || error) return told
  return told.endsWith(')') ? `${told}; ${order}` : `${told} (${order})`
}

function howItEnded ({ killedFor }: Worker, { code, signal, error }: Exit) {
  if (signal === 'SIGKILL' && killedFor) return `was killed, as ${killedFor}`
  if (signal !== null) return `was ended by ${signalText(signal)}`
  if (code === null) return 'is gone; how it ended is not known'
  return `exited with ${error ? `code ${code}` : codeText(code)}`
}

/** @returns '' where the process has told nothing of it */
function whyItEnded ({ error, said }: Exit, cause: string): string {
  if (error) return [error.errorName, error.errorMessage].filter(Boolean).join(': ')
  return said && isOneOf(BLAMED_CAUSES, cause) ? said : ''
}
