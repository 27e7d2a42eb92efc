import { durationText } from '../duration.js'

/**
 * How a rollout replaces workers.
 * @typedef {object} Strategy
 * @property {'start-first' | 'stop-first'} order  whether the new worker of a slot starts beside the old one, or after its end
 * @property {number} surge  how many slots are replaced at a time, at least 1
 * @property {number} minReadyMs  how long a new worker has to be ready before the old one drains
 * @property {{ workers: number, durationMs: number } | null} canary  this many new workers serve beside all old ones for this time, and are judged
 * @property {Limits} limits
 * @property {number} progressDeadlineMs  a rollout that comes no further for this long fails; paused time does not count
 * @property {'rollback' | 'hold'} onFailure  hold: it stops where it is and waits for an operator
 *
 * @typedef {object} Limits  beyond which a release is not to be trusted
 * @property {number} crashes  how many of its workers may crash
 * @property {number} errorRate  by how much its share of 5xx answers may exceed that of the old workers, 0…1
 * @property {number} p99Ratio  how many times the old workers' latency its own may be
 * @property {number} slowerMs  by how many ms it has to be slower as well
 * @property {number} warmupMs  how long the latency of a worker does not count
 * @property {number} minRequests  fewer than this are no ground for a judgement
 * @property {number} [readyTimeoutMs]  in place of ready.timeoutMs
 *
 * What an operator may say of one rollout.
 * @typedef {Partial<Omit<Strategy, 'surge' | 'limits' | 'canary'> & { surge: number | string, canary: Partial<NonNullable<Strategy['canary']>> | null, limits: Partial<Limits> }>} StrategyWish
 */

const DEFAULT_CANARY = Object.freeze({ workers: 1, durationMs: 30_000 })

/** @type {Strategy} */
export const DEFAULT_STRATEGY = Object.freeze({
  order: 'start-first',
  surge: 1,
  minReadyMs: 0,
  canary: null,
  limits: Object.freeze({ crashes: 0, errorRate: 0.05, p99Ratio: 3, slowerMs: 50, warmupMs: 5000, minRequests: 50 }),
  progressDeadlineMs: 10 * 60_000,
  onFailure: 'rollback'
})

/**
 * @param {'restart' | 'deploy' | 'rollback'} kind
 * @param {number} size how many slots it replaces
 * @param {StrategyWish} [configured]
 * @param {StrategyWish} [wish] of this one rollout
 * @returns {Strategy}
 */
export function strategyOf (kind, size, configured = {}, wish = {}) {
  const merged = {
    ...DEFAULT_STRATEGY,
    ...configured,
    ...wish,
    canary: canaryOf(configured.canary, wish.canary),
    limits: { ...DEFAULT_STRATEGY.limits, ...configured.limits, ...wish.limits }
  }
  // In a config 0 means: no limit of its own.
  merged.limits.readyTimeoutMs ||= undefined
  const surge = countOf(merged.surge, size)
  // All new workers of a restart are ready before any old one goes. A release that works needs no canary.
  if (kind === 'restart') {
    const all = Math.max(1, size)
    return { ...merged, surge: merged.order === 'stop-first' ? surge : all, minReadyMs: 0, canary: null, onFailure: 'rollback' }
  }
  if (kind === 'rollback') return { ...merged, surge, minReadyMs: wish.minReadyMs ?? 0, canary: null }
  return { ...merged, surge, canary: merged.canary && merged.canary.workers > 0 ? { ...merged.canary, workers: Math.min(merged.canary.workers, size) } : null }
}

/**
 * @param {Strategy} strategy @param {number} size how many slots it replaces
 * @returns {string} its steps, for people: `4 workers, one at a time, after a canary of 1 for 30 s; if one fails, it rolls back`
 */
export function strategyText ({ order, surge, minReadyMs, canary, onFailure }, size) {
  const pace = surge === 1 ? 'one at a time' : surge >= size ? 'all at once' : `${surge} at a time`
  const parts = [
    size === 1 ? '1 worker' : `${size} workers, ${pace}`,
    canary && `after a canary of ${canary.workers} for ${durationText(canary.durationMs)}`,
    minReadyMs > 0 && `each watched for ${durationText(minReadyMs)}`,
    order === 'stop-first' && 'each old one stopped first'
  ]
  return `${parts.filter(Boolean).join(', ')}; if one fails, it ${onFailure === 'hold' ? 'waits for you' : 'rolls back'}`
}

/**
 * @param {StrategyWish} [configured] @param {StrategyWish} [wish]
 * @returns {boolean} whether a canary is wanted with stop-first, though it needs workers side by side
 */
export function contradictsOrder (configured = {}, wish = {}) {
  const { order, canary } = { ...configured, ...wish, canary: canaryOf(configured.canary, wish.canary) }
  return order === 'stop-first' && canary !== null && canary.workers > 0
}

/**
 * A wished duration asks for a canary, even where none is configured.
 * @param {StrategyWish['canary']} configured @param {StrategyWish['canary']} wished
 */
function canaryOf (configured, wished) {
  if (!configured && !wished) return null
  const { workers, durationMs } = { ...DEFAULT_CANARY, ...configured, ...wished }
  return { workers: workers === 0 && wished && wished.workers === undefined ? DEFAULT_CANARY.workers : workers, durationMs }
}

/** @param {number | string} surge a count, or a share as '25%' @param {number} size @returns {number} 1…size */
function countOf (surge, size) {
  const count = typeof surge === 'string' ? Math.ceil(size * Number.parseFloat(surge) / 100) : surge
  return Math.max(1, Math.min(size, count))
}
