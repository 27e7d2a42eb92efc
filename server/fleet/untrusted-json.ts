import { z } from 'zod'
import { attempt } from '../errors.ts'

/** `read`: parses the JSON. Returns null: it has another shape. */
export function parseUntrusted<S extends z.ZodType> (schema: S, read: () => unknown): z.infer<S> | null {
  // It is no text, no JSON, or too deep for the stack.
  return attempt(() => schema.safeParse(read()).data ?? null)
}

export function textUpTo (chars: number) {
  return z.string().max(chars)
}

export const time = textUpTo(40).meta({ format: 'date-time', description: 'ISO 8601, UTC' })

/** A deeper value can be parsed, but not written again: the stack is too small. */
const MAX_DEPTH = 100

/** `value`: of JSON */
export function isShallow (value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return true
  return depth < MAX_DEPTH && Object.values(value).every((each) => isShallow(each, depth + 1))
}
