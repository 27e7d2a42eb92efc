import { z } from 'zod'
import { parseDuration } from '../config/duration.ts'
import { isErrorCode, PROBLEMS } from '../errors.ts'
import { operation, type Call, type Method, type Resource } from '../api/endpoint.ts'
import { fleetOf, NAME } from './api.ts'
import { IDEMPOTENCY_KEY } from '../api/idempotency.ts'
import type { Role } from '../api/roles.ts'
import type { Deck } from '../deck.ts'
import type { AppFleet } from './app-fleet.ts'
import type { Answer } from './rpc-protocol.ts'

/**
 * Forwards requests to the API of the app on another member of the fleet. The member checks them itself and is told who
 * asks.
 */

const ANSWER_WITHIN_MS = 10_000
/** The longest time that a member may wait before it answers. */
const MAX_WITHIN_MS = 75_000
/** Bodies and answers of the member, whose API this host need not know. */
const ANY_JSON = z.looseObject({})
const ANY_TEXT = { 'application/json': ANY_JSON, 'application/x-ndjson': z.string(), 'text/csv': z.string(),
  'text/plain': z.string() }
const PATH = { member: NAME,
  path: z.string().min(1).max(200).regex(/^[A-Za-z\d][\w.-]*(\/[A-Za-z\d][\w.-]*)*$/).meta({
    description: 'a path below `/api/v1` of the app on that member, with its slashes',
    examples: ['status']
  }) }

/**
 * Every PATCH and DELETE of an app needs an admin. Nobody from another host is an admin here, so neither is forwarded.
 */
const OPERATIONS: readonly { method: Method, name: string, role: Role }[] = Object.freeze([{ method: 'GET',
  name: 'getFromMember', role: 'viewer' }, { method: 'POST', name: 'postToMember', role: 'operator' }, { method: 'PUT',
  name: 'putToMember', role: 'operator' }])

export function memberResources ({ deck }: { deck: Deck }): Record<string, Resource> {
  const forwarded = OPERATIONS.map((
    { method, name, role }
  ) => [method,
    operation({ name, summary: `Forwards a ${method} to the app on a member of the fleet`,
      description:
        'The member checks and answers the request by its own API of the app. Its option `fleet.accept` sets the role: `"read"` is a viewer, ' +
        '`"operate"` at most an operator. Its history names the sender as `ada@web-1`. Streams, tokens and sign-in links are not available.',
      role, cli: 'clusterdeck status --member web-2', path: PATH,
      headers: { 'If-Match': z.string().max(300).optional(), 'Idempotency-Key': IDEMPOTENCY_KEY.optional() },
      query: z.looseObject({}), ...(method !== 'GET' && { body: z.looseObject({}) }), isPassedOn: true,
      problems: Object.keys(PROBLEMS).filter(isErrorCode), produces: [], answer: ANY_TEXT,
      others: { 201: ANY_TEXT, 202: ANY_TEXT }, async handle (call) {
      return sendAnswer(call,
        await fleetOf(deck).ask(String(call.req.params.member), orderOf(method, call), call.auth, {
          withinMs: withinMs(call)
        }))
    } })]
  )
  return { '/fleet/members/:member/api/*path': Object.fromEntries(forwarded) }
}

function orderOf (method: Method, { req, body }: Call): Parameters<AppFleet['ask']>[1] {
  const { accept, 'idempotency-key': key, 'if-match': match } = req.headers
  const [, query] = req.url.split(/\?(.*)/s)
  const path = `/${[req.params.path].flat().join('/')}${query ? `?${query}` : ''}`
  return { method, path, headers: { accept, 'idempotency-key': key?.toString(), 'if-match': match },
    body: method === 'GET' || Object.keys(body).length === 0 ? undefined : body }
}

/** `call`: what waits for the end of a rollout may take as long, and a moment more */
function withinMs ({ query }: Call) {
  return Math.min(MAX_WITHIN_MS, ANSWER_WITHIN_MS + (parseDuration(String(query.wait ?? '')) ?? 0))
}

function sendAnswer ({ req, res }: Call, { status, headers, body }: Answer): undefined {
  const { location, ...others } = headers
  const place = `/api/v1/fleet/members/${req.params.member}/api`
  res.status(status).set({ ...others, ...(location && { location: location.replace('/api/v1', place) }) }).end(body)
}
