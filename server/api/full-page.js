import { DeckError } from '../errors.js'
import { nextTurn } from './turn.js'

/** @typedef {import('../events/stream.js').DeckEvent} DeckEvent */

const DEFAULT_LIMIT = 100
// A search that finds little reads for so many turns of the loop, a few milliseconds each; then its caller goes on.
const MAX_TURNS = 50

/**
 * As many events as were asked for. The history ends a page when it has held the loop for long enough; here the loop
 * turns in between, so a caller meets a short page only in a long search.
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
 * A page that follows another one of the same call: what is no longer kept since then is the end.
 * @param {Pick<import('../../db/history.js').History, 'page'>} history
 * @param {import('../../db/event-search.js').EventQuery} query
 */
export function pageAfter (history, query) {
  return readAfter(() => history.page(query), { items: [], next: null })
}

/**
 * What follows on a part of the same call.
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
