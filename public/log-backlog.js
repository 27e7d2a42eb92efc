/**
 * What waits to be shown, the newest only: however fast lines come and however long nobody shows them, it holds no more
 * than a page can take.
 * @template T
 * @param {number} max
 */
export function createBacklog (max) {
  /** @type {T[]} */
  let items = []
  let count = 0

  return {
    /** @returns {number} how many came since they were last taken, those that were left out included */
    get count () { return count },

    /** @param {T[]} more */
    push (more) {
      count += more.length
      items.push(...more.slice(-max))
      // Now and then, not for each one.
      if (items.length > 2 * max) items = items.slice(-max)
    },

    /** @returns {{ items: T[], leftOut: number }} oldest first; `leftOut`: how many came before them */
    take () {
      const taken = items.slice(-max)
      const leftOut = count - taken.length
      items = []
      count = 0
      return { items: taken, leftOut }
    }
  }
}
