import { isBlocked, whyBlocked } from './drift.ts'
import { megabytesText } from './duration.ts'
import { stopsFirst } from './slot.ts'
import { drainWorker, forkWorker } from './worker.ts'
import type { Transition } from './transition.ts'
import type { LifecycleOptions, Slot, Worker } from './state.ts'

/**
 * The replacement of one worker that reached a limit of age, memory or requests: the new one is ready before the old
 * one drains. One worker at a time; what an operator starts meanwhile comes first. `draining`: the old worker is on its
 * way out; `waiting`: the new one failed, and is tried again when the 'recycle' deadline has passed.
 */
export type Recycling = { slot: number, worker: number, cause: string, message: string,
  state: 'starting' | 'draining' | 'waiting' }

/** Workers are recycled up to this share before the limit, so that workers of the same age do not all go at once. */
const JITTER = 0.1

/** A limit that is reached within this time after a worker was ready is too low. */
const SOON_MS = 30_000
/** This many of them within the window are recycled without a wait. */
const FREE = 5
const WINDOW_MS = 300_000
/** The next ones wait, each twice as long as the one before. */
const FIRST_DELAY_MS = 30_000
const LONGEST_DELAY_MS = 300_000
/** After this time without another one the waits start over. */
const RESET_MS = 2 * LONGEST_DELAY_MS

/**
 * How fast workers that reach a limit too soon are recycled, over all slots. `times`: monotonic ms, of the last such
 * recyclings; `delays`: how many waits in a row; `until`: monotonic ms, before which none is recycled; `heldBytes`: the
 * limit of memory that was proposed, and holds meanwhile: a worker above it does not wait. 0: none was.
 */
export type RecyclePace = { times: number[], delays: number, until: number, heldBytes: number }

export function blankPace (): RecyclePace {
  return { times: [], delays: 0, until: 0, heldBytes: 0 }
}

/** `random`: in [0, 1). Returns the limit of one worker, never above the one that was set. */
function withJitter (limit: number, random: number): number {
  return Math.max(1, Math.round(limit * (1 - JITTER * random)))
}

/** `random`: in [0, 1). Returns how many requests one worker may begin; 0: any number. */
export function requestLimit ({ maxRequests }: { maxRequests: number }, random: number): number {
  return maxRequests > 0 ? withJitter(maxRequests, random) : 0
}

/** `worker`: has just become ready */
export function watchAge (transition: Transition, worker: Worker) {
  const maxAgeMs = transition.state.options.recycle?.maxAgeMs ?? 0
  if (maxAgeMs > 0)
    transition.command({ type: 'set-deadline', deadline: 'age', id: worker.id,
      ms: withJitter(maxAgeMs, transition.random) })
}

/** `cause`: its limit has changed: a worker that is over the new one becomes due again */
export function forgetDue ({ state, command }: Transition, cause: 'memory-limit' | 'max-age' | 'max-requests') {
  state.recyclePace = blankPace()
  command({ type: 'clear-deadline', deadline: 'recycle-pace', id: 0 })
  for (const worker of Object.values(state.workers)) {
    if (worker.due?.cause === cause && state.recycling?.worker !== worker.id) worker.due = null
  }
}

/** Sets the deadlines of all serving workers anew, as the age that they may reach has changed. */
export function watchAges (transition: Transition) {
  const { maxAgeMs = 0 } = transition.state.options.recycle ?? {}
  const now = Date.parse(transition.isoTime())
  for (const worker of Object.values(transition.state.workers)) {
    if (worker.state !== 'ready' || worker.orphan) continue
    const ageMs = now - Date.parse(String(worker.readyAt))
    if (maxAgeMs === 0) transition.command({ type: 'clear-deadline', deadline: 'age', id: worker.id })
    else transition.command({ type: 'set-deadline', deadline: 'age', id: worker.id,
        ms: Math.max(0, withJitter(maxAgeMs, transition.random) - ageMs) })
  }
}

type DueReason = { cause: 'memory-limit' | 'max-age' | 'max-requests' | 'app-request', message: string,
  rssBytes?: number }

