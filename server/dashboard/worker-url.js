/**
 * @param {number} worker @param {string} [at] a moment at which it lived; without one, whoever lives under that id
 * @returns {string} of its page
 */
export function workerUrlOf (worker, at) {
  return `/workers/${worker}${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`
}
