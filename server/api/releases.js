import { z } from 'zod'
import { DeckError } from '../errors.js'
import { integerParam, textParam } from './input.js'

const LIST_QUERY = z.strictObject({
  limit: integerParam(1, 100),
  cursor: textParam('the "next" of an earlier page', /^[\w-]{1,64}$/)
})

/**
 * @param {{ deck: any }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function releaseResources ({ deck }) {
  return {
    '/releases': { GET: { query: LIST_QUERY, handle: ({ query }) => ({ body: deck.releases.list(query) }) } },
    '/releases/:release': { GET: { handle: ({ req }) => ({ body: deck.releases.get(parseRelease(String(req.params.release))) }) } }
  }
}

/** @param {string} text */
function parseRelease (text) {
  if (/^r[1-9]\d{0,8}$/.test(text)) return text
  throw new DeckError('invalid-id', `release: expected an id such as r12, received ${JSON.stringify(text.slice(0, 80))}`)
}
