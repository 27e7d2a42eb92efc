import { z } from 'zod'
import { parseDuration } from '../config/duration.ts'
import { attempt, DeckError } from '../errors.ts'
import { ID, MAX_ID } from '../config/id.ts'
import { didYouMean } from '../config/nearest.ts'

/**
 * Checks input of callers. Each field of a schema describes what it expects (`.describe('an integer from 1 to 256')`);
 * callers read that text in an error.
 */
type Flaw = { path: string, expected: string, received: string }

const MAX_SHOWN_CHARS = 80
const MAX_FLAWS = 20
const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/

/** A query without parameters. */
export const NO_QUERY = z.strictObject({})

/** An empty body: absent or `{}`. */
export const NO_BODY = z.strictObject({})

/** `url`: request target, with or without a query @throws {DeckError} `invalid-query` */
export function parseQuery<S extends z.ZodObject> (schema: S, url: string): z.infer<S> {
  const start = url.indexOf('?')
  const params = new URLSearchParams(start < 0 ? '' : url.slice(start + 1))
  for (const name of new Set(params.keys())) checkOnce(params, name)
  return checkedQuery(schema, Object.fromEntries(params))
}

/**
 * Parses the query of a page. Its forms also send empty fields, which are ignored, as are unknown ones. Returns
 * `texts`: in the order of the schema, so that equal filters have equal addresses.
 * @throws {DeckError} `invalid-query`
 */
export function parseFields<S extends z.ZodObject> (schema: S,
  params: URLSearchParams): { texts: Partial<Record<keyof z.infer<S> & string, string>>, values: z.infer<S> }
{
  const names = Object.keys(schema.shape)
  for (const name of names) checkOnce(params, name)
  const texts = Object.fromEntries(
    names.map((name) => [name, (params.get(name) ?? '').trim()]).filter(([, text]) => text !== '')
  )
  return { texts, values: checkedQuery(schema, texts) }
}

function checkOnce (params: URLSearchParams, name: string) {
  const values = params.getAll(name)
  if (values.length > 1)
    throw invalidQuery([{ path: name, expected: 'to be given once', received: quoteValue(values) }])
}

function checkedQuery<S extends z.ZodObject> (schema: S, query: Record<string, string>): z.infer<S> {
  const result = schema.safeParse(query)
  if (result.success) return result.data
  throw invalidQuery(flawsOf(schema, query, result.error))
}

/** @throws {DeckError} `invalid-body` */
export function parseBody<S extends z.ZodObject> (schema: S, body: unknown): z.infer<S> {
  return parseInput(schema, body, { code: 'invalid-body', name: 'body' })
}

/**
 * `schema`: described, as what is expected of the whole; `argument`: of a call that a program makes.
 * @throws {DeckError} `invalid-argument`
 */
export function parseArgument<S extends z.ZodObject> (schema: S, argument: unknown, name: string): z.infer<S> {
  return parseInput(schema, argument, { code: 'invalid-argument', name })
}

function parseInput<S extends z.ZodObject> (schema: S, input: unknown,
  { code, name }: { code: 'invalid-body' | 'invalid-argument', name: string }): z.infer<S>
{
  const result = schema.safeParse(input)
  if (result.success) return result.data
  const errors = flawsOf(schema, input, result.error)
  throw new DeckError(code, toSentence(errors, name), { details: { errors } })
}

/** @throws {DeckError} `invalid-id` */
export function parseId (text: unknown): number {
  if (ID.test(String(text))) return Number(text)
  throw new DeckError('invalid-id', `id: expected a positive integer, received ${quoteValue(text)}`)
}

export function integerParam (min: number, max: number) {
  const expected = max === Number.MAX_SAFE_INTEGER ? 'a positive integer' : `an integer from ${min} to ${max}`
  return z.string().regex(/^\d{1,15}$/).transform(Number).pipe(z.int().min(min).max(max)).optional().meta({
    description: expected,
    as: { type: 'integer', minimum: min, maximum: Math.min(max, MAX_ID) }
  })
}

/** `about`: what "true" or "false" means, in one sentence */
export function booleanParam (about: string) {
  return z.enum(['true', 'false']).transform((text) => text === 'true').optional().meta({ description: about,
    as: { type: 'boolean' } })
}

export function textParam (expected: string, pattern: RegExp) {
  return z.string().regex(pattern).optional().describe(expected)
}

/** `maxMs`: a length of time such as `30s`, read as ms */
export function durationParam (maxMs: number) {
  return z.string().transform(readBy(parseDuration)).pipe(z.int().min(0).max(maxMs)).optional().meta({
    description: `a duration such as 30s, at most ${maxMs / 60_000}m`,
    as: { type: 'string', pattern: '^[1-9]\\d?s$', examples: ['30s'] }
  })
}

