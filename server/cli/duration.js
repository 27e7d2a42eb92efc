import { parseDuration } from '../config/duration.js'
import { DeckError } from '../errors.js'

// The longest that a Node timer can wait.
const MAX_MS = 2 ** 31 - 1

/**
 * @param {string} option what it was given for
 * @param {string} text such as `500ms`, `30s`, `5m`, `1h`
 * @returns {number} ms
 * @throws {DeckError} usage
 */
export function checkedDuration (option, text) {
  const ms = parseDuration(text)
  if (ms !== null && ms > 0 && ms <= MAX_MS) return ms
  throw new DeckError('usage', `${option}: expected a duration such as 500ms, 30s, 5m or 1h, received ${JSON.stringify(text)}`)
}
