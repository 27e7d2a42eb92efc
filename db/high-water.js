/** @typedef {'event' | 'rollout' | 'release'} Name */

/**
 * Keeps the highest number that was ever used for each name, so that no id is used twice after retention has deleted rows. It
 * keeps them in memory too, for the case that the database breaks.
 * @param {import('./open.js').Db} db
 */
export function createHighWater (db) {
  const raiseStored = db.prepare(`
    INSERT INTO high_water (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`)
  /** @type {import('./sqlite.js').Rows<{ name: Name, value: number }>} */
  const stored = db.prepare('SELECT name, value FROM high_water')
  /** @type {Map<Name, number>} */
  const highest = new Map(stored.all().map(({ name, value }) => [name, value]))

  return {
    highest,

    /** @param {Name} name @param {number} value */
    raise (name, value) {
      raiseStored.run(name, value)
      highest.set(name, Math.max(value, highest.get(name) ?? 0))
    },

    /** @param {Name} name @returns {number} 0 if none was used yet */
    read (name) { return highest.get(name) ?? 0 },

    /** @param {{ highest: ReadonlyMap<Name, number> }} other */
    adopt (other) {
      for (const [name, value] of other.highest) this.raise(name, value)
    }
  }
}
