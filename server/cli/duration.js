import { parseDuration } from '../config/duration.js'
import { DeckError } from '../errors.js'

const DEFAULT_TIMEOUT = '5m'
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

/**
 * How long a command may take.
 * @param {{ timeout?: string }} options @param {Record<string, string | undefined>} env
 * @returns {{ timeoutMs: number, text: string }} `text`: as it was given
 * @throws {DeckError} usage
 */
export function timeoutOf ({ timeout }, env) {
  const text = timeout ?? (env.CLUSTERDECK_TIMEOUT || DEFAULT_TIMEOUT)
  return { timeoutMs: checkedDuration(timeout === undefined && env.CLUSTERDECK_TIMEOUT ? 'CLUSTERDECK_TIMEOUT' : '--timeout', text), text }
}
