import { z } from 'zod'
import { fieldAt, OPTIONS, SCHEMA } from '../server/config/options.js'

/** @typedef {import('../server/config/option-list.js').Option} Option */
/** @typedef {import('../server/config/option-list.js').Plain} Plain */

/** What JSON Schema says of a field in full; others have a refinement or a transformation. */
const CHECKS = ['greater_than', 'less_than', 'min_length', 'number_format', 'string_format']
const KEYWORDS = new Set(['$schema', 'type', 'minimum', 'maximum', 'minLength', 'pattern', 'enum', 'const', 'anyOf', 'items'])

/** @returns {string} server/config/option-list.js as plain data */
export function optionListText () {
  return `export const OPTIONS = ${JSON.stringify(plainOptions())}\nexport const DEFAULTS = ${JSON.stringify(SCHEMA.parse({}))}\n`
}

/** @returns {Option[]} */
export function plainOptions () {
  return OPTIONS.map((option) => ({ ...option, plain: plainOf(fieldAt(option.path)) }))
}

/** @param {z.ZodType} field @returns {Plain | undefined} undefined: only the field itself knows what it takes */
function plainOf (field) {
  const inner = /** @type {any} */ (field).def.innerType
  if (inner) return plainOf(inner)
  return isSaid(field) ? withoutName(z.toJSONSchema(field)) : undefined
}

/** @param {any} field @returns {boolean} whether JSON Schema says all of it */
function isSaid ({ def }) {
  const { type, checks = [], options = [], element } = def
  if (!['array', 'boolean', 'enum', 'literal', 'number', 'string', 'union'].includes(type)) return false
  if (!checks.every((/** @type {any} */ check) => isSaidOf(check._zod.def))) return false
  return [...options, ...element ? [element] : []].every(isSaid)
}

/** A pattern has no flags there. @param {any} check */
function isSaidOf ({ check, format, pattern }) {
  return CHECKS.includes(check) && (check !== 'string_format' || (format === 'regex' && pattern.flags === ''))
}

/** @param {Record<string, any>} schema @returns {any} */
function withoutName ({ $schema, ...schema }) {
  const unknown = Object.keys(schema).find((keyword) => !KEYWORDS.has(keyword))
  if (unknown !== undefined) throw new Error(`server/config/plain-values.js does not know ${unknown}`)
  return schema
}
