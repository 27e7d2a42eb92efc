import { DeckError } from '../server/errors.js'

/**
 * A place in a list that is read newest first. Opaque to callers, so that it may change; `kind` keeps a cursor of one
 * list from being used on another.
 * @param {string} kind one lower-case letter
 * @param {number} beforeId the next page begins below this id
 */
export function encodeCursor (kind, beforeId) {
  return Buffer.from(`${kind}${beforeId}`).toString('base64url')
}

/**
 * @param {string} kind
 * @param {string | null | undefined} cursor
 * @returns {number} the id below which to go on; Infinity without a cursor
 * @throws {DeckError} `invalid-query`
 */
export function decodeCursor (kind, cursor) {
  if (cursor === undefined || cursor === null || cursor === '') return Infinity
  const text = Buffer.from(String(cursor), 'base64url').toString('latin1')
  const id = text.startsWith(kind) && /^\d{1,15}$/.test(text.slice(1)) ? Number(text.slice(1)) : NaN
  // Decoding forgives stray characters; only what encodes back to itself came from here.
  if (Number.isNaN(id) || encodeCursor(kind, id) !== cursor) {
    throw new DeckError('invalid-query', `cursor: expected the "next" of an earlier page, received ${JSON.stringify(String(cursor).slice(0, 60))}`)
  }
  return id
}
