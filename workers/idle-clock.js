/**
 * Measures how long connections have been idle: nothing is answered on them, and nothing has come since.
 * @param {number} graceMs
 */
export function createIdleClock (graceMs) {
  /** @type {WeakMap<object, { since: number, bytesRead: number }>} `since`: on the monotonic clock, ms */
  const idle = new WeakMap()

  return {
    /**
     * The caller asks again and again.
     * @param {object} connection
     * @param {{ isAnswering: boolean, bytesRead: number }} now
     * @returns {boolean} whether it has been idle for the whole grace period
     */
    isOver (connection, { isAnswering, bytesRead }) {
      if (isAnswering) {
        idle.delete(connection)
        return false
      }
      const known = idle.get(connection)
      if (!known) idle.set(connection, { since: performance.now(), bytesRead })
      // More bytes and no answer yet mean half a request.
      else if (known.bytesRead === bytesRead) return performance.now() - known.since >= graceMs
      return false
    }
  }
}
