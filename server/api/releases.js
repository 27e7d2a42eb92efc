import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'
import { PAGE_QUERY } from './filters.js'

/**
 * @param {{ deck: Pick<import('../deck.js').Deck, 'releases'> }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function releaseResources ({ deck }) {
  return {
    '/releases': { GET: { query: PAGE_QUERY, handle: ({ query }) => ({ body: deck.releases.list(query) }) } },
    '/releases/:release': { GET: { handle: ({ req }) => ({ body: deck.releases.get(parseRelease(String(req.params.release))) }) } }
  }
}

/** @param {string} text */
function parseRelease (text) {
  if (RELEASE_ID.test(text)) return text
  throw new DeckError('invalid-id', `release: expected an id such as r12, received ${JSON.stringify(text.slice(0, 80))}`)
}
