import { startBudget } from './budget.js'
import { SPAN_SIZE } from './events.js'
import { vitalsRetention } from './vitals.js'

/** @typedef {{ maxAgeMs: number, maxEvents: number }} Retention */

// Rows that one statement deletes, each with its index entries, before the clock is looked at again.
const ROWS_PER_STATEMENT = 50

/**
 * Forgets what is too old or too much, oldest first, a slice at a time.
 * @param {import('./open.js').Db} db
 * @param {{ retention: Retention, now: () => number, clock: () => number, sweepCrashes: (what: { before: number, rows: number }) => number }} parts `clock`: monotonic ms
 */
export function createRetention (db, { retention, now, clock, sweepCrashes }) {
  const newestEvent = db.prepare('SELECT max(id) FROM events').pluck()
  const oldestEvent = db.prepare('SELECT min(id) FROM events').pluck()
  // Ids are dense, so the newest id says how many there are; counting a million rows would hold the loop.
  const deleteEvents = db.prepare(`
    DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT @rows) AND (at_ms < @before OR id <= @surplus)`)
  const deleteSpans = db.prepare('DELETE FROM spans WHERE span < ?')
  const deleteSpanCounts = db.prepare('DELETE FROM span_counts WHERE span < ?')
  const deleteRollouts = db.prepare(`
    DELETE FROM rollouts WHERE id IN (SELECT id FROM rollouts ORDER BY id LIMIT @rows) AND at_ms < @before`)
  const deleteSessions = db.prepare(`
    DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_ms <= @now LIMIT @rows)`)
  const deleteVitals = vitalsRetention(db, now)

  return {
    /**
     * One slice. Call it again soon while there is more.
     * @param {{ sliceRows?: number }} [options]
     * @returns {{ deleted: number, more: boolean }}
     */
    sweep ({ sliceRows = 500 } = {}) {
      const budget = startBudget(clock)
      const before = now() - retention.maxAgeMs
      const kinds = [
        ...deleteVitals,
        (/** @type {number} */ rows) => deleteSessions.run({ now: now(), rows }).changes,
        (/** @type {number} */ rows) => sweepCrashes({ before, rows }),
        (/** @type {number} */ rows) => deleteRollouts.run({ before, rows }).changes,
        (/** @type {number} */ rows) => deleteEvents.run({ before, rows, surplus: Number(newestEvent.get() ?? 0) - retention.maxEvents }).changes
      ]
      let deleted = 0
      for (const deleteSome of kinds) {
        for (;;) {
          const rows = Math.min(ROWS_PER_STATEMENT, sliceRows - deleted)
          if (rows <= 0 || budget.isSpent()) return { deleted, more: true }
          const count = deleteSome(rows)
          deleted += count
          if (count < rows) break
        }
      }
      const oldestSpan = Math.floor(Number(oldestEvent.get() ?? 0) / SPAN_SIZE)
      deleteSpans.run(oldestSpan)
      deleteSpanCounts.run(oldestSpan)
      return { deleted, more: false }
    }
  }
}
