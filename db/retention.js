import { startBudget } from './budget.js'
import { SPAN_SIZE } from './events.js'
import { vitalsRetention } from './vitals.js'

/** @typedef {{ maxAgeMs: number, maxEvents: number }} Retention */

// So many rows with their index entries are deleted before the clock is read again.
const ROWS_PER_STATEMENT = 50
/** An app can cause these events without limit. So each has a limit of its own, a tenth of `maxEvents`, and displaces no others. */
const OF_APPS = ['worker.message', 'worker.listening']
const SHARE_OF_APPS = 0.1

/**
 * Deletes what is too old or too much, oldest first, a slice at a time.
 * @param {import('./open.js').Db} db
 * @param {object} parts
 * @param {Retention} parts.retention
 * @param {() => number} parts.now
 * @param {() => number} parts.clock  monotonic ms
 * @param {(what: { before: number, rows: number }) => number} parts.sweepCrashes
 */
export function createRetention (db, { retention, now, clock, sweepCrashes }) {
  const totalOfType = db.prepare('SELECT count FROM event_totals WHERE type = ?').pluck()
  const isOther = `type NOT IN (${OF_APPS.map((type) => `'${type}'`)})`
  const totalOfOthers = db.prepare(`SELECT sum(count) FROM event_totals WHERE ${isOther}`).pluck()
  const oldestEvent = db.prepare('SELECT min(id) FROM events').pluck()
  const deleteOld = db.prepare(`
    DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT @rows) AND at_ms < @before`)
  const deleteSurplus = db.prepare(`
    DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT @rows) AND id <= coalesce(
      (SELECT id FROM (SELECT id, type FROM events ORDER BY id LIMIT @rows) WHERE ${isOther} LIMIT 1 OFFSET @surplus - 1), 9e15)`)
  const deleteOldestOfType = db.prepare('DELETE FROM events WHERE id IN (SELECT id FROM events WHERE type = @type ORDER BY id LIMIT @rows)')
  const deleteSpans = db.prepare('DELETE FROM spans WHERE span < ?')
  const deleteRollouts = db.prepare(`
    DELETE FROM rollouts WHERE id IN (SELECT id FROM rollouts ORDER BY id LIMIT @rows) AND at_ms < @before`)
  const deleteJobRuns = db.prepare(`
    DELETE FROM job_runs WHERE id IN (SELECT id FROM job_runs ORDER BY id LIMIT @rows) AND at_ms < @before AND state != 'running'`)
  const deleteSessions = db.prepare(`
    DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_ms <= @now LIMIT @rows)`)
  const deleteVitals = vitalsRetention(db, now)

  return {
    /**
     * Deletes one slice; `more`: it has to be called again.
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
        (/** @type {number} */ rows) => deleteJobRuns.run({ before, rows }).changes,
        (/** @type {number} */ rows) => deleteOld.run({ before, rows }).changes,
        ...OF_APPS.map((type) => (/** @type {number} */ rows) => {
          const surplus = Math.ceil(Number(totalOfType.get(type) ?? 0) - retention.maxEvents * SHARE_OF_APPS)
          return surplus > 0 ? deleteOldestOfType.run({ type, rows: Math.min(rows, surplus) }).changes : 0
        }),
        (/** @type {number} */ rows) => {
          const surplus = Number(totalOfOthers.get() ?? 0) - retention.maxEvents
          return surplus > 0 ? deleteSurplus.run({ rows, surplus }).changes : 0
        }
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
      deleteSpans.run(Math.floor(Number(oldestEvent.get() ?? 0) / SPAN_SIZE))
      return { deleted, more: false }
    }
  }
}
