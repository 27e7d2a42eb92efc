/** @typedef {ReturnType<typeof createClosers>} Closers */
/**
 * `handsOver`: another master, or the same one anew, goes on with what there is only one of, such as the data folder; `hasFailed`: it
 * ends by an error, and leaves what a death would leave.
 * @typedef {{ handsOver: boolean, hasFailed: boolean }} How
 */

/**
 * What has been opened and is to be closed again, the last one first: for a start that fails half-way, a hand-over and
 * an end alike.
 */
export function createClosers () {
  /** @type {((how: How) => unknown)[]} */
  const stack = []

  return {
    /**
     * @template T
     * @param {T} opened @param {(opened: T, how: How) => unknown} close  may take its time
     * @returns {T}
     */
    add (opened, close) {
      stack.push((how) => close(opened, how))
      return opened
    },

    /**
     * @param {Partial<How>} [how]
     * @throws what the first closer that failed has thrown, once all have been called
     */
    async close ({ handsOver = false, hasFailed = false } = {}) {
      /** @type {unknown[]} */
      const faults = []
      for (let close; (close = stack.pop());) {
        try {
          await close({ handsOver, hasFailed })
        } catch (error) {
          faults.push(error)
        }
      }
      if (faults.length > 0) throw faults[0]
    }
  }
}
