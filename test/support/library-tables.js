import { OPTIONS, SCHEMA } from '../../server/config/options.js'
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

/**
${inLines(`@typedef {${EVENT_TYPES.map(quoted).join(' | ')}} EventType`).join('\n')}
 */

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
    const option = OPTIONS.find((each) => each.name === name)
    if (!option) return [` * @property {object} [${name}]`, ...propertiesOf(inner, [...above, key])]
    return inLines(`@property {${ALSO_TAKEN[name] ?? typeOf(field, name)}} [${name}]  ${aboutOf(option)}`)
  })
}

/** @param {any} field @param {string} path @returns {string} */
function typeOf (field, path) {
  const { def } = unwrapped(field)
  if (!TYPES[def.type]) throw new Error(`no type for a ${def.type} of zod, at ${path}`)
  return TYPES[def.type](def, path)
}

/** @param {import('../../server/config/options.js').Option} option */
function aboutOf ({ description, fallback }) {
  const about = description.replace(OF_FLAGS_AND_FILES, '')
  const isShown = fallback !== undefined && (!Array.isArray(fallback) || fallback.length > 0) && fallback?.constructor !== Object
  return isShown ? `${about}; default: \`${[fallback].flat().join(' ')}\`` : about
}

/** @param {string} text @returns {string[]} lines of a comment */
function inLines (text) {
  return text.match(/.{1,150}(?= |$)/g)?.map((line, index) => ` * ${index === 0 ? line : ` ${line}`}`) ?? []
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
