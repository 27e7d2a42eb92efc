// A query may hold the master's loop for 10 ms; most of that is left to the step that is under way when its time is spent.
const QUERY_MS = 4

/**
 * The time that one query may take. SQLite runs in this thread, so a query that has spent it stops and hands back a cursor.
 * @param {() => number} clock monotonic ms
 * @param {number} [ms]
 */
export function startBudget (clock, ms = QUERY_MS) {
  const startedAt = clock()
  return {
    elapsedMs: () => clock() - startedAt,
    isSpent: () => clock() - startedAt >= ms
  }
}
