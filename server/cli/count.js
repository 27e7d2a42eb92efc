import { DeckError } from '../errors.js'

/**
 * @param {string} what  an option, or a command with one word @param {string} text @param {{ min?: number, max: number }} range
 * @returns {number}
 * @throws {DeckError} usage
 */
export function checkedCount (what, text, { min = 1, max }) {
  const count = /^\d+$/.test(text) && text.length <= String(max).length ? Number(text) : NaN
  if (count >= min && count <= max) return count
  throw new DeckError('usage', `${what}: expected an integer from ${min} to ${max}, received ${JSON.stringify(text)}`)
}
