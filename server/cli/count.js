import { DeckError } from '../errors.js'

/**
 * @param {string} option @param {string} text @param {{ min?: number, max: number }} range
 * @returns {number}
 * @throws {DeckError} usage
 */
export function checkedCount (option, text, { min = 1, max }) {
  const count = /^\d+$/.test(text) && text.length <= String(max).length ? Number(text) : NaN
  if (count >= min && count <= max) return count
  throw new DeckError('usage', `${option}: expected an integer from ${min} to ${max}, received ${JSON.stringify(text)}`)
}
