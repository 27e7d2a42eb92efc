/** Keeps the newest items until they are shown, and no more than a page can take, however fast they come. */
export function createBacklog<T> (max: number) {
  let items: T[] = []
  let count = 0

  return {
    /** @returns how many came since they were last taken, those that were left out included */
    get count (): number {
      return count
    },

    push (more: T[]) {
      count += more.length
      items.push(...more.slice(-max))
      // Cut only now and then, as a cut copies the array.
      if (items.length > 2 * max) items = items.slice(-max)
    },

    /** @returns oldest first; `leftOut`: how many came before them */
    take (): { items: T[], leftOut: number } {
      const taken = items.slice(-max)
      const leftOut = count - taken.length
      items = []
      count = 0
      return { items: taken, leftOut }
    }
  }
}
