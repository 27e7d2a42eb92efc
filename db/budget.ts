// A query may hold the master's loop for 10 ms. Its last step begins within 4 ms and has the rest.
const QUERY_MS = 4

/**
 * Limits the time of a query. SQLite runs in this thread, so a query whose time is spent stops and returns a cursor.
 * `clock`: monotonic ms.
 */
export function startBudget (clock: () => number, ms: number = QUERY_MS) {
  const startedAt = clock()
  return { elapsedMs: () => clock() - startedAt, isSpent: () => clock() - startedAt >= ms }
}
