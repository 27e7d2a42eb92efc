import { z } from 'zod'
import { crashFilters, paging } from './filters.js'
import { parseId } from './input.js'

/**
 * @param {object} parts
 * @param {Pick<import('../deck.js').Deck, 'crashes'>} parts.deck
 * @param {() => number} parts.now
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function crashResources ({ deck, now }) {
  const listQuery = z.strictObject({ ...crashFilters(now), ...paging(100) })

  return {
    '/crashes': { GET: { query: listQuery, handle: ({ query }) => ({ body: deck.crashes.page(query) }) } },
    '/crashes/:id': { GET: { handle: ({ id }) => ({ body: deck.crashes.find(id) }) } },
    '/crashes/:id/occurrences/:n': { GET: { handle: ({ id, req }) => ({ body: deck.crashes.occurrence(id, parseId(req.params.n)) }) } },
    '/crashes/:id/resolve': { POST: action('resolve') },
    '/crashes/:id/mute': { POST: action('mute') },
    '/crashes/:id/reopen': { POST: action('reopen') }
  }

  /** @param {import('../crashes/crashes.js').CrashAction} name @returns {import('./endpoint.js').Endpoint} */
  function action (name) {
    return { handle: ({ id, auth }) => ({ body: deck.crashes.act(id, name, auth.actor) }) }
  }
}
