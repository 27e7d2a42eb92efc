import { ID } from '../config/id.js'
import { DeckError } from '../errors.js'

/**
 * @param {string} name the command or option, for the message @param {string | undefined} text @param {string} [of]
 * @returns {number}
 * @throws {DeckError} usage
 */
export function checkedId (name, text, of = 'a worker') {
  if (text !== undefined && ID.test(text)) return Number(text)
  throw new DeckError('usage', `${name}: expected the id of ${of}, received ${text === undefined ? 'nothing' : JSON.stringify(text)}`)
}
