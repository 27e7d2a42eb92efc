/**
 * Lets so much be done at a time; the rest waits in the order in which it came.
 * @param {number} atOnce
 */
export function createSemaphore (atOnce) {
  /** @type {(() => void)[]} */
  const waiting = []
  let running = 0

  return {
    /** @template T @param {() => T | Promise<T>} work @returns {Promise<T>} */
    async run (work) {
      if (running === atOnce) await new Promise((resolve) => waiting.push(() => resolve(undefined)))
      else running++
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next) next()
        else running--
      }
    }
  }
}
