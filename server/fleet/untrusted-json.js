import { z } from 'zod'

/**
 * @template {z.ZodType} S @param {S} schema @param {() => unknown} read  parses the JSON
 * @returns {z.infer<S> | null} null: it has another shape
 */
export function parseUntrusted (schema, read) {
  try {
    return schema.safeParse(read()).data ?? null
  } catch {
    // It is no text, no JSON, or too deep for the stack.
    return null
  }
}

/** @param {number} chars */
export function textUpTo (chars) {
  return z.string().max(chars)
}

/** Accepts a time as `toISOString` of any member writes it. */
export const isoTime = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/)

/** A deeper value can be parsed, but not written again: the stack is too small. */
const MAX_DEPTH = 100

/** @param {unknown} value  of JSON @returns {boolean} */
export function isShallow (value, depth = 0) {
  if (typeof value !== 'object' || value === null) return true
  return depth < MAX_DEPTH && Object.values(value).every((each) => isShallow(each, depth + 1))
}
