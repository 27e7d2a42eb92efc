import { z } from 'zod'
import { DeckError } from '../errors.js'

/** RFC 9110, 8.8.3: all tags here are strong. */
const TAG = /(?:W\/)?"[\x21\x23-\x7e]*"/g

export const IF_MATCH = z.string().describe('the `ETag` of the state that you have seen, or `*` for any')

/** @param {string | number} state of what is answered @returns {string} its ETag */
export function tagOf (state) {
  return `"${state}"`
}

/**
 * If two people change the same thing, the second one is refused until they have seen the first change.
 * @param {import('./endpoint.js').Request} req
 * @param {string} tag  of what there is
 * @param {{ isRequired: boolean }} how
 * @throws {DeckError} precondition-required, precondition-failed
 */
export function checkMatch ({ headers }, tag, { isRequired }) {
  const wanted = headers['if-match']
  if (wanted === undefined && isRequired) throw new DeckError('precondition-required', 'If-Match: expected the ETag of a GET, received nothing')
  if (wanted === undefined || wanted.trim() === '*' || wanted.match(TAG)?.includes(tag)) return
  throw new DeckError('precondition-failed', `If-Match: expected ${tag}, received ${JSON.stringify(wanted.slice(0, 100))}; read the current state first`)
}
