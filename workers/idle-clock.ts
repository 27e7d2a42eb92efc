/** Measures how long connections have been idle: nothing is answered on them, and nothing has come since. */
export function createIdleClock (graceMs: number) {
  /** `since`: on the monotonic clock, ms */
  const idle: WeakMap<object, { since: number, bytesRead: number }> = new WeakMap()

  return {
    /** The caller asks again and again. Returns whether it has been idle for the whole grace period. */
    isOver (connection: object, { isAnswering, bytesRead }: { isAnswering: boolean, bytesRead: number }): boolean {
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
