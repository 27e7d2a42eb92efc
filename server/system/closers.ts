export type Closers = ReturnType<typeof createClosers>
/**
 * `handsOver`: another master, or the same one anew, goes on with what there is only one of, such as the data folder;
 * `hasFailed`: it ends by an error, and leaves what a death would leave.
 */
type How = { handsOver: boolean, hasFailed: boolean }

/**
 * What has been opened and is to be closed again, the last one first: for a start that fails half-way, a hand-over and
 * an end alike.
 */
export function createClosers () {
  const stack: ((how: How) => unknown)[] = []

  return {
    /** `close`: may take its time */
    add<T> (opened: T, close: (opened: T, how: How) => unknown): T {
      stack.push((how) => close(opened, how))
      return opened
    },

    /** @throws what the first closer that failed has thrown, once all have been called */
    async close ({ handsOver = false, hasFailed = false }: Partial<How> = {}) {
      const faults: unknown[] = []
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
