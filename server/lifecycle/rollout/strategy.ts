import { durationText } from '../duration.ts'
import type { Limits, Strategy } from '../../api/shapes.ts'

/** What an operator may say of one rollout. */
export type StrategyWish = Partial<
  Omit<Strategy, 'surge' | 'limits' | 'canary'> & { surge: number | string,
    canary: Partial<NonNullable<Strategy['canary']>> | null, limits: Partial<Limits> }
>

const DEFAULT_CANARY = Object.freeze({ workers: 1, durationMs: 30_000 })

/** By which the guard finds out whether the release before does better. */
export const TRIAL_OF_RETURN = Object.freeze({ workers: 1, durationMs: 15_000 })

export const DEFAULT_STRATEGY: Strategy = Object.freeze({ order: 'start-first', surge: 1, minReadyMs: 0, canary: null,
  limits: Object.freeze({ crashes: 0, errorRate: 0.05, p99Ratio: 3, slowerMs: 50, warmupMs: 5000, minRequests: 50 }),
  progressDeadlineMs: 10 * 60_000, onFailure: 'rollback' })

/** `size`: how many slots it replaces; `wish`: of this one rollout; `isTried`: so is a rollback */
export function strategyOf (kind: 'restart' | 'deploy' | 'rollback', size: number, configured: StrategyWish = {},
  wish: StrategyWish = {}, isTried: boolean = false): Strategy
{
  const merged = { ...DEFAULT_STRATEGY, ...configured, ...wish, canary: canaryOf(configured.canary, wish.canary),
    limits: { ...DEFAULT_STRATEGY.limits, ...configured.limits, ...wish.limits } }
  // In a config 0 means: no limit of its own.
  merged.limits.readyTimeoutMs ||= undefined
  const surge = countOf(merged.surge, size)
  // All new workers of a restart are ready before any old one goes. A release that works needs no canary.
  if (kind === 'restart') {
    const all = Math.max(1, size)
    return { ...merged, surge: merged.order === 'stop-first' ? surge : all, minReadyMs: 0, canary: null,
      onFailure: 'rollback' }
  }
  if (kind === 'rollback') {
    const canary = isTried && merged.order === 'start-first' ? TRIAL_OF_RETURN : null
    return { ...merged, surge, minReadyMs: wish.minReadyMs ?? 0, canary }
  }
  return { ...merged, surge,
    canary: merged.canary && merged.canary.workers > 0
      ? { ...merged.canary, workers: Math.min(merged.canary.workers, size) }
      : null }
}

/**
 * `size`: how many slots it replaces. Returns its steps, for people: `4 workers, one at a time, after a canary of 1 for
 * 30 s; if one fails, it rolls back`.
 */
export function strategyText ({ order, surge, minReadyMs, canary, onFailure }: Strategy, size: number): string {
  const pace = surge === 1 ? 'one at a time' : surge >= size ? 'all at once' : `${surge} at a time`
  const parts = [size === 1 ? '1 worker' : `${size} workers, ${pace}`,
    canary && `after a canary of ${canary.workers} for ${durationText(canary.durationMs)}`,
    minReadyMs > 0 && `each watched for ${durationText(minReadyMs)}`,
    order === 'stop-first' && 'each old one stopped first']
  return `${parts.filter(Boolean).join(', ')}; if one fails, it ${
    onFailure === 'hold' ? 'waits for you' : 'rolls back'
  }`
}

/** Tells whether a canary is wanted with stop-first, though it needs workers side by side */
export function contradictsOrder (configured: StrategyWish = {}, wish: StrategyWish = {}): boolean {
  const { order, canary } = { ...configured, ...wish, canary: canaryOf(configured.canary, wish.canary) }
  return order === 'stop-first' && canary !== null && canary.workers > 0
}

/** A wished duration asks for a canary, even where none is configured. */
function canaryOf (configured: StrategyWish['canary'], wished: StrategyWish['canary']) {
  if (!configured && !wished) return null
  const { workers, durationMs } = { ...DEFAULT_CANARY, ...configured, ...wished }
  return { workers: workers === 0 && wished && wished.workers === undefined ? DEFAULT_CANARY.workers : workers,
    durationMs }
}

/** `surge`: a count, or a share as '25%'. Returns 1…size. */
function countOf (surge: number | string, size: number): number {
  const count = typeof surge === 'string' ? Math.ceil(size * Number.parseFloat(surge) / 100) : surge
  return Math.max(1, Math.min(size, count))
}
