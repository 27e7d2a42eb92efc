import { DeckError } from '../errors.js'

const UNIT_MS = Object.freeze({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 })
// The longest that a Node timer can wait.
const MAX_MS = 2 ** 31 - 1

/**
 * @param {string} option what it was given for
 * @param {string} text such as `500ms`, `30s`, `5m`, `1h`
 * @returns {number} ms
 * @throws {DeckError} invalid-config
 */
export function parseDuration (option, text) {
  const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  const ms = unit === undefined ? NaN : Number(count) * UNIT_MS[/** @type {keyof typeof UNIT_MS} */ (unit)]
  if (ms > 0 && ms <= MAX_MS) return ms
  throw new DeckError('invalid-config', `${option}: expected a duration such as 500ms, 30s, 5m or 1h, received ${JSON.stringify(text)}`)
}

/**
 * @param {number} ms
 * @returns {string} in its two largest units: `1.2s`, `3m 5s`, `2d 4h`
 */
export function formatDuration (ms) {
  if (ms < 1000) return `${Math.round(ms)}ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`
  const seconds = Math.round(ms / 1000)
  const parts = [[Math.floor(seconds / 86_400), 'd'], [Math.floor(seconds / 3600) % 24, 'h'], [Math.floor(seconds / 60) % 60, 'm'], [seconds % 60, 's']]
  const first = parts.findIndex(([count]) => count !== 0)
  return parts.slice(first, first + 2).filter(([count]) => count !== 0).map(([count, unit]) => `${count}${unit}`).join(' ')
}
