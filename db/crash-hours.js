const HOUR_MS = 60 * 60 * 1000
const MAX_HOURS = 31 * 24

/**
 * Counts the crashes of each group by hour.
 * @param {import('./open.js').Db} db
 */
export function createCrashHours (db) {
  const count = db.prepare(`
    INSERT INTO crash_hours (crash_group, hour, count) VALUES (@group, @hour, 1)
    ON CONFLICT (crash_group, hour) DO UPDATE SET count = count + 1`)
  const trim = db.prepare('DELETE FROM crash_hours WHERE crash_group = ? AND hour <= ?')
  /** @type {import('./sqlite.js').Rows<{ hour: number, count: number }>} */
  const since = db.prepare('SELECT hour, count FROM crash_hours WHERE crash_group = ? AND hour >= ? ORDER BY hour')

  return {
    /** @param {number} group @param {number} atMs */
    count (group, atMs) {
      const hour = Math.floor(atMs / HOUR_MS)
      count.run({ group, hour })
      trim.run(group, hour - MAX_HOURS)
    },

    /** @param {number} group @param {number} sinceMs @returns {{ at: string, count: number }[]} oldest first, without hours that had none */
    list (group, sinceMs) {
      return since.all(group, Math.floor(sinceMs / HOUR_MS)).map(({ hour, count }) => ({ at: new Date(hour * HOUR_MS).toISOString(), count }))
    }
  }
}
