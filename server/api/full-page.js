import { setImmediate as nextTurn } from 'node:timers/promises'

/** @typedef {import('../events/stream.js').DeckEvent} DeckEvent */

const DEFAULT_LIMIT = 100
// A search that finds little reads for so many turns of the loop, a few milliseconds each; then its caller goes on.
const MAX_TURNS = 50

/**
 * As many events as were asked for. The history ends a page when it has held the loop for long enough; here the loop
 * turns in between, so a caller meets a short page only in a long search.
 * @param {Pick<import('../../db/history.js').History, 'page'>} history
 * @param {import('../../db/event-pages.js').EventQuery} query
 * @returns {Promise<{ items: DeckEvent[], next: string | null }>}
 */
export async function fullPage (history, query) {
  const limit = query.limit ?? DEFAULT_LIMIT
  let { items, next } = history.page(query)
  for (let turn = 1; next !== null && items.length < limit && turn < MAX_TURNS; turn++) {
    await nextTurn()
    const page = history.page({ ...query, limit: limit - items.length, cursor: next })
    items = [...items, ...page.items]
    next = page.next
  }
  return { items, next }
}
