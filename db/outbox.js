import { startBudget } from './budget.js'
import { COLUMNS, toEvent } from './events.js'

/**
 * The events that are published to the fleet, and how far that has come.
 * @typedef {import('../server/events/stream.js').DeckEvent} DeckEvent
 * @typedef {ReturnType<typeof createOutbox>} Outbox
 * @typedef {{ source: string, since: number, published: number, place: number | null }} OutboxRow  see the table in 001-schema.sql
 */

/**
 * @param {import('./open.js').Db} db
 * @param {{ clock: () => number }} parts `clock`: monotonic ms
 */
export function createOutbox (db, { clock }) {
  const select = db.prepare('SELECT source, since, published, place FROM outbox')
  const replace = db.prepare('INSERT OR REPLACE INTO outbox (one, source, since, published, place) VALUES (1, @source, @since, @published, @place)')
  const following = db.prepare(`SELECT ${COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?`)

  return {
    /** @returns {OutboxRow | null} null: nothing was told yet */
    read: () => /** @type {OutboxRow | undefined} */ (select.get()) ?? null,

    /** @param {OutboxRow} row */
    write (row) { replace.run(row) },

    /**
     * Those that follow on one, oldest first, and fewer where its time is spent; none: there are no more.
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
