import { ID } from '../config/id.js'
import { DeckError } from '../errors.js'

/** @param {string} name of the command or option @param {string} text @returns {number} the id of a worker @throws {DeckError} usage */
export function checkedId (name, text) {
  if (ID.test(text)) return Number(text)
  throw new DeckError('usage', `${name}: expected the id of a worker, received ${JSON.stringify(text)}`)
}
