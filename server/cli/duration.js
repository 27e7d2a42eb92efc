import { parseDuration } from '../config/duration.js'
import { DeckError } from '../errors.js'

const DEFAULT_TIMEOUT = '5m'
// A Node timer cannot wait longer.
const MAX_MS = 2 ** 31 - 1

/**
 * @param {string} option for the message
 * @param {string} text such as `500ms`, `30s`, `5m`, `1h`
 * @returns {number} ms
 * @throws {DeckError} usage
 */
export function checkedDuration (option, text) {
  const ms = parseDuration(text)
  if (ms !== null && ms > 0 && ms <= MAX_MS) return ms
  throw new DeckError('usage', `${option}: expected a duration such as 500ms, 30s, 5m or 1h, received ${JSON.stringify(text)}`)
}

/** @param {string} option @param {string | undefined} text @returns {number | undefined} ms @throws {DeckError} usage */
export function optionalDuration (option, text) {
  return text === undefined ? undefined : checkedDuration(option, text)
}

/**
 * Tells how long a command may take.
 * @param {{ timeout?: string }} options @param {Record<string, string | undefined>} env
 * @returns {{ timeoutMs: number, text: string }} `text`: as it was given
 * @throws {DeckError} usage
 */
export function timeoutOf ({ timeout }, env) {
  const text = timeout ?? (env.CLUSTERDECK_TIMEOUT || DEFAULT_TIMEOUT)
  const option = timeout === undefined && env.CLUSTERDECK_TIMEOUT ? 'CLUSTERDECK_TIMEOUT' : '--timeout'
  return { timeoutMs: checkedDuration(option, text), text }
}
