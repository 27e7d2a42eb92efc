import { startBudget } from './budget.ts'
import { SPAN_SIZE } from './events.ts'
import { vitalsRetention } from './vitals.ts'
import type { Db } from './sqlite.ts'

export type Retention = { maxAgeMs: number, maxEvents: number }

// So many rows with their index entries are deleted before the clock is read again.
const ROWS_PER_STATEMENT = 50
/**
 * An app can cause these events without limit. So each has a limit of its own, a tenth of `maxEvents`, and displaces no
 * others.
 */
const OF_APPS = ['worker.message', 'worker.listening']
const SHARE_OF_APPS = 0.1

/** Deletes what is too old or too much, oldest first, a slice at a time. */
export function createRetention (db: Db, { retention, now, clock, sweepCrashes }: {
  retention: Retention,
  now: () => number,
  /** monotonic ms */
  clock: () => number,
  sweepCrashes: (what: { before: number, rows: number }) => number
}) {
  const totalOfType = db.prepare('SELECT count FROM event_totals WHERE type = ?').pluck()
  const isOther = `type NOT IN (${OF_APPS.map((type) => `'${type}'`)})`
  const totalOfOthers = db.prepare(`SELECT sum(count) FROM event_totals WHERE ${isOther}`).pluck()
  const oldestEvent = db.prepare('SELECT min(id) FROM events').pluck()
  const deleteOld = db.prepare(`
    DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT @rows) AND at_ms < @before`)
  const deleteSurplus = db.prepare(`
    DELETE FROM events WHERE id IN (SELECT id FROM events ORDER BY id LIMIT @rows) AND id <= coalesce(
      (SELECT id FROM (SELECT id, type FROM events ORDER BY id LIMIT @rows) WHERE ${isOther} LIMIT 1 OFFSET @surplus - 1), 9e15)`)
  const deleteOldestOfType = db.prepare(
    'DELETE FROM events WHERE id IN (SELECT id FROM events WHERE type = @type ORDER BY id LIMIT @rows)'
  )
  const deleteSpans = db.prepare('DELETE FROM spans WHERE span < ?')
  const deleteRollouts = db.prepare(`
    DELETE FROM rollouts WHERE id IN (SELECT id FROM rollouts ORDER BY id LIMIT @rows) AND at_ms < @before`)
  const deleteJobRuns = db.prepare(`
    DELETE FROM job_runs WHERE id IN (SELECT id FROM job_runs ORDER BY id LIMIT @rows) AND at_ms < @before AND state != 'running'`)
  const deleteSessions = db.prepare(`
    DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_ms <= @now LIMIT @rows)`)
  const deleteVitals = vitalsRetention(db, now)

  return {
    /** Deletes one slice; `more`: it has to be called again. */
    sweep ({ sliceRows = 500 }: { sliceRows?: number } = {}): { deleted: number, more: boolean } {
      const budget = startBudget(clock)
      const before = now() - retention.maxAgeMs
      const kinds = [...deleteVitals, (rows: number) => deleteSessions.run({ now: now(), rows }).changes,
        (rows: number) => sweepCrashes({ before, rows }),
        (rows: number) => deleteRollouts.run({ before, rows }).changes,
        (rows: number) => deleteJobRuns.run({ before, rows }).changes,
        (rows: number) => deleteOld.run({ before, rows }).changes, ...OF_APPS.map((type) => (rows: number) => {
          const surplus = Math.ceil(Number(totalOfType.get(type) ?? 0) - retention.maxEvents * SHARE_OF_APPS)
          return surplus > 0 ? deleteOldestOfType.run({ type, rows: Math.min(rows, surplus) }).changes : 0
        }), (rows: number) => {
        const surplus = Number(totalOfOthers.get() ?? 0) - retention.maxEvents
        return surplus > 0 ? deleteSurplus.run({ rows, surplus }).changes : 0
      }]
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
