/** @typedef {'event' | 'rollout' | 'release'} Name */

/**
 * The highest number ever given out per name. Outlives the rows that retention deletes, so that no id is used twice.
 * It is kept in memory too, so that it also outlives a database that breaks.
 * @param {import('./open.js').Db} db
 */
export function createHighWater (db) {
  const raiseStored = db.prepare(`
    INSERT INTO high_water (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`)
  const stored = /** @type {{ name: Name, value: number }[]} */ (db.prepare('SELECT name, value FROM high_water').all())
  /** @type {Map<Name, number>} */
  const highest = new Map(stored.map(({ name, value }) => [name, value]))

  return {
    highest,

    /** @param {Name} name @param {number} value */
    raise (name, value) {
      raiseStored.run(name, value)
      highest.set(name, Math.max(value, highest.get(name) ?? 0))
    },

    /** @param {Name} name @returns {number} 0 if none was given out yet */
    read (name) { return highest.get(name) ?? 0 },

    /** @param {{ highest: ReadonlyMap<Name, number> }} other */
    adopt (other) {
      for (const [name, value] of other.highest) this.raise(name, value)
    }
  }
}
