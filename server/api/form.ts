import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { bareOf, parseBody } from './input.ts'
import type { Fields, Method, Operation } from './endpoint.ts'
import type { Mount } from './openapi.ts'

/**
 * A form of a page asks for an operation of the API: its fields have the names of the input, those of a nested object
 * such as `strategy.surge`. All are texts, and an empty one is the same as none.
 */
export type Route = { operation: Operation, method: Method, path: string }

/** `cli`: by the field `kind`, where the command depends on it; `needs`: fields without which the call is not meant */
export type Call = { operation: string, method: Method, path: string, headers?: Record<string, string>, body?: Template,
  cli?: string | Record<string, string>, needs: string[] }
/** a group whose fields are all empty is left out */
export type Template = { [name: string]: string | Template }

const SEPARATORS = /[\s,;]+/

/** @returns all operations, by name */
export function operationsByName (mounts: readonly Mount[]): Map<string, Route> {
  const resources = mounts.flatMap(({ base, groups }) =>
    Object.values(groups).flatMap((group) =>
      Object.entries(group.resources).map(([path, resource]) => ({ path: base === '/' ? path : base + path, resource }))
    )
  )
  return new Map(
    resources.flatMap(({ path, resource }) =>
      Object.entries(resource).map((
        [method, operation]
      ) => [operation.name, { operation, method: method as Method, path }])
    )
  )
}

/** Tells whether a form has what the operation cannot do without. */
export function hasNeeded (route: Route, fields: Fields): boolean {
  return neededBy(route).every((name) => textOf(fields[name]) !== '')
}

/** @returns the names of its parameters and fields that have no default */
export function neededBy ({ operation: { body }, path }: Route): string[] {
  return [...namesIn(path),
    ...Object.entries(body?.shape ?? {}).flatMap(([name, field]) =>
      z.safeParse(field, undefined).success ? [] : [name]
    )]
}

/**
 * @returns what of the fields the operation takes, as JSON has it
 * @throws {DeckError} invalid-body
 */
export function inputFrom ({ operation: { query, body, form }, path }: Route, fields: Fields) {
  const read = form?.read?.(fields) ?? fields
  return { params: pickTexts(namesIn(path), read), query: pickTexts(Object.keys(query?.shape ?? {}), read),
    body: body ? bodyFrom(body, read) : {} }
}

/** @returns the words of a field, or of several ones of its name */
export function wordsIn (given: unknown): string[] {
  return [given ?? []].flat().flatMap((text) => String(text).split(SEPARATORS)).filter((word) => word !== '')
}

/** @throws {DeckError} invalid-body */
export function parseFormBody<S extends z.ZodObject> (schema: S, fields: Fields): z.infer<S> {
  return parseBody(schema, bodyFrom(schema, fields))
}

function bodyFrom (schema: z.ZodObject, fields: Fields, prefix: string = ''): Fields {
  if (isLoose(schema)) return { [textOf(fields.name)]: fromText(textOf(fields.value), '', false) }
  return Object.fromEntries(Object.entries(schema.shape).flatMap(([key, field]) => {
    const value = valueOf(field, fields, prefix + key)
    return value === undefined ? [] : [[key, value]]
  }))
}

/** @returns what the commands beside a form are made of */
export function callOf (route: Route): Call {
  const { operation: { name, body, headers = {}, cli }, method, path } = route
  const isTagged = headers['If-Match']?.safeParse(undefined).success === false
  return { operation: name, method, path: path.replace(/:(\w+)/g, '{$1}'), needs: neededBy(route),
    ...(isTagged && { headers: { 'If-Match': '"{seen}"' } }), ...(body && { body: templateOf(body) }),
    ...(cli !== undefined && { cli }) }
}

/** The same, where a member of the fleet does it, which the field `member` names. */
export function onMember ({ path, cli, ...call }: Call): Call {
  const there = (line: string) => `${line} --member {member}`
  return { ...call, path: path.replace('/api/v1', '/api/v1/fleet/members/{member}/api'),
    ...(cli !== undefined &&
      {
        cli: typeof cli === 'string'
          ? there(cli)
          : Object.fromEntries(Object.entries(cli).map(([kind, line]) => [kind, there(line)]))
      }) }
}

function templateOf (schema: z.ZodObject, prefix: string = ''): Template {
  if (isLoose(schema)) return { '{name}': '{value:option}' }
  return Object.fromEntries(Object.entries(schema.shape).map(([key, field]) => {
    const bare = bareOf(field)
    const kind = kindOf(bare)
    return [key,
      bare instanceof z.ZodObject ? templateOf(bare, `${prefix}${key}.`) : `{${prefix}${key}${kind && `:${kind}`}}`]
  }))
}

function valueOf (field: z.core.$ZodType, fields: Fields, name: string): unknown {
  const bare = bareOf(field)
  if (bare instanceof z.ZodObject) {
    const inner = bodyFrom(bare, fields, `${name}.`)
    return Object.keys(inner).length > 0 ? inner : undefined
  }
  const given = fields[name]
  if (bare instanceof z.ZodArray) {
    if (Array.isArray(given) && given.length === 0) return []
    const items = wordsIn(given)
    if (items.length > 0) return items
    return given !== undefined && z.safeParse(field, null).success ? null : undefined
  }
  const text = textOf(given)
  if (text === '') return undefined
  const kind = kindOf(bare)
  return kind === '' ? text : fromText(text, name, bare instanceof z.ZodUnknown)
}

/** `isJson`: a text that is no JSON is refused here; elsewhere the schema refuses it, in its own words */
function fromText (text: string, name: string, isJson: boolean): unknown {
  try {
    return JSON.parse(text)
  } catch {
    if (isJson)
      throw new DeckError('invalid-body', `${name}: expected JSON, received ${JSON.stringify(text.slice(0, 60))}`)
    return text
  }
}

/** @returns what the field is written as: JSON, JSON or else a text (`option`), or a text (empty) */
function kindOf (bare: unknown): '' | 'json' | 'option' {
  if (bare instanceof z.ZodUnion) return 'option'
  return [z.ZodNumber, z.ZodBoolean, z.ZodUnknown, z.ZodRecord].some((type) => bare instanceof type) ? 'json' : ''
}

function isLoose (schema: z.ZodObject) {
  return schema.def.catchall instanceof z.ZodUnknown
}

/** @returns the names of the parameters of a path */
export function namesIn (path: string) {
  return Array.from(path.matchAll(/:(\w+)/g), ([, name]) => name)
}

function pickTexts (names: string[], fields: Fields): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, textOf(fields[name])]).filter(([, text]) => text !== ''))
}

function textOf (value: unknown): string {
  return typeof value === 'string' ? value.trim() : ''
}
