import { DeckError } from '../server/errors.ts'
import { startBudget } from './budget.ts'
import { cursorAt, FIRST_CHUNK, resizeChunk, type EventQuery, type EventSearch, type Search } from './event-search.ts'
import { toEvent } from './events.ts'
import type { DeckEvent } from '../server/events/stream.ts'

const MAX_LIMIT = 1000
// Every page may read so many rows, however long it takes: on a busy machine a short list should not come in pieces.
const FREE_ROWS = 96

/**
 * Reads the history newest first, page by page, within the time that one call may hold the loop. When that is spent,
 * the page has fewer items than asked for and a cursor. `clock`: monotonic ms.
 */
export function createEventPages (search: EventSearch, { clock }: { clock: () => number }) {
  return { page: readPage }

  function readPage (query: EventQuery = {}): { items: DeckEvent[], next: string | null } {
    const limit = checkedLimit(query.limit)
    const found = search.begin(query)
    return found === null ? { items: [], next: null } : collectRows(found, limit)
  }

  function collectRows ({ filters, range, conditions }: Search, limit: number) {
    const budget = startBudget(clock)
    const items: DeckEvent[] = []
    let { newest } = range
    let chunk = FIRST_CHUNK
    let examined = 0
    const isSpent = () => examined >= FREE_ROWS && budget.isSpent()
    while (newest >= range.oldest) {
      const beganAt = budget.elapsedMs()
      const lead = search.leadingFilter(filters, { newest, oldest: range.oldest }, chunk)
      for (const row of search.rows(lead, { newest, oldest: lead.oldest }, conditions)) {
        const last = items.at(-1)
        if (last && (items.length === limit || isSpent())) return { items, next: cursorAt(last.id) }
        items.push(toEvent(row))
      }
      newest = lead.oldest - 1
      examined += chunk
      if (isSpent()) break
      chunk = resizeChunk(chunk, budget.elapsedMs() - beganAt)
    }
    return { items, next: newest >= range.oldest ? cursorAt(newest + 1) : null }
  }
}

function checkedLimit (limit: number | undefined = 100) {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new DeckError('invalid-query',
    `limit: expected an integer from 1 to ${MAX_LIMIT}, received ${JSON.stringify(limit)}`)
}
