import { runtimeOf } from './state.js'
import { stopsFirst } from './vacancy.js'

/** @typedef {import('./state.js').PoolState} PoolState */

/** A worker that goes for one of these did well, and may be kept. One that goes for what it did wrong may not. */
const GENTLE_CAUSES = ['restart', 'deploy', 'scale-down', 'max-age', 'max-requests', 'upgrade', 'master-lost']

/**
 * @param {PoolState} state @param {import('./state.js').Worker} worker @param {{ cause: string }} intent
 * @returns {import('./state.js').DrainLimits}
 */
export function drainLimits (state, worker, { cause }) {
  const { maxOldWorkers: _, ...limits } = state.options.drain
  const isLast = cause === 'shutdown'
  const isKept = GENTLE_CAUSES.includes(cause) && !worker.servesNobody && worker.slot !== null && !stopsFirst(state) &&
    maxOldWorkers(state) > 0 && runtimeOf(state, worker.release) === 'node'
  return { ...limits, ...(!isKept && { longLivedMs: 0 }), ...(isLast && { spreadMs: 0 }), isLast }
}

/** @param {PoolState} state @returns {number} how many replaced workers may be kept */
export function maxOldWorkers ({ options: { drain }, slots }) {
  return drain.maxOldWorkers === 'auto' ? 2 * slots.length : drain.maxOldWorkers
}
