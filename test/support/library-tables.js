import { SCHEMA } from '../../server/config/options.js'
import { EVENT_TYPES } from '../../server/events/kinds.js'

/** Where zod knows only what comes out. @type {Record<string, string>} */
const ALSO_TAKEN = { 'ready.status': 'number | string | (number | string)[]' }

const OF_FLAGS_AND_FILES = /; in the config file only$| \(separated by \w+\)$/

/** @type {Record<string, (def: any, path: string) => string>} by the name that zod has for it */
const TYPES = {
  string: () => 'string',
  number: () => 'number',
  boolean: () => 'boolean',
  null: () => 'null',
  literal: ({ values }) => values.map(quoted).join(' | '),
  enum: ({ entries }) => Object.values(entries).map(quoted).join(' | '),
  union: ({ options }, path) => [...new Set(options.map((/** @type {any} */ each) => typeOf(each, path)))].join(' | '),
  array: ({ element }, path) => `${typeOf(element, path)}[]`,
  record: ({ keyType, valueType }, path) => `Record<${typeOf(keyType, path)}, ${typeOf(valueType, path)}>`,
  object: ({ shape }, path) => `{ ${Object.entries(shape).map(([name, field]) => `${name}${isOptional(field) ? '?' : ''}: ${typeOf(field, path)}`).join(', ')} }`
}

/** The types of the library that follow from the tables of options and events, as a module. */
export function libraryTables () {
  return `// Made from the tables of options and events by \`node test/support/manual-tables.js\`.

/** @typedef {${EVENT_TYPES.map(quoted).join(' | ')}} EventType */

/**
 * What a config file can say.
 * @typedef {object} DeckOptions
${propertiesOf(SCHEMA, []).join('\n')}
 */

export {}
`
}

/** @param {any} schema @param {string[]} above @returns {string[]} */
function propertiesOf (schema, above) {
  return Object.entries(schema.shape).flatMap(([key, field]) => {
    const name = [...above, key].join('.')
    const inner = unwrapped(field)
    if (inner.def.type === 'object' && !isOption(field)) return [` * @property {object} [${name}]`, ...propertiesOf(inner, [...above, key])]
    return [` * @property {${ALSO_TAKEN[name] ?? typeOf(field, name)}} [${name}]  ${aboutOf(field)}`]
  })
}

/** @param {any} field @param {string} path @returns {string} */
function typeOf (field, path) {
  const { def } = unwrapped(field)
  if (!TYPES[def.type]) throw new Error(`no type for a ${def.type} of zod, at ${path}`)
  return TYPES[def.type](def, path)
}

/** @param {any} field with or without its default */
function aboutOf (field) {
  const description = metaOf(field).description.replace(OF_FLAGS_AND_FILES, '')
  const fallback = field.safeParse(undefined).data
  const isShown = fallback !== undefined && (typeof fallback !== 'object' || fallback.length > 0)
  return isShown ? `${description}; default: \`${[fallback].flat().join(' ')}\`` : description
}

/** @param {any} field @returns {any} */
function metaOf (field) {
  return field.meta() ?? metaOf(field.def.innerType)
}

/** @param {any} field @returns {boolean} a group has no description of its own */
function isOption (field) {
  return field !== undefined && (field.meta() !== undefined || isOption(field.def.innerType))
}

/** @param {any} field @returns {any} */
function unwrapped (field) {
  return field.def.innerType ? unwrapped(field.def.innerType) : field
}

/** @param {any} field */
function isOptional (field) {
  return ['optional', 'default'].includes(field.def.type)
}

/** @param {unknown} text */
function quoted (text) {
  return `'${text}'`
}
