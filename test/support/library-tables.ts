import { OPTIONS, SCHEMA, type Option } from '../../server/config/options.ts'
import { EVENT_TYPES } from '../../server/events/kinds.ts'
import type { z } from 'zod'

/** Where zod knows only what comes out. */
const ALSO_TAKEN: Record<string, string> = { 'ready.status': 'number | string | (number | string)[]' }

const OF_FLAGS_AND_FILES = /; in the config file only$| \(separated by \w+\)$/

type Schema = z.core.SomeType
type Defs = z.core.$ZodTypes['_zod']['def']

/** by the name that zod has for it */
const TYPES: { [Type in Defs['type']]?: (def: Extract<Defs, { type: Type }>, path: string) => string } = {
  string: () => 'string',
  number: () => 'number',
  boolean: () => 'boolean',
  null: () => 'null',
  literal: ({ values }) => values.map(quoted).join(' | '),
  enum: ({ entries }) => Object.values(entries).map(quoted).join(' | '),
  union: ({ options }, path) => [...new Set(options.map((each) => typeOf(each, path)))].join(' | '),
  array: ({ element }, path) => `${typeOf(element, path)}[]`,
  record: ({ keyType, valueType }, path) => `Record<${typeOf(keyType, path)}, ${typeOf(valueType, path)}>`,
  object: ({ shape }, path) =>
    `{ ${
      Object.entries(shape).map(([name, field]) => `${name}${isOptional(field) ? '?' : ''}: ${typeOf(field, path)}`)
        .join(', ')
    } }`
}

/** The types of the library that follow from the tables of options and events, as a module. */
export function libraryTables () {
  return `// Made from the tables of options and events by \`node test/support/manual-tables.ts\`.

export type EventType =
${inLines(EVENT_TYPES.map(quoted).join(' | ')).map((line) => `  ${line}`).join('\n')}

/** What a config file can say. */
export type DeckOptions = {
${fieldsOf(SCHEMA, []).map((line) => `  ${line}`).join('\n')}
}
`
}

function fieldsOf (schema: Schema, above: string[]): string[] {
  return Object.entries((schema as z.core.$ZodObject)._zod.def.shape).flatMap(([key, field]) => {
    const name = [...above, key].join('.')
    const option = OPTIONS.find((each) => each.name === name)
    if (!option) return [`${key}?: {`, ...fieldsOf(unwrapped(field), [...above, key]).map((line) => `  ${line}`), '}']
    return [`/** ${aboutOf(option)} */`, `${key}?: ${ALSO_TAKEN[name] ?? typeOf(field, name)}`]
  })
}

function typeOf (field: Schema, path: string): string {
  const { def } = unwrapped(field)._zod
  const write = TYPES[def.type as Defs['type']] as ((of: typeof def, path: string) => string) | undefined
  if (!write) throw new Error(`no type for a ${def.type} of zod, at ${path}`)
  return write(def, path)
}

function aboutOf ({ description, fallback }: Option) {
  const about = description.replace(OF_FLAGS_AND_FILES, '')
  const isShown = fallback !== undefined && (!Array.isArray(fallback) || fallback.length > 0) &&
    fallback?.constructor !== Object
  return isShown ? `${about}; default: \`${[fallback].flat().join(' ')}\`` : about
}

function inLines (text: string): string[] {
  return text.match(/.{1,115}(?= |$)/g)?.map((line) => line.trim()) ?? []
}

function unwrapped (field: Schema): Schema {
  const { def } = field._zod
  return 'innerType' in def ? unwrapped(def.innerType as Schema) : field
}

function isOptional (field: Schema) {
  return ['optional', 'default'].includes(field._zod.def.type)
}

function quoted (text: unknown) {
  return `'${text}'`
}
