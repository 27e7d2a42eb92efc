import { runtimeOf, type DrainLimits, type PoolState, type Worker } from './state.ts'
import { stopsFirst } from './slot.ts'

/** A worker that goes for one of these did well, and may be kept. One that goes for what it did wrong may not. */
const GENTLE_CAUSES = ['restart', 'deploy', 'scale-down', 'max-age', 'max-requests', 'upgrade', 'master-lost']

export function drainLimits (state: PoolState, worker: Worker, { cause }: { cause: string }): DrainLimits {
  const { maxOldWorkers: _, ...limits } = state.options.drain
  const isLast = cause === 'shutdown'
  const isKept = GENTLE_CAUSES.includes(cause) && !worker.servesNobody && worker.slot !== null && !stopsFirst(state) &&
    maxOldWorkers(state) > 0 && runtimeOf(state, worker.release) === 'node'
  return { ...limits, ...(!isKept && { longLivedMs: 0 }), ...(isLast && { spreadMs: 0 }), isLast }
}

/** @returns how many replaced workers may be kept */
export function maxOldWorkers ({ options: { drain }, slots }: PoolState): number {
  return drain.maxOldWorkers === 'auto' ? 2 * slots.length : drain.maxOldWorkers
}
