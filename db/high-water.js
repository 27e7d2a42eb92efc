/**
 * The highest number ever given out per name. Outlives the rows that retention deletes, so that no id is used twice.
 * @param {import('./open.js').Db} db
 */
export function createHighWater (db) {
  const raise = db.prepare(`
    INSERT INTO high_water (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`)
  const read = db.prepare('SELECT value FROM high_water WHERE name = ?').pluck()

  return {
    /** @param {'event' | 'rollout' | 'release'} name @param {number} value */
    raise (name, value) { raise.run(name, value) },

    /** @param {'event' | 'rollout' | 'release'} name @returns {number} 0 if none was given out yet */
    read (name) { return Number(read.get(name) ?? 0) }
  }
}
