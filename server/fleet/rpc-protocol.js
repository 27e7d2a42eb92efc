import { z } from 'zod'
import { isSomebody } from '../config/actor-names.js'
import { MEMBER_NAME } from '../config/member-name.js'
import { DeckError } from '../errors.js'
import { parseUntrusted, isShallow } from './untrusted-json.js'

/**
 * The messages of a call from one member to the API of another. Both sides distrust each other: a message of another shape is
 * refused, and whoever asks gets no higher role than the member accepts.
 * @typedef {z.infer<typeof QUESTION>} Question
 * @typedef {z.infer<typeof ANSWER>} Answer
 * @typedef {Question['role']} Role
 * @typedef {'nothing' | 'read' | 'operate'} Accept
 */

export const MAX_REQUEST_BYTES = 64 * 1024
/** The whole message counts, with its body as a quoted text. */
export const MAX_RESPONSE_BYTES = 900 * 1024
/**
 * Nouns of the API that no other member may call: a call never goes on to a third member, nor to the host as a whole. Apps are started and
 * stopped on their own machine alone, whether that has a host or a deck with one app.
 */
const CLOSED = new Set(['fleet', 'sign-in-links', 'start', 'stop', 'tokens'])

// It allows no `..` and no escapes, so that the router sees the same path as the checks here.
const PATH = /^(?:\/[A-Za-z\d][\w.-]*)+$/
const QUERY = /^[\w.~!$&'()*+,;=:@/?%-]*$/
/** A header is one line of printable characters. */
const header = z.string().max(300).regex(/^[ -~]*$/).optional()

const QUESTION = z.strictObject({
  home: z.string().max(64).describe('of the member that is asked: two with one name are told apart by it'),
  method: z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
  app: z.string().min(1).max(200).describe('of that member, whose API is asked'),
  path: z.string().max(4096).refine(isPath).describe('below /api/v1 of that app, with its query'),
  headers: z.strictObject({ accept: header, 'idempotency-key': header, 'if-match': header }),
  body: z.record(z.string(), z.unknown()).refine(isShallow).optional(),
  actor: z.string().refine(isSomebody).describe('as the deck that asks knows who does'),
  role: z.enum(['viewer', 'operator', 'admin']).describe('there'),
  client: z.enum(['dashboard', 'cli', 'api', 'agent']),
  from: z.string().regex(MEMBER_NAME)
}).refine(({ method, body }) => method !== 'GET' || body === undefined)

const STATUS = z.int().min(200).max(599).refine((status) => status !== 401 && (status < 300 || status >= 400))
const TYPE = /^(?:application\/(?:problem\+)?json|application\/x-ndjson|text\/csv|text\/plain)(?:; ?charset=utf-8)?$/i

const ANSWER = z.object({
  status: STATUS,
  headers: z.object({
    'content-type': z.string().regex(TYPE),
    etag: header,
    location: z.string().max(500).regex(/^\/api\/v1(?:\/[A-Za-z\d][\w.-]*)+$/).optional(),
    'retry-after': z.string().regex(/^\d{1,6}$/).optional(),
    'idempotency-replayed': z.literal('true').optional()
  }),
  body: z.string()
})

/** What the asker's role becomes on a member that accepts this. @type {Readonly<Record<Accept, Readonly<Record<Role, Role>> | null>>} */
const ROLES = Object.freeze({
  nothing: null,
  read: Object.freeze({ viewer: 'viewer', operator: 'viewer', admin: 'viewer' }),
  operate: Object.freeze({ viewer: 'viewer', operator: 'operator', admin: 'operator' })
})

/** @param {string} path */
function isPath (path) {
  const at = path.indexOf('?')
  return at < 0 ? PATH.test(path) : PATH.test(path.slice(0, at)) && QUERY.test(path.slice(at + 1))
}

/**
 * @param {Uint8Array} data @returns {Question}
 * @throws {DeckError} payload-too-large, bad-request
 */
export function parseRequest (data) {
  if (data.length > MAX_REQUEST_BYTES) throw tooLarge(data.length)
  const question = parseMessage(QUESTION, data)
  if (!question) throw new DeckError('bad-request', 'expected a question of a member: a method, a path below /api/v1, and who asks')
  return question
}

/** @param {unknown} question @returns {string} as a message @throws {DeckError} bad-request, payload-too-large */
export function encodeRequest (question) {
  const { data, error } = QUESTION.safeParse(question)
  if (!data) throw new DeckError('bad-request', `another member cannot be asked this: ${error.issues[0].path.join('.') || 'a body'}`)
  const text = JSON.stringify(data)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_REQUEST_BYTES) throw tooLarge(bytes)
  return text
}

/** @param {number} bytes */
function tooLarge (bytes) {
  return new DeckError('payload-too-large', `a request to another member: expected at most ${MAX_REQUEST_BYTES} bytes with its headers, received ${bytes}`)
}

/** @param {Uint8Array} data @returns {Answer | null} null: it is none */
export function parseResponse (data) {
  return data.length > MAX_RESPONSE_BYTES ? null : parseMessage(ANSWER, data)
}

/** Leaves out headers that are not passed on. @param {unknown} answer @returns {Answer} @throws {DeckError} not-acceptable */
export function encodeResponse (answer) {
  const { data } = ANSWER.safeParse(answer)
  if (!data) throw new DeckError('not-acceptable', 'a member answers others in JSON or text only, and this call answers in something else')
  return data
}

/**
 * The role that the member gives to somebody from another deck.
 * @param {Pick<Question, 'path' | 'role'>} question @param {{ accept: Accept, member: string }} asked
 * @returns {Role} never admin
 * @throws {DeckError} forbidden
 */
export function roleFor ({ path, role }, { accept, member }) {
  const roles = ROLES[accept]
  if (!roles) throw new DeckError('forbidden', `${member}: expected fleet.accept "read" or "operate", received "${accept}"`)
  const noun = path.split(/[/?]/)[1]
  if (CLOSED.has(noun)) throw new DeckError('forbidden', `/${noun} of ${member}: sign in on ${member} itself`)
  return roles[role]
}

/** @template {z.ZodType} S @param {S} schema @param {Uint8Array} data */
function parseMessage (schema, data) {
  return parseUntrusted(schema, () => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data)))
}
