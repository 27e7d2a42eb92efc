import { DeckError } from '../errors.js'

/**
 * A broken history takes what it holds off a page, and nothing else: the controls of a rollout stay.
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
