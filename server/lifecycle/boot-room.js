import { endsByItself } from './restart-policy.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').PoolState} PoolState */
/** @typedef {import('./state.js').Worker} Worker */

/**
 * What a worker has needed to get ready: CPU time of all its threads, and in how much of the time it waited for a CPU.
 * @typedef {{ cpuMs: number, starvedMs: number }} Boot
 * What the last one that got ready needed of a machine that has CPUs to give. `activeMs`: without waiting for one.
 * @typedef {{ cpuMs: number, activeMs: number }} BootCost
 */

/** The time to get ready is at most that many times the limit, however busy the machine is. */
export const MAX_TIMES = 10
/** Below that workers start so soon that they take no turns. */
const HEAVY_CPU_MS = 1000

/**
 * A worker has had its time. What it has spent waiting for a CPU does not count: it gets that time again.
 * @param {Transition} transition @param {Worker} worker @param {number} starvedMs in the time that has just passed
 * @returns {boolean} whether it has more time now
 */
export function extendBoot (transition, worker, starvedMs) {
  const { readyTimeoutMs, starvedMs: before = 0 } = worker
  const moreMs = Math.min(starvedMs, readyTimeoutMs * (MAX_TIMES - 1) - before)
  if (moreMs <= 0) return false
  worker.starvedMs = before + moreMs
  transition.command({ type: 'set-deadline', deadline: 'ready', id: worker.id, ms: moreMs })
  return true
}

/** @param {Transition} transition @param {Worker} worker it has just become ready @param {Boot | null} [boot] */
export function noteBoot ({ state, at }, worker, boot) {
  state.hasBeenReady = true
  // One that was on standby has loaded its code before.
  if (boot && !worker.hasStoodBy) state.bootCost = { cpuMs: boot.cpuMs, activeMs: Math.max(1, Math.round(at - worker.forkedAt) - boot.starvedMs) }
}

/**
 * Many starts at once on few CPUs make all of them slow, and the first answer as late as the last. So where a start keeps
 * CPUs busy, there are no more at a time than that many CPUs can bear.
 * @param {PoolState} state @returns {number} how many more workers may start now
 */
export function bootRoom ({ workers, bootCost, cpus }) {
  if (!bootCost || bootCost.cpuMs < HEAVY_CPU_MS) return Infinity
  const starting = Object.values(workers).filter(({ state, orphan }) => state === 'starting' && !orphan).length
  return Math.max(1, Math.round(cpus * bootCost.activeMs / bootCost.cpuMs)) - starting
}

/**
 * Where no worker has ever been ready, the first one starts alone: many apps make the tables of an empty database at
 * their start, and several at once get into each other's way.
 * @param {PoolState} state @param {import('./state.js').Slot} slot @returns {boolean} whether its worker may start now
 */
export function mayStart (state, slot) {
  if (state.awaitsHook) return false
  if (isFirstStart(state)) return slot === state.slots.find(({ finished }) => finished === null)
  return bootRoom(state) > 0
}

/** @param {PoolState} state a program that comes to its end is no server, and may never be ready */
function isFirstStart ({ hasBeenReady, options: { start, restart } }) {
  return !hasBeenReady && start?.first !== 'all' && !endsByItself(restart)
}
