/**
 * What has come from elsewhere, where it looks as it should.
 * @template {import('zod').ZodType} S @param {S} schema @param {() => unknown} read  JSON
 * @returns {import('zod').infer<S> | null} null: it is none of these
 */
export function incoming (schema, read) {
  try {
    return schema.safeParse(read()).data ?? null
  } catch {
    // No text, no JSON, or so deep that the stack does not reach.
    return null
  }
}
