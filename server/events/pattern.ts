import { CAUSES } from '../causes.ts'
import { EVENT_TYPES } from './kinds.ts'

/** Tells whether there are such events. `pattern`: `worker.exited`, `worker.*`, `worker.exited:hung`, `*` */
export function isOfAny (pattern: string): boolean {
  return EVENT_TYPES.some((type) =>
    matchesPattern(pattern, type) || CAUSES.some((cause) => matchesPattern(pattern, `${type}:${cause}`))
  )
}

/**
 * Finds each piece as early as possible: a regular expression would try all ways in which many `*` can share a text.
 * `pattern`: `*` stands for any text, also none.
 */
export function matchesPattern (pattern: string, text: string) {
  const [first, ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const piece of others) {
    const found = text.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}
