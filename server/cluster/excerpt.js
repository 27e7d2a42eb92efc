import { isRecord } from './unanswered.js'

const MAX_CHARS = 2000
/** Beyond this depth JSON.stringify() could run out of stack when the value is stored. */
const MAX_DEPTH = 8
/** A number, a brace or a comma counts as this many characters. */
const CHARS_OF_OTHERS = 8

/**
 * Copies the part of a value that is worth keeping; `…` stands for the rest, which is never looked at.
 * @param {unknown} value  as JSON.parse() has made it
 * @returns {unknown} a copy
 */
export function excerpt (value) {
  let room = MAX_CHARS
  return takeValue(value, 0)

  /** @param {unknown} value @param {number} depth @returns {unknown} */
  function takeValue (value, depth) {
    if (typeof value === 'string') return takeText(value)
    room -= CHARS_OF_OTHERS
    if (!isRecord(value)) return value
    if (depth === MAX_DEPTH) return '…'
    return Array.isArray(value) ? takeList(value, depth + 1) : takeObject(value, depth + 1)
  }

  /** @param {string} text */
  function takeText (text) {
    const kept = text.slice(0, Math.max(0, room))
    room -= kept.length + CHARS_OF_OTHERS
    return kept.length < text.length ? `${kept}…` : text
  }

  /** @param {unknown[]} list @param {number} depth */
  function takeList (list, depth) {
    const kept = []
    for (const item of list) {
      if (room <= 0) return [...kept, '…']
      kept.push(takeValue(item, depth))
    }
    return kept
  }

  /** @param {Record<string, unknown>} object @param {number} depth */
  function takeObject (object, depth) {
    /** @type {[string, unknown][]} */
    const kept = []
    for (const name in object) {
      if (room <= 0) return Object.fromEntries([...kept, ['…', '…']])
      kept.push([takeText(name), takeValue(object[name], depth)])
    }
    return Object.fromEntries(kept)
  }
}
