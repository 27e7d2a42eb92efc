import { startBudget } from './budget.ts'
import { COLUMNS, toEvent, type EventRow } from './events.ts'
import type { DeckEvent } from '../server/events/stream.ts'
import type { Db, Rows } from './sqlite.ts'

// Keeps which events were published to the fleet.

/** see the table in 001-schema.sql */
export type OutboxRow = { source: string, since: number, published: number, place: number | null }

/** `clock`: monotonic ms */
export function createOutbox (db: Db, { clock }: { clock: () => number }) {
  const select: Rows<OutboxRow> = db.prepare('SELECT source, since, published, place FROM outbox')
  const replace = db.prepare(
    'INSERT OR REPLACE INTO outbox (one, source, since, published, place) VALUES (1, @source, @since, @published, @place)'
  )
  const following: Rows<EventRow> = db.prepare(`SELECT ${COLUMNS} FROM events WHERE id > ? ORDER BY id LIMIT ?`)

  return {
    /** Null: nothing was published yet */
    read: (): OutboxRow | null => select.get() ?? null,

    write (row: OutboxRow) {
      replace.run(row)
    },

    /** The events after this id, oldest first. There may be fewer than `limit`, but none only at the end. */
    after (id: number, limit: number): DeckEvent[] {
      const budget = startBudget(clock)
      const events: DeckEvent[] = []
      for (const row of following.iterate(id, limit)) {
        events.push(toEvent(row))
        if (budget.isSpent()) break
      }
      return events
    }
  }
}
