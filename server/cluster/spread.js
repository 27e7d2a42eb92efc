/** @typedef {ReturnType<typeof createSpread>} Spread */

/**
 * How connections are spread over workers that accept by themselves, see workers/even-accept.js.
 * @param {object} parts
 * @param {Map<number, Pick<import('./worker-handle.js').WorkerHandle, 'tell'>>} parts.handles
 */
export function createSpread ({ handles }) {
  /** @type {Map<number, boolean>} by worker */
  const evenness = new Map()

  return {
    /** @param {number} worker @param {boolean} isEven whether it waits for its turn */
    heard (worker, isEven) { if (handles.has(worker)) evenness.set(worker, isEven) },

    /** @param {number} worker takes no connections from now on: one that it was woken for is for the others */
    passOn (worker) {
      for (const [id, handle] of handles) if (id !== worker && evenness.get(id)) handle.tell({ type: 'accept-again' })
    },

    /** @param {number} worker */
    left (worker) {
      evenness.delete(worker)
      this.passOn(worker)
    },

    /** @returns {boolean | null} null: no worker has said so yet */
    isEven: () => evenness.size === 0 ? null : [...evenness.values()].every(Boolean)
  }
}
