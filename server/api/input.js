import { z } from 'zod'
import { parseDuration } from '../config/duration.js'
import { DeckError } from '../errors.js'
import { ID, MAX_ID } from '../config/id.js'
import { didYouMean } from '../config/nearest.js'

/**
 * Checks input of callers. Each field of a schema describes what it expects (`.describe('an integer from 1 to 256')`);
 * callers read that text in an error.
 * @typedef {{ path: string, expected: string, received: string }} Flaw
 */

const MAX_SHOWN_CHARS = 80
const MAX_FLAWS = 20
const ISO_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/

/** A query without parameters. */
export const NO_QUERY = z.strictObject({})

/** An empty body: absent or `{}`. */
export const NO_BODY = z.strictObject({})

/**
 * @template {z.ZodObject} S
 * @param {S} schema
 * @param {string} url  request target, with or without a query
 * @returns {z.infer<S>}
 * @throws {DeckError} `invalid-query`
 */
export function parseQuery (schema, url) {
  const start = url.indexOf('?')
  const params = new URLSearchParams(start < 0 ? '' : url.slice(start + 1))
  for (const name of new Set(params.keys())) checkOnce(params, name)
  return checkedQuery(schema, Object.fromEntries(params))
}

/**
 * Parses the query of a page. Its forms also send empty fields, which are ignored, as are unknown ones.
 * @template {z.ZodObject} S
 * @param {S} schema
 * @param {URLSearchParams} params
 * @returns {{ texts: Partial<Record<keyof z.infer<S> & string, string>>, values: z.infer<S> }} `texts`: in the order of the schema, so that equal
 *   filters have equal addresses
 * @throws {DeckError} `invalid-query`
 */
export function parseFields (schema, params) {
  const names = Object.keys(schema.shape)
  for (const name of names) checkOnce(params, name)
  const texts = Object.fromEntries(names.map((name) => [name, (params.get(name) ?? '').trim()]).filter(([, text]) => text !== ''))
  return { texts, values: checkedQuery(schema, texts) }
}

/** @param {URLSearchParams} params @param {string} name */
function checkOnce (params, name) {
  const values = params.getAll(name)
  if (values.length > 1) throw invalidQuery([{ path: name, expected: 'to be given once', received: quoteValue(values) }])
}

/** @template {z.ZodObject} S @param {S} schema @param {Record<string, string>} query @returns {z.infer<S>} */
function checkedQuery (schema, query) {
  const result = schema.safeParse(query)
  if (result.success) return result.data
  throw invalidQuery(flawsOf(schema, query, result.error))
}

/**
 * @template {z.ZodObject} S
 * @param {S} schema
 * @param {unknown} body
 * @returns {z.infer<S>}
 * @throws {DeckError} `invalid-body`
 */
export function parseBody (schema, body) {
  return parseInput(schema, body, { code: 'invalid-body', name: 'body' })
}

/**
 * @template {z.ZodObject} S
 * @param {S} schema  described, as what is expected of the whole
 * @param {unknown} argument  of a call that a program makes
 * @param {string} name
 * @returns {z.infer<S>}
 * @throws {DeckError} `invalid-argument`
 */
export function parseArgument (schema, argument, name) {
  return parseInput(schema, argument, { code: 'invalid-argument', name })
}

/**
 * @template {z.ZodObject} S
 * @param {S} schema
 * @param {unknown} input
 * @param {{ code: 'invalid-body' | 'invalid-argument', name: string }} what
 * @returns {z.infer<S>}
 */
function parseInput (schema, input, { code, name }) {
  const result = schema.safeParse(input)
  if (result.success) return result.data
  const errors = flawsOf(schema, input, result.error)
  throw new DeckError(code, toSentence(errors, name), { details: { errors } })
}

/**
 * @param {unknown} text
 * @returns {number}
 * @throws {DeckError} `invalid-id`
 */
export function parseId (text) {
  if (ID.test(String(text))) return Number(text)
  throw new DeckError('invalid-id', `id: expected a positive integer, received ${quoteValue(text)}`)
}

/** @param {number} min @param {number} max */
export function integerParam (min, max) {
  const expected = max === Number.MAX_SAFE_INTEGER ? 'a positive integer' : `an integer from ${min} to ${max}`
  return z.string().regex(/^\d{1,15}$/).transform(Number).pipe(z.int().min(min).max(max)).optional()
    .meta({ description: expected, as: { type: 'integer', minimum: min, maximum: Math.min(max, MAX_ID) } })
}

/** @param {string} expected @param {RegExp} pattern */
export function textParam (expected, pattern) {
  return z.string().regex(pattern).optional().describe(expected)
}

