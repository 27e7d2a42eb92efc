import { DeckError } from '../errors.ts'

/**
 * Reads from the history, or returns a substitute if it fails: the rest of a page still works.
 * @throws {DeckError} invalid-query
 */
export function readOr<T> (work: () => T, otherwise: T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof DeckError && error.code === 'invalid-query') throw error
    return otherwise
  }
}
