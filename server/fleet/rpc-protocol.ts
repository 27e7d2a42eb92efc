import { z } from 'zod'
import { isSomebody } from '../config/actor-names.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { DeckError } from '../errors.ts'
import { parseUntrusted, isShallow } from './untrusted-json.ts'

/**
 * The messages of a call from one member to the API of another. Both sides distrust each other: a message of another
 * shape is refused, and whoever asks gets no higher role than the member accepts.
 */
export type Question = z.infer<typeof QUESTION>
export type Answer = z.infer<typeof ANSWER>
export type Role = Question['role']
export type Accept = 'nothing' | 'read' | 'operate'

export const MAX_REQUEST_BYTES = 64 * 1024
/** The whole message counts, with its body as a quoted text. */
export const MAX_RESPONSE_BYTES = 900 * 1024
/**
 * Nouns of the API that no other member may call: a call never goes on to a third member, nor to the host as a whole.
 * Apps are started and stopped on their own machine alone, whether that has a host or a deck with one app.
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

const ANSWER = z.object({ status: STATUS,
  headers: z.object({ 'content-type': z.string().regex(TYPE), etag: header,
    location: z.string().max(500).regex(/^\/api\/v1(?:\/[A-Za-z\d][\w.-]*)+$/).optional(),
    'retry-after': z.string().regex(/^\d{1,6}$/).optional(), 'idempotency-replayed': z.literal('true').optional() }),
  body: z.string() })

/** What the asker's role becomes on a member that accepts this. */
const ROLES: Readonly<Record<Accept, Readonly<Record<Role, Role>> | null>> = Object.freeze({ nothing: null,
  read: Object.freeze({ viewer: 'viewer', operator: 'viewer', admin: 'viewer' }),
  operate: Object.freeze({ viewer: 'viewer', operator: 'operator', admin: 'operator' }) })

function isPath (path: string) {
  const at = path.indexOf('?')
  return at < 0 ? PATH.test(path) : PATH.test(path.slice(0, at)) && QUERY.test(path.slice(at + 1))
}

/** @throws {DeckError} payload-too-large, bad-request */
export function parseRequest (data: Uint8Array): Question {
  if (data.length > MAX_REQUEST_BYTES) throw tooLarge(data.length)
  const question = parseMessage(QUESTION, data)
  if (!question)
    throw new DeckError('bad-request', 'expected a question of a member: a method, a path below /api/v1, and who asks')
  return question
}

/** @returns as a message @throws {DeckError} bad-request, payload-too-large */
export function encodeRequest (question: unknown): string {
  const { data, error } = QUESTION.safeParse(question)
  if (!data)
    throw new DeckError('bad-request',
      `another member cannot be asked this: ${error.issues[0].path.join('.') || 'a body'}`)
  const text = JSON.stringify(data)
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_REQUEST_BYTES) throw tooLarge(bytes)
  return text
}

function tooLarge (bytes: number) {
  return new DeckError('payload-too-large',
    `a request to another member: expected at most ${MAX_REQUEST_BYTES} bytes with its headers, received ${bytes}`)
}

/** Null: it is none */
export function parseResponse (data: Uint8Array): Answer | null {
  return data.length > MAX_RESPONSE_BYTES ? null : parseMessage(ANSWER, data)
}

/**
 * Leaves out headers that are not passed on.
 * @throws {DeckError} not-acceptable
 */
export function encodeResponse (answer: unknown): Answer {
  const { data } = ANSWER.safeParse(answer)
  if (!data)
    throw new DeckError('not-acceptable',
      'a member answers others in JSON or text only, and this call answers in something else')
  return data
}

/** The role that the member gives to somebody from another deck. @returns never admin @throws {DeckError} forbidden */
export function roleFor ({ path, role }: Pick<Question, 'path' | 'role'>,
  { accept, member }: { accept: Accept, member: string }): Role
{
  const roles = ROLES[accept]
  if (!roles)
    throw new DeckError('forbidden', `${member}: expected fleet.accept "read" or "operate", received "${accept}"`)
  const { pathname, searchParams } = new URL(path, 'http://member')
  if (searchParams.has('member'))
    throw new DeckError('forbidden',
      `${pathname} of ${member}: expected without member, as it answers for itself alone`)
  const noun = pathname.split('/')[1]
  if (CLOSED.has(noun)) throw new DeckError('forbidden', `/${noun} of ${member}: sign in on ${member} itself`)
  return roles[role]
}

function parseMessage<S extends z.ZodType> (schema: S, data: Uint8Array) {
  return parseUntrusted(schema, () => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(data)))
}
