import type { Schema } from './openapi.ts'

/** Makes an example from a JSON Schema: its own example, else the simplest value that it allows. `components`: by name, what the schema refers to. */
export function exampleOf (schema: Schema, components: Record<string, Schema>): unknown {
  const { $ref, examples, anyOf, enum: values, type } = schema
  if (examples) return examples[0]
  if ('const' in schema) return schema.const
  if (values) return values[0]
  if ($ref) return exampleOf(components[$ref.slice($ref.lastIndexOf('/') + 1)], components)
  if (anyOf) return exampleOf(anyOf.find((each) => each.type !== 'null') ?? {}, components)
  if (type === 'array') return [exampleOf(schema.items ?? {}, components)]
  if (type === 'object')
    return Object.fromEntries(
      Object.entries(schema.properties ?? {}).map(([key, each]) => [key, exampleOf(each, components)])
    )
  return simplestValue(schema)
}

function simplestValue ({ type, format, minimum = 0 }: Schema) {
  if (format === 'date-time') return '2026-01-31T12:00:00.000Z'
  if (format === 'uri') return 'http://127.0.0.1:9777/'
  if (type === 'integer' || type === 'number') return minimum
  if (type === 'boolean') return false
  return type === 'string' ? 'text' : null
}
