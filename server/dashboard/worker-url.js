/**
 * @param {number} worker @param {string} [at] a time at which it lived; without one, the live worker of this id
 * @returns {string} of its page
 */
export function workerUrlOf (worker, at) {
  return `/workers/${worker}${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`
}
