/** @typedef {ReturnType<typeof createAcceptFairness>} AcceptFairness */

/** Workers that start together report one after the other; this wait lets all be told at once. */
const TELL_AFTER_MS = 100

/**
 * How connections are spread over workers that accept by themselves, see workers/even-accept.js.
 * @param {object} parts
 * @param {Map<number, Pick<import('./worker-handle.js').WorkerHandle, 'tell'>>} parts.handles
 * @param {(work: () => void, ms: number) => unknown} [parts.later]
 */
export function createAcceptFairness ({ handles, later = (work, ms) => setTimeout(work, ms).unref() }) {
  /** @type {Map<number, boolean>} by worker */
  const evenness = new Map()
  let isToTell = false

  return {
    /** @param {number} worker @param {boolean} isEven whether it waits for its turn */
    heard (worker, isEven) {
      if (!handles.has(worker)) return
      evenness.set(worker, isEven)
      if (isToTell) return
      isToTell = true
      later(() => tellEvenness(), TELL_AFTER_MS)
    },

    /** @param {number} worker takes no more connections; one that it was woken for goes to the others */
    passOn: tellEvenness,

    /** @param {number} worker */
    left (worker) {
      evenness.delete(worker)
      tellEvenness()
    },

    /** @returns {boolean | null} null: no worker has said so yet */
    isEven: () => evenness.size === 0 ? null : [...evenness.values()].every(Boolean)
  }

  /** @param {number} [leaving] */
  function tellEvenness (leaving) {
    isToTell = false
    const inTurn = [...evenness].filter(([worker, isEven]) => isEven && worker !== leaving).map(([worker]) => worker)
    for (const worker of inTurn) handles.get(worker)?.tell({ type: 'accept-again', others: inTurn.length - 1 })
  }
}
