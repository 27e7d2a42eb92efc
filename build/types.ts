// Writes what the package says of records in its types, in plain words: `npm run build:types`; npm does it before it
// packs. A program that has TypeScript and this package alone reads them, so they know nothing of zod.
import { writeFileSync } from 'node:fs'
import { ROLLOUT } from '../server/rollouts/api.ts'
import { STATUS, WORKER } from '../server/api/cluster.ts'
import { EVENT, RELEASE, STEP } from '../server/api/shapes.ts'
import { fieldAt, innerOf, OPTIONS, SCHEMA, STRATEGY, type Option } from '../server/config/options.ts'
import type { z } from 'zod'

/** Each type of server/library/records.ts. Wherever one is a part of another, it stands by its name. */
const RECORDS: Readonly<Record<string, { schema: z.ZodType, about: string }>> = Object.freeze({
  DeckOptions: { schema: SCHEMA, about: 'What a config file can say.' },
  DeckEvent: { schema: EVENT, about: 'A fact about the cluster. Fields that do not apply are null.' },
  EventType: { schema: EVENT.shape.type, about: 'The name of what has happened.' },
  Release: { schema: RELEASE, about: 'The code that workers run.' },
  Rollout: { schema: ROLLOUT, about: 'One restart of all workers, deploy or rollback.' },
  RolloutStep: { schema: STEP, about: 'What a rollout does in one slot.' },
  Status: { schema: STATUS, about: 'The status of a deck at one moment.' },
  Strategy: { schema: STRATEGY, about: 'How a deploy replaces workers: what is not given is as the options say.' },
  Worker: { schema: WORKER, about: 'A worker, or a slot that has none at the moment.' }
})
const OF_FLAGS_AND_FILES = /; in the config file only$| \(separated by \w+\)$/

type Schema = z.core.SomeType
type Defs = z.core.$ZodTypes['_zod']['def']

/** A schema that got a description later is another object, with the same definition. */
const NAMES = new Map(Object.entries(RECORDS).map(([name, { schema }]) => [schema.def as object, name]))
const OPTION_TEXTS = new Map(OPTIONS.map((option) => [fieldAt(option.path).def as object, textOf(option)]))

/** by the name that zod has for it */
const WRITERS: { [Type in Defs['type']]?: (def: Extract<Defs, { type: Type }>) => string } = { string: () => 'string',
  number: () => 'number', boolean: () => 'boolean', null: () => 'null', unknown: () => 'unknown',
  literal: ({ values }) => values.map(quoted).join(' | '),
  enum: ({ entries }) => Object.values(entries).map(quoted).join(' | '),
  union: ({ options }) => [...new Set(options.map(typeOf))].join(' | '),
  nullable: ({ innerType }) => `${typeOf(innerType)} | null`, optional: ({ innerType }) => typeOf(innerType),
  default: ({ innerType }) => typeOf(innerType), prefault: ({ innerType }) => typeOf(innerType),
  pipe: ({ in: taken }) => typeOf(taken),
  array: ({ element }) => `Array<${typeOf(element)}>`.replace(/^Array<(\w+)>$/, '$1[]'),
  record: ({ keyType, valueType }) => `Record<${typeOf(keyType)}, ${typeOf(valueType)}>`,
  object: ({ shape }) => `{${Object.entries(shape).map(fieldText).join('').replaceAll('\n', '\n  ')}\n}` }

const texts = Object.entries(RECORDS).map(([name, { schema, about }]) =>
  `/** ${about} */\nexport type ${name} = ${written(schema)}\n`
)
writeFileSync(new URL('../types/library/records.d.ts', import.meta.url), texts.join('\n'))

function typeOf (schema: Schema): string {
  return NAMES.get(schema._zod.def) ?? written(schema)
}

function written ({ _zod: { def } }: Schema): string {
  const write = WRITERS[def.type as Defs['type']] as ((of: typeof def) => string) | undefined
  if (!write) throw new Error(`no type for a ${def.type} of zod`)
  return write(def)
}

function fieldText ([name, field]: [string, Schema]) {
  const about = aboutOf(field as z.ZodType)?.replaceAll('*/', '*\\/')
  const mark = ['optional', 'default', 'prefault'].includes(field._zod.def.type) ? '?' : ''
  return `${about ? `\n/** ${about} */` : ''}\n${name}${mark}: ${typeOf(field)}`
}

function aboutOf (field: z.ZodType): string | undefined {
  const inner = innerOf(field)
  return OPTION_TEXTS.get(field.def) ?? field.description ?? (inner && aboutOf(inner))
}

function textOf ({ description, fallback }: Option) {
  const about = description.replace(OF_FLAGS_AND_FILES, '')
  const isShown = fallback !== undefined && (!Array.isArray(fallback) || fallback.length > 0) &&
    fallback?.constructor !== Object
  return isShown ? `${about}; default: \`${[fallback].flat().join(' ')}\`` : about
}

function quoted (text: unknown) {
  return typeof text === 'string' ? `'${text}'` : String(text)
}
