import { DeckError } from '../errors.js'
import { nextTurn } from './turn.js'

/** @typedef {import('../events/stream.js').DeckEvent} DeckEvent */

const DEFAULT_LIMIT = 100
// A search reads for at most so many turns of the event loop, a few milliseconds each.
const MAX_TURNS = 50

/**
 * Reads as many events as requested. A page of the history ends early, to spare the event loop; this reads on in further
 * turns, so that only a long search returns a short page.
 * @param {Pick<import('../../db/history.js').History, 'page'>} history
 * @param {import('../../db/event-search.js').EventQuery} query
 * @returns {Promise<{ items: DeckEvent[], next: string | null }>}
 */
export async function fullPage (history, query) {
  const limit = query.limit ?? DEFAULT_LIMIT
  let { items, next } = history.page(query)
  for (let turn = 1; next !== null && items.length < limit && turn < MAX_TURNS; turn++) {
    await nextTurn()
    const page = pageAfter(history, { ...query, limit: limit - items.length, cursor: next })
    items = [...items, ...page.items]
    next = page.next
  }
  return { items, next }
}

/**
 * Reads the next page of the same call; it is empty if those events are no longer kept.
 * @param {Pick<import('../../db/history.js').History, 'page'>} history
 * @param {import('../../db/event-search.js').EventQuery} query
 */
export function pageAfter (history, query) {
  return readAfter(() => history.page(query), { items: [], next: null })
}

/**
 * Reads the next part of the same call.
 * @template Part @param {() => Part} read @param {Part} end  where that is no longer kept since then
 * @returns {Part}
 */
export function readAfter (read, end) {
  try {
    return read()
  } catch (error) {
    if (error instanceof DeckError && error.code === 'cursor-expired') return end
    throw error
  }
}
