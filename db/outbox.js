import { startBudget } from './budget.js'
import { COLUMNS, toEvent } from './events.js'

/**
 * Keeps which events were published to the fleet.
 * @typedef {import('../server/events/stream.js').DeckEvent} DeckEvent
 * @typedef {ReturnType<typeof createOutbox>} Outbox
 * @typedef {{ source: string, since: number, published: number, place: number | null }} OutboxRow  see the table in 001-schema.sql
 */

/**
 * @param {import('./open.js').Db} db
 * @param {{ clock: () => number }} parts `clock`: monotonic ms
 */
export function createOutbox (db, { clock }) {
  /** @type {import('./sqlite.js').Rows<OutboxRow>} */
  const select = db.prepare('SELECT source, since, published, place FROM outbox')
  const replace = db.prepare('INSERT OR REPLACE INTO outbox (one, source, since, published, place) VALUES (1, @source, @since, @published, @place)')
  /** @type {import('./sqlite.js').Rows<import('./events.js').EventRow>} */
  const following = db.prepare(`SELECT ${COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?`)

  return {
    /** @returns {OutboxRow | null} null: nothing was published yet */
    read: () => select.get() ?? null,

    /** @param {OutboxRow} row */
    write (row) { replace.run(row) },

    /**
     * The events after this id, oldest first. There may be fewer than `limit`, but none only at the end.
     * @param {number} id @param {number} limit @returns {DeckEvent[]}
     */
    after (id, limit) {
      const budget = startBudget(clock)
      /** @type {DeckEvent[]} */
      const events = []
      for (const row of following.iterate(id, limit)) {
        events.push(toEvent(row))
        if (budget.isSpent()) break
      }
      return events
    }
  }
}
