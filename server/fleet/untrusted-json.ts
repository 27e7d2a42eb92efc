import { z } from 'zod'

/** `read`: parses the JSON. Returns null: it has another shape. */
export function parseUntrusted<S extends z.ZodType> (schema: S, read: () => unknown): z.infer<S> | null {
  try {
    return schema.safeParse(read()).data ?? null
  } catch {
    // It is no text, no JSON, or too deep for the stack.
    return null
  }
}

export function textUpTo (chars: number) {
  return z.string().max(chars)
}

/** Accepts a time as `toISOString` of any member writes it. */
export const isoTime = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/)

/** A deeper value can be parsed, but not written again: the stack is too small. */
const MAX_DEPTH = 100

/** `value`: of JSON */
export function isShallow (value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth < MAX_DEPTH && Object.values(value).every((each) => isShallow(each, depth + 1))
}
