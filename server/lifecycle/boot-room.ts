import { endsByItself } from './restart-policy.ts'
import type { Transition } from './transition.ts'
import type { PoolState, Slot, Worker } from './state.ts'

/**
 * What a worker has needed to get ready: CPU time of all its threads, and in how much of the time it waited for a CPU.
 */
export type Boot = { cpuMs: number, starvedMs: number }
/** What the last one that got ready needed of a machine that has CPUs to give. `activeMs`: without waiting for one. */
export type BootCost = { cpuMs: number, activeMs: number }

/** However busy the machine is, a worker gets at most this many times the limit to become ready. */
export const MAX_TIMES = 10
/** Workers that need less start so soon that their starts are not limited. */
const HEAVY_CPU_MS = 1000

/**
 * Gives a worker that has reached its deadline the time again that it spent waiting for a CPU. `starvedMs`: since its
 * deadline was last set. Returns whether it got more time.
 */
export function extendBoot (transition: Transition, worker: Worker, starvedMs: number): boolean {
  const { readyTimeoutMs, starvedMs: before = 0 } = worker
  const moreMs = Math.min(starvedMs, readyTimeoutMs * (MAX_TIMES - 1) - before)
  if (moreMs <= 0) return false
  worker.starvedMs = before + moreMs
  transition.command({ type: 'set-deadline', deadline: 'ready', id: worker.id, ms: moreMs })
  return true
}

/** `worker`: has just become ready */
export function noteBoot ({ state, at }: Transition, worker: Worker, boot?: Boot | null) {
  state.hasBeenReady = true
  // A standby worker loaded its code before it was promoted.
  if (boot && !worker.hasStoodBy)
    state.bootCost = { cpuMs: boot.cpuMs, activeMs: Math.max(1, Math.round(at - worker.forkedAt) - boot.starvedMs) }
}

/**
 * Many starts at once on few CPUs make all of them slow, and the first answer as late as the last. So where a start
 * keeps CPUs busy, there are no more at a time than that many CPUs can bear.
 * @returns how many more workers may start now
 */
export function bootRoom ({ workers, bootCost, cpus }: PoolState): number {
  if (!bootCost || bootCost.cpuMs < HEAVY_CPU_MS) return Infinity
  const starting = Object.values(workers).filter(({ state, orphan }) => state === 'starting' && !orphan).length
  return Math.max(1, Math.round(cpus * bootCost.activeMs / bootCost.cpuMs)) - starting
}

/**
 * Where no worker has ever been ready, the first one starts alone: many apps make the tables of an empty database at
 * their start, and several at once get into each other's way. Returns whether its worker may start now.
 */
export function mayStart (state: PoolState, slot: Slot): boolean {
  if (state.awaitsHook || state.awaitsTurn !== null) return false
  if (isFirstStart(state)) return slot === state.slots.find(({ finished }) => finished === null)
  return bootRoom(state) > 0
}

/** `state`: a program that ends by itself is no server and may never be ready, so nothing waits for it */
function isFirstStart ({ hasBeenReady, options: { start, restart } }: PoolState) {
  return !hasBeenReady && start?.first !== 'all' && !endsByItself(restart)
}
