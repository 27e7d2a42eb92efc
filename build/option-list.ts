import { z } from 'zod'
import { fieldAt, OPTIONS, SCHEMA } from '../server/config/options.ts'
import type { Option, Plain } from '../server/config/option-list.ts'

/** What JSON Schema says of a field in full; others have a refinement or a transformation. */
const CHECKS = ['greater_than', 'less_than', 'min_length', 'number_format', 'string_format']
const KEYWORDS = new Set(['$schema', 'type', 'minimum', 'maximum', 'minLength', 'pattern', 'enum', 'const', 'anyOf', 'items'])

/** @returns server/config/option-list.ts as plain data */
export function optionListText (): string {
  return `export const OPTIONS = ${JSON.stringify(plainOptions())}\nexport const DEFAULTS = ${JSON.stringify(SCHEMA.parse({}))}\n`
}

export function plainOptions (): Option[] {
  return OPTIONS.map((option) => ({ ...option, plain: plainOf(fieldAt(option.path)) }))
}

/** @returns undefined: only the field itself knows what it takes */
function plainOf (field: z.ZodType): Plain | undefined {
  const inner = (field as any).def.innerType
  if (inner) return plainOf(inner)
  return isSaid(field) ? withoutName(z.toJSONSchema(field)) : undefined
}

/** @returns whether JSON Schema says all of it */
function isSaid ({ def }: any): boolean {
  const { type, checks = [], options = [], element } = def
  if (!['array', 'boolean', 'enum', 'literal', 'number', 'string', 'union'].includes(type)) return false
  if (!checks.every((check: any) => isSaidOf(check._zod.def))) return false
  return [...options, ...element ? [element] : []].every(isSaid)
}

/** A pattern has no flags there. */
function isSaidOf ({ check, format, pattern }: any) {
  return CHECKS.includes(check) && (check !== 'string_format' || (format === 'regex' && pattern.flags === ''))
}

function withoutName ({ $schema, ...schema }: Record<string, any>): any {
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword))
  if (unknown !== undefined) throw new Error(`server/config/plain-values.ts does not know ${unknown}`)
  return schema
}
