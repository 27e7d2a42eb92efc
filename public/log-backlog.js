/**
 * Keeps the newest items until they are shown, and no more than a page can take, however fast they come.
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
      // Cut only now and then, as a cut copies the array.
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
