import { DeckError } from '../errors.js'

/**
 * Reads from the history, or returns a substitute if it fails: the rest of a page still works.
 * @template T @param {() => T} work @param {T} otherwise
 * @returns {T}
 * @throws {DeckError} invalid-query
 */
export function readOr (work, otherwise) {
  try {
    return work()
  } catch (error) {
    if (error instanceof DeckError && error.code === 'invalid-query') throw error
    return otherwise
  }
}
