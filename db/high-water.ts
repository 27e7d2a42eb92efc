import type { Db, Rows } from './sqlite.ts'

type Name = 'event' | 'rollout' | 'release'

/**
 * Keeps the highest number that was ever used for each name, so that no id is used twice after retention has deleted
 * rows. It keeps them in memory too, for the case that the database breaks.
 */
export function createHighWater (db: Db) {
  const raiseStored = db.prepare(`
    INSERT INTO high_water (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`)
  const stored: Rows<{ name: Name, value: number }> = db.prepare('SELECT name, value FROM high_water')
  const highest: Map<Name, number> = new Map(stored.all().map(({ name, value }) => [name, value]))

  return {
    highest,

    raise (name: Name, value: number) {
      raiseStored.run(name, value)
      highest.set(name, Math.max(value, highest.get(name) ?? 0))
    },

    /** @returns 0 if none was used yet */
    read (name: Name): number {
      return highest.get(name) ?? 0
    },

    adopt (other: { highest: ReadonlyMap<Name, number> }) {
      for (const [name, value] of other.highest) this.raise(name, value)
    }
  }
}
