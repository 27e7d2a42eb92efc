import { OPTIONS, SCHEMA, type Option } from '../../server/config/options.ts'
import { EVENT_TYPES } from '../../server/events/kinds.ts'

/** Where zod knows only what comes out. */
const ALSO_TAKEN: Record<string, string> = { 'ready.status': 'number | string | (number | string)[]' }

const OF_FLAGS_AND_FILES = /; in the config file only$| \(separated by \w+\)$/

/** by the name that zod has for it */
const TYPES: Record<string, (def: any, path: string) => string> = {
  string: () => 'string',
  number: () => 'number',
  boolean: () => 'boolean',
  null: () => 'null',
  literal: ({ values }) => values.map(quoted).join(' | '),
  enum: ({ entries }) => Object.values(entries).map(quoted).join(' | '),
  union: ({ options }, path) => [...new Set(options.map((each: any) => typeOf(each, path)))].join(' | '),
  array: ({ element }, path) => `${typeOf(element, path)}[]`,
  record: ({ keyType, valueType }, path) => `Record<${typeOf(keyType, path)}, ${typeOf(valueType, path)}>`,
  object: ({ shape }, path) => `{ ${Object.entries(shape).map(([name, field]) => `${name}${isOptional(field) ? '?' : ''}: ${typeOf(field, path)}`).join(', ')} }`
}

/** The types of the library that follow from the tables of options and events, as a module. */
export function libraryTables () {
  return `// Made from the tables of options and events by \`node test/support/manual-tables.ts\`.

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

function propertiesOf (schema: any, above: string[]): string[] {
  return Object.entries(schema.shape).flatMap(([key, field]) => {
    const name = [...above, key].join('.')
    const inner = unwrapped(field)
    const option = OPTIONS.find((each) => each.name === name)
    if (!option) return [` * @property {object} [${name}]`, ...propertiesOf(inner, [...above, key])]
    return inLines(`@property {${ALSO_TAKEN[name] ?? typeOf(field, name)}} [${name}]  ${aboutOf(option)}`)
  })
}

function typeOf (field: any, path: string): string {
  const { def } = unwrapped(field)
  if (!TYPES[def.type]) throw new Error(`no type for a ${def.type} of zod, at ${path}`)
  return TYPES[def.type](def, path)
}

function aboutOf ({ description, fallback }: Option) {
  const about = description.replace(OF_FLAGS_AND_FILES, '')
  const isShown = fallback !== undefined && (!Array.isArray(fallback) || fallback.length > 0) && fallback?.constructor !== Object
  return isShown ? `${about}; default: \`${[fallback].flat().join(' ')}\`` : about
}

/** @returns lines of a comment */
function inLines (text: string): string[] {
  return text.match(/.{1,150}(?= |$)/g)?.map((line, index) => ` * ${index === 0 ? line : ` ${line}`}`) ?? []
}

function unwrapped (field: any): any {
  return field.def.innerType ? unwrapped(field.def.innerType) : field
}

function isOptional (field: any) {
  return ['optional', 'default'].includes(field.def.type)
}

function quoted (text: unknown) {
  return `'${text}'`
}
