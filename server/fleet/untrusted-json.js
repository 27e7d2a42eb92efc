import { z } from 'zod'

/**
 * What has come from elsewhere, where it looks as it should.
 * @template {z.ZodType} S @param {S} schema @param {() => unknown} read  JSON
 * @returns {z.infer<S> | null} null: it is none of these
 */
export function parseUntrusted (schema, read) {
  try {
    return schema.safeParse(read()).data ?? null
  } catch {
    // No text, no JSON, or so deep that the stack does not reach.
    return null
  }
}

/** @param {number} chars */
export function textUpTo (chars) {
  return z.string().max(chars)
}

/** What is deeper can be read, but not written again: the stack does not reach. */
const MAX_DEPTH = 100

/** @param {unknown} value  of JSON @returns {boolean} */
export function isShallow (value, depth = 0) {
  if (typeof value !== 'object' || value === null) return true
  return depth < MAX_DEPTH && Object.values(value).every((each) => isShallow(each, depth + 1))
}
