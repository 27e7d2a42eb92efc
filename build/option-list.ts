import { z } from 'zod'
import { fieldAt, innerOf, OPTIONS, SCHEMA } from '../server/config/options.ts'
import type { Option, Plain } from '../server/config/option-list.ts'

/** What JSON Schema says of a field in full; others have a refinement or a transformation. */
const CHECKS = ['greater_than', 'less_than', 'min_length', 'number_format', 'string_format']
const KEYWORDS = new Set(['$schema', 'type', 'minimum', 'maximum', 'minLength', 'pattern', 'enum', 'const', 'anyOf',
  'items'])

/** @returns server/config/option-list.ts as plain data */
export function optionListText (): string {
  return `export const OPTIONS = ${JSON.stringify(plainOptions())}\nexport const DEFAULTS = ${
    JSON.stringify(SCHEMA.parse({}))
  }\n`
}

export function plainOptions (): Option[] {
  return OPTIONS.map((option) => ({ ...option, plain: plainOf(fieldAt(option.path)) }))
}

/** Undefined: only the field itself knows what it takes */
function plainOf (field: z.ZodType): Plain | undefined {
  const inner = innerOf(field)
  if (inner) return plainOf(inner)
  return isSaid(field) ? withoutName(z.toJSONSchema(field)) : undefined
}

/** Tells whether JSON Schema says all of it */
function isSaid (field: z.core.$ZodType): boolean {
  const { def } = (field as z.core.$ZodTypes)._zod
  if (!(def.checks ?? []).every((check) => isSaidOf(check as z.core.$ZodChecks))) return false
  if (def.type === 'array') return isSaid(def.element)
  return def.type === 'union'
    ? def.options.every(isSaid)
    : ['boolean', 'enum', 'literal', 'number', 'string'].includes(def.type)
}

/** A pattern has no flags there. */
function isSaidOf ({ _zod: { def } }: z.core.$ZodChecks) {
  return CHECKS.includes(def.check) &&
    (def.check !== 'string_format' || (def.format === 'regex' && def.pattern?.flags === ''))
}

function withoutName ({ $schema, ...schema }: z.core.JSONSchema.BaseSchema) {
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword))
  if (unknown !== undefined) throw new Error(`server/config/plain-values.ts does not know ${unknown}`)
  return schema as Plain
}