/** A worker that waits is told of again and again while it is over the limit of memory, and may wait no longer. */
export function becomeDue (transition: Transition, worker: Worker, { cause, message, rssBytes = 0 }: DueReason) {
  const { due } = worker
  if (due && (cause !== 'memory-limit' || !due.soon)) return
  const servedMs = worker.readyAt === null ? 0 : Date.parse(transition.isoTime()) - Date.parse(worker.readyAt)
  // An app that asks for its own recycling is not kept waiting.
  const isSoon = due?.cause === cause || (cause !== 'app-request' && servedMs <= SOON_MS)
  worker.due = { cause, message, isBlocked: due?.isBlocked, ...(isSoon && { soon: { servedMs, rssBytes } }) }
}

/** `worker`: is recycled soon after it was ready, so the next ones may have to wait */
function countSoon (transition: Transition, worker: Worker) {
  const { state, at } = transition
  const { servedMs = 0, rssBytes = 0 } = worker.due?.soon ?? {}
  const before = at - (state.recyclePace.times.at(-1) ?? 0) >= RESET_MS ? blankPace() : state.recyclePace
  const times = [...before.times.filter((time) => at - time < WINDOW_MS), at].slice(-FREE)
  state.recyclePace = { ...before, times }
  if (before.delays === 0 && times.length < FREE) return
  const ms = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** before.delays)
  // What is proposed does for an app that still grows into its memory, or it is proposed anew.
  const isTooLow = before.delays === 0 || (rssBytes > before.heldBytes && servedMs <= SOON_MS)
  const heldBytes = isTooLow ? enoughBytes(rssBytes) : before.heldBytes
  state.recyclePace = { times, delays: before.delays + 1, until: at + ms, heldBytes }
  transition.command({ type: 'set-deadline', deadline: 'recycle-pace', id: 0, ms })
  if (!isTooLow) return
  transition.emitForWorker('recycling.slowed', worker, { cause: worker.due?.cause, actor: 'system',
    message: tooLow(state.options, worker) })
}

/** @returns of which an app that holds so much soon after its start has some to spare; whole MB */
function enoughBytes (rssBytes: number) {
  return Math.ceil(rssBytes * 1.5 / MB) * MB
}

/** @returns which limit it is, what the app needs, and what to set */
function tooLow ({ recycle }: LifecycleOptions, { due }: Worker): string {
  const { servedMs = 0, rssBytes = 0 } = due?.soon ?? {}
  const orMore = 'or more, or to 0 for no limit; until then a worker is recycled only every few minutes'
  if (due?.cause === 'memory-limit') {
    const enough = enoughBytes(rssBytes)
    const [limit, held] = [recycle?.maxRssBytes ?? 0, rssBytes].map(megabytesText)
    return `the limit recycle.maxRssBytes is ${limit}, but the app holds ${held} soon after its start: set it to ${enough} (${
      megabytesText(enough)
    }) ${orMore}, and at once above ${megabytesText(enough)}`
  }
  if (due?.cause === 'max-age') {
    return `the limit recycle.maxAgeMs is ${recycle?.maxAgeMs}, so workers are replaced almost as soon as they serve: set it to 600000 (10 minutes) ${orMore}`
  }
  const enough = Math.ceil((recycle?.maxRequests ?? 0) * LONGEST_DELAY_MS / Math.max(1000, servedMs))
  const withinS = Math.ceil(servedMs / 1000)
  return `the limit recycle.maxRequests is ${recycle?.maxRequests}, and a worker begins that many within ${withinS} s: set it to ${enough} ${orMore}`
}

const MB = 1024 ** 2

/** Recycles the next worker that is due, if nothing else is going on. */
export function recycleNext (transition: Transition) {
  const { state } = transition
  if (state.phase !== 'running' || state.rollout || state.upgrade || state.recycling) return
  // A slot whose worker has made way has no replacement yet.
  if (stopsFirst(state) &&
    Object.values(state.workers).some((worker) => worker.state === 'starting' && worker.slot !== null)) return
  for (const slot of state.slots) {
    const worker = state.workers[slot.serving ?? 0]
    if (worker?.state !== 'ready' || !worker.due) continue
    const { cause, message, soon } = worker.due
    const { until, heldBytes } = state.recyclePace
    if (soon && transition.at < until && (heldBytes === 0 || soon.rssBytes <= heldBytes)) continue
    state.recycling = { slot: slot.number, worker: worker.id, cause, message, state: 'starting' }
    if (isBlocked(transition, slot.release)) return postponeRecycling(transition, worker)
    transition.emitForWorker('worker.recycling', worker, { cause, actor: 'system', message })
    if (soon) countSoon(transition, worker)
    if (stopsFirst(state)) return makeWay(transition, worker)
    slot.candidate = forkWorker(transition, slot, slot.release)
    return
  }
}

