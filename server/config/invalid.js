import { DeckError } from '../errors.js'

/** @param {string} source the name under which the value was given @param {string} expected @param {unknown} received what was received, in words */
export function invalid (source, expected, received) {
  return new DeckError('invalid-config', `${source}: expected ${expected}, received ${received}`)
}
