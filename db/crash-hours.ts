import type { Db, Rows } from './sqlite.ts'

const HOUR_MS = 60 * 60 * 1000
const MAX_HOURS = 31 * 24

export function createCrashHours (db: Db) {
  const count = db.prepare(`
    INSERT INTO crash_hours (crash_group, hour, count) VALUES (@group, @hour, 1)
    ON CONFLICT (crash_group, hour) DO UPDATE SET count = count + 1`)
  const trim = db.prepare('DELETE FROM crash_hours WHERE crash_group = ? AND hour <= ?')
  const since: Rows<{ hour: number, count: number }> = db.prepare(
    'SELECT hour, count FROM crash_hours WHERE crash_group = ? AND hour >= ? ORDER BY hour'
  )

  return {
    count (group: number, atMs: number) {
      const hour = Math.floor(atMs / HOUR_MS)
      count.run({ group, hour })
      trim.run(group, hour - MAX_HOURS)
    },

    /** @returns oldest first, without hours that had none */
    list (group: number, sinceMs: number): { at: string, count: number }[] {
      return since.all(group, Math.floor(sinceMs / HOUR_MS)).map(({ hour, count }) => ({
        at: new Date(hour * HOUR_MS).toISOString(),
        count
      }))
    }
  }
}