/** `worker`: goes first; its slot gets the next one after that */
function makeWay (transition: Transition, worker: Worker) {
  const { recycling } = transition.state
  if (!recycling) return
  recycling.state = 'draining'
  drainWorker(transition, worker, { cause: recycling.cause, actor: 'system', rollout: null,
    message: recycling.message })
}

/** `worker`: goes on, as its release has drifted and a replacement would run other code */
function postponeRecycling (transition: Transition, worker: Worker) {
  const { recycling } = transition.state
  const { due } = worker
  if (!recycling || !due) return
  recycling.state = 'waiting'
  transition.command({ type: 'set-deadline', deadline: 'recycle', id: 0,
    ms: transition.state.options.restart.maxDelayMs })
  if (due.isBlocked) return
  worker.due = { ...due, isBlocked: true }
  transition.emitForWorker('worker.recycle-failed', worker, { cause: due.cause, actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) is not recycled: ${whyBlocked(transition, worker.release)}`,
    detail: transition.drift[worker.release] })
}

/** Tells whether its candidate is to replace a worker that is recycled */
export function isRecycled ({ state }: Transition, slot: Slot): boolean {
  return state.recycling?.slot === slot.number && slot.candidate !== null
}

/** `slot`: has a candidate that is ready */
export function candidateTakesOver (transition: Transition, slot: Slot) {
  const { recycling } = transition.state
  if (!recycling) return
  const old = transition.state.workers[slot.serving ?? 0]
  slot.serving = slot.candidate
  slot.candidate = null
  recycling.state = 'draining'
  drainWorker(transition, old, { cause: recycling.cause, actor: 'system', rollout: null, message: recycling.message })
}

/** `reason`: why the candidate failed; the old worker serves on, and it is tried again later */
export function recyclingFailed (transition: Transition, reason: string) {
  const { recycling } = transition.state
  if (!recycling) return
  const worker = transition.state.workers[recycling.worker]
  const ms = transition.state.options.restart.maxDelayMs
  recycling.state = 'waiting'
  transition.emitForWorker('worker.recycle-failed', worker, { cause: recycling.cause, actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) is not recycled: its replacement failed: ${reason}` })
  transition.command({ type: 'set-deadline', deadline: 'recycle', id: 0, ms })
}

/**
 * A worker that was to be recycled dies before that: the candidate that starts for its slot takes its place. Returns
 * false: there is no candidate.
 */
export function promoteRecycled (transition: Transition, slot: Slot, dead: Worker, cause: string): boolean {
  if (transition.state.recycling?.slot !== slot.number || transition.state.recycling.worker !== dead.id) return false
  const heir = slot.candidate
  endRecycling(transition)
  if (heir === null) return false
  slot.serving = heir
  slot.candidate = null
  slot.restarts++
  transition.emitForWorker('worker.restarted', dead, { cause, release: slot.release,
    detail: { delayMs: 0, attempt: slot.record.attempt } })
  return true
}

/** `worker`: any that has exited */
export function recycledGone (transition: Transition, worker: Worker) {
  const { recycling } = transition.state
  if (recycling?.worker === worker.id && recycling.state === 'draining') endRecycling(transition)
}

/** Cancels a recycling because an operator wants something else. */
export function callOff (transition: Transition, { cause, actor }: { cause: string, actor: string }) {
  const { recycling } = transition.state
  if (!recycling) return
  const slot = transition.slot(recycling.slot)
  const candidate = transition.state.workers[slot?.candidate ?? 0]
  endRecycling(transition)
  drainWorker(transition, candidate, { cause, actor, rollout: null, message: 'its recycling is cancelled' })
}

export function endRecycling (transition: Transition) {
  transition.state.recycling = null
  transition.command({ type: 'clear-deadline', deadline: 'recycle', id: 0 })
}
