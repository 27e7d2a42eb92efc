import { isRecord } from './unanswered.ts'

const MAX_CHARS = 2000
/** Beyond this depth JSON.stringify() could run out of stack when the value is stored. */
const MAX_DEPTH = 8
/** A number, a brace or a comma counts as this many characters. */
const CHARS_OF_OTHERS = 8

/**
 * Copies the part of a value that is worth keeping; `…` stands for the rest, which is never looked at. `value`: as
 * JSON.parse() has made it. Returns a copy.
 */
export function excerpt (value: unknown): unknown {
  let room = MAX_CHARS
  return takeValue(value, 0)

  function takeValue (value: unknown, depth: number): unknown {
    if (typeof value === 'string') return takeText(value)
    room -= CHARS_OF_OTHERS
    if (!isRecord(value)) return value
    if (depth === MAX_DEPTH) return '…'
    return Array.isArray(value) ? takeList(value, depth + 1) : takeObject(value, depth + 1)
  }

  function takeText (text: string) {
    const kept = text.slice(0, Math.max(0, room))
    room -= kept.length + CHARS_OF_OTHERS
    return kept.length < text.length ? `${kept}…` : text
  }

  function takeList (list: unknown[], depth: number) {
    const kept = []
    for (const item of list) {
      if (room <= 0) return [...kept, '…']
      kept.push(takeValue(item, depth))
    }
    return kept
  }

  function takeObject (object: Record<string, unknown>, depth: number) {
    const kept: [string, unknown][] = []
    for (const name in object) {
      if (room <= 0) return Object.fromEntries([...kept, ['…', '…']])
      kept.push([takeText(name), takeValue(object[name], depth)])
    }
    return Object.fromEntries(kept)
  }
}