/** `now`: a time as ISO 8601, or as how long ago it was; read as ms since the epoch */
export function timeParam (now: () => number) {
  return z.string().transform(readBy((text) => parseTime(text, now))).optional().meta({
    description: 'an ISO 8601 time such as 2026-01-31T12:00:00Z, or how long ago, such as 15m, 2h or 7d',
    as: { type: 'string', anyOf: [{ format: 'date-time' }, { pattern: '^\\d{1,9}(\\.\\d{1,3})?(ms|s|m|h|d)$' }],
      examples: ['2h'] }
  })
}

function parseTime (text: string, now: () => number): number | null {
  const agoMs = parseDuration(text)
  if (agoMs !== null) return now() - agoMs
  // An unescaped plus sign arrives as a space.
  const iso = text.replace(/ (?=\d\d:\d\d$)/, '+')
  const [, time, , , zone] = ISO_TIME.exec(iso) ?? [null, null]
  if (time === null) return null
  // Without a zone a time is UTC; JavaScript would take the zone of the master.
  const ms = Date.parse(time && !zone ? `${iso}Z` : iso)
  return Number.isFinite(ms) ? ms : null
}

export function readBy<T> (parse: (text: string) => T | null) {
  return (text: string, context: z.RefinementCtx) => {
    const value = parse(text)
    if (value !== null) return value
    context.addIssue({ code: 'custom', message: 'unreadable' })
    return z.NEVER
  }
}

function flawsOf (schema: z.ZodObject, input: unknown, { issues }: z.ZodError): Flaw[] {
  const flaws = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: [...issue.path, key].join('.'),
        expected: unknownName(key, Object.keys(Object(fieldAt(schema, issue.path)).shape)),
        received: quoteValue(valueAt(input, [...issue.path, key])) })
      )
      : [{ path: issue.path.join('.'), expected: withNearest(expectationOf(schema, issue), issue, input),
        received: receivedBy(issue) ??
          (isSecret(schema, issue.path) ? 'something that is not shown' : quoteValue(valueAt(input, issue.path))) }]
  )
  // Several checks may refuse one field, in the same words.
  const isSaid = (flaw: Flaw, at: number) =>
    flaws.slice(0, at).some(({ path, expected }) => path === flaw.path && expected === flaw.expected)
  return flaws.filter((flaw, at) => !isSaid(flaw, at)).slice(0, MAX_FLAWS)
}

/** Undefined: the check does not say */
function receivedBy (issue: z.core.$ZodIssue): string | undefined {
  return issue.code === 'custom' ? issue.params?.received : undefined
}

/** Of names that are too many to be listed, the one that may be meant. */
function withNearest (expected: string, issue: z.core.$ZodIssue, input: unknown) {
  if (issue.code !== 'invalid_value' || issue.values.every((name) => expected.includes(String(name)))) return expected
  return `${expected}${didYouMean(String(valueAt(input, issue.path)), issue.values.map(String))}`
}

/** `expected`: by a check across fields */
function expectationOf (schema: z.ZodObject,
  { path, message, params }: { path: PropertyKey[], message: string, params?: { expected?: string } })
{
  if (path.length === 0) return schema.description ?? 'a JSON object'
  const field = fieldAt(schema, path, { isBare: false })
  const { expected, description } = (field instanceof z.ZodType && field.meta()) || {}
  return String(params?.expected ?? expected ?? description ?? message)
}

/** Errors go into logs and onto screens. */
function isSecret (schema: z.ZodObject, path: PropertyKey[]) {
  const field = fieldAt(schema, path, { isBare: false })
  return field instanceof z.ZodType && field.meta()?.writeOnly === true
}

/** `isBare`: without what makes it optional */
function fieldAt (schema: unknown, path: PropertyKey[], { isBare = true }: { isBare?: boolean } = {}) {
  const field = path.reduce((part, key) => {
    const { shape, element } = Object(bareOf(part))
    // What is below a record is described by it.
    return shape ? shape[key] : element ?? part
  }, schema)
  return isBare ? bareOf(field) : field
}

/** `field`: of zod. Returns it without what makes it optional. */
export function bareOf (field: unknown): unknown {
  const { innerType } = Object(Object(field).def)
  return innerType ? bareOf(innerType) : field
}

function unknownName (name: string, known: string[]) {
  if (known.length === 0) return 'no such name'
  return `one of ${known.join(', ')}${didYouMean(name, known)}`
}

function valueAt (value: unknown, path: PropertyKey[]) {
  return path.reduce((part, key) => Object.hasOwn(Object(part), key) ? Object(part)[key] : undefined, value)
}

/** Cut, as it goes into answers and logs. */
function quoteValue (value: unknown) {
  // RangeError: nested too deeply. TypeError: a value that JSON has not, such as a BigInt.
  const text = value === undefined
    ? 'nothing'
    : attempt(() => JSON.stringify(value) ?? `a ${typeof value}`, 'something that cannot be shown')
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
}

function toSentence (flaws: Flaw[], whole = 'body') {
  return flaws.map(({ path, expected, received }) =>
    `${path.slice(0, MAX_SHOWN_CHARS) || whole}: expected ${expected}, received ${received}`
  ).join('; ')
}

function invalidQuery (errors: Flaw[]) {
  return new DeckError('invalid-query', toSentence(errors), { details: { errors } })
}
