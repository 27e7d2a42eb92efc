import { DeckError } from '../server/errors.js'
import { startBudget } from './budget.js'
import { cursorAt, FIRST_CHUNK, resizeChunk } from './event-search.js'
import { toEvent } from './events.js'

/** @typedef {import('../server/events/stream.js').DeckEvent} DeckEvent */
/** @typedef {import('./event-search.js').EventQuery} EventQuery */

const MAX_LIMIT = 1000
// Every page may read so many rows, however long it takes: on a busy machine a short list should not come in pieces.
const FREE_ROWS = 96

/**
 * Reads the history newest first, page by page, within the time that one call may hold the loop. When that is spent, the page
 * has fewer items than asked for and a cursor.
 * @param {import('./event-search.js').EventSearch} search
 * @param {{ clock: () => number }} parts `clock`: monotonic ms
 */
export function createEventPages (search, { clock }) {
  return { page: readPage }

  /** @param {EventQuery} [query] @returns {{ items: DeckEvent[], next: string | null }} */
  function readPage (query = {}) {
    const limit = checkedLimit(query.limit)
    const found = search.begin(query)
    return found === null ? { items: [], next: null } : collectRows(found, limit)
  }

  /** @param {import('./event-search.js').Search} found @param {number} limit */
  function collectRows ({ filters, range, conditions }, limit) {
    const budget = startBudget(clock)
    /** @type {DeckEvent[]} */
    const items = []
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

/** @param {number | undefined} limit */
function checkedLimit (limit = 100) {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new DeckError('invalid-query', `limit: expected an integer from 1 to ${MAX_LIMIT}, received ${JSON.stringify(limit)}`)
}