/** @param {number} maxMs  a length of time such as `30s`, read as ms */
export function durationParam (maxMs) {
  return z.string().transform(readBy(parseDuration)).pipe(z.int().min(0).max(maxMs)).optional()
    .meta({ description: `a duration such as 30s, at most ${maxMs / 60_000}m`, as: { type: 'string', pattern: '^[1-9]\\d?s$', examples: ['30s'] } })
}

/** @param {() => number} now  a time as ISO 8601, or as how long ago it was; read as ms since the epoch */
export function timeParam (now) {
  return z.string().transform(readBy((text) => parseTime(text, now))).optional()
    .meta({
      description: 'an ISO 8601 time such as 2026-01-31T12:00:00Z, or how long ago, such as 15m, 2h or 7d',
      as: { type: 'string', anyOf: [{ format: 'date-time' }, { pattern: '^\\d{1,9}(\\.\\d{1,3})?(ms|s|m|h|d)$' }], examples: ['2h'] }
    })
}

/** @param {string} text @param {() => number} now @returns {number | null} */
function parseTime (text, now) {
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

/** @template T @param {(text: string) => T | null} parse */
export function readBy (parse) {
  return (/** @type {string} */ text, /** @type {z.RefinementCtx} */ context) => {
    const value = parse(text)
    if (value !== null) return value
    context.addIssue({ code: 'custom', message: 'unreadable' })
    return z.NEVER
  }
}

/** @param {z.ZodObject} schema @param {unknown} input @param {z.ZodError} error @returns {Flaw[]} */
function flawsOf (schema, input, { issues }) {
  return issues.flatMap((issue) => issue.code === 'unrecognized_keys'
    ? issue.keys.map((key) => ({
      path: [...issue.path, key].join('.'),
      expected: unknownName(key, Object.keys(Object(fieldAt(schema, issue.path)).shape)),
      received: quoteValue(valueAt(input, [...issue.path, key]))
    }))
    : [{ path: issue.path.join('.'), expected: expectationOf(schema, issue), received: isSecret(schema, issue.path) ? 'something that is not shown' : quoteValue(valueAt(input, issue.path)) }]
  ).slice(0, MAX_FLAWS)
}

/**
 * @param {z.ZodObject} schema
 * @param {{ path: PropertyKey[], message: string, params?: { expected?: string } }} issue  `expected`: by a check across fields
 */
function expectationOf (schema, { path, message, params }) {
  if (path.length === 0) return schema.description ?? 'a JSON object'
  const field = fieldAt(schema, path, { isBare: false })
  const { expected, description } = (field instanceof z.ZodType && field.meta()) || {}
  return String(params?.expected ?? expected ?? description ?? message)
}

/** Errors go into logs and onto screens. @param {z.ZodObject} schema @param {PropertyKey[]} path */
function isSecret (schema, path) {
  const field = fieldAt(schema, path, { isBare: false })
  return field instanceof z.ZodType && field.meta()?.writeOnly === true
}

/** @param {unknown} schema @param {PropertyKey[]} path @param {{ isBare?: boolean }} [how] `isBare`: without what makes it optional */
function fieldAt (schema, path, { isBare = true } = {}) {
  const field = path.reduce((part, key) => Object(withoutWrappers(part)).shape?.[key], schema)
  return isBare ? withoutWrappers(field) : field
}

/** @param {unknown} field of zod @returns {unknown} */
function withoutWrappers (field) {
  const { innerType } = Object(Object(field).def)
  return innerType ? withoutWrappers(innerType) : field
}

function unknownName (/** @type {string} */ name, /** @type {string[]} */ known) {
  if (known.length === 0) return 'no such name'
  return `one of ${known.join(', ')}${didYouMean(name, known)}`
}

function valueAt (/** @type {unknown} */ value, /** @type {PropertyKey[]} */ path) {
  return path.reduce((part, key) => Object.hasOwn(Object(part), key) ? Object(part)[key] : undefined, value)
}

/** Cut, as it goes into answers and logs. */
function quoteValue (/** @type {unknown} */ value) {
  const text = value === undefined ? 'nothing' : textOf(value)
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
}

/** @param {unknown} value */
function textOf (value) {
  try {
    return JSON.stringify(value) ?? `a ${typeof value}`
  } catch {
    // RangeError: nested too deeply. TypeError: a value that JSON has not, such as a BigInt.
    return 'something that cannot be shown'
  }
}

function toSentence (/** @type {Flaw[]} */ flaws, whole = 'body') {
  return flaws.map(({ path, expected, received }) => `${path.slice(0, MAX_SHOWN_CHARS) || whole}: expected ${expected}, received ${received}`).join('; ')
}

function invalidQuery (/** @type {Flaw[]} */ errors) {
  return new DeckError('invalid-query', toSentence(errors), { details: { errors } })
}
