import { promisify } from 'node:util'
import express, { Router, type Request, type Response } from 'express'
import { DeckError, type ErrorCode } from '../errors.ts'
import { cutEndlessBody, takeTime } from './body.ts'
import { NO_BODY, NO_QUERY, parseBody, parseId, parseQuery } from './input.ts'
import { roleAllows, type Auth, type Role } from './roles.ts'
import type { ZodObject, ZodType as Schema, z } from 'zod'
import type { Mount } from './openapi.ts'
import type { Idempotency } from './idempotency.ts'

/**
 * One operation of the API as data: the role that it needs, what it takes, does and returns. A request is checked
 * before
 * `handle` runs, so a refused request changes nothing.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type Call<Q = Record<string, unknown>, B = Record<string, unknown>> = Asked & {
  auth: Auth,
  /** of a path with `:id`, else 0 */
  id: number,
  query: Q,
  body: B,
  /** the one of `produces` that the caller wants most */
  type: string
}

/** What somebody asks of an operation, by the API or by a form of a page. */
export type Asked = {
  req: Request,
  res: Response,
  /** of its path */
  params: Record<string, string>,
  /** the state that its sender has seen, as If-Match has it */
  seen?: string
}

/** `status`: one of `others`, in place of that of the operation */
export type Reply = { status?: number, headers?: Record<string, string>, body: unknown }

export type Operation<Q extends ZodObject = ZodObject, B extends ZodObject = ZodObject> = {
  /** of the method that a generated client has for it */
  name: string,
  summary: string,
  /** Markdown */
  description?: string,
  /** the least one that may ask for it; null: anybody */
  role: Role | null,
  /** what it is, where no session may have it: what it gives would outlast the session */
  byToken?: string,
  /**
   * the same on the command line, where it depends on `kind`: for each; `{note}` stands for a field, and is left out
   * with the flag before it where that is empty
   */
  cli?: string | Record<string, string>,
  /** its parameters other than `id` */
  path?: Record<string, Schema>,
  /** that it reads */
  headers?: Record<string, Schema>,
  query?: Q,
  body?: B,
  /** 64 KiB unless said otherwise */
  largestBodyBytes?: number,
  /** the media type of a body that `handle` reads itself, as it comes, from `req` */
  takes?: string,
  /** as the document has it, where `handle` checks more than `body` says */
  shownBody?: Schema,
  /** of its answer, 200 unless said otherwise */
  status?: number,
  /** whether its answer says where what it has made is */
  location?: boolean,
  /** whether its answer has an ETag */
  hasTag?: boolean,
  /** whether its answer holds a secret */
  isSecret?: boolean,
  /**
   * media types, the preferred one first; JSON unless said otherwise. None: always the same, whatever a caller accepts
   */
  produces?: string[],
  /** by media type, where it is not JSON alone */
  answer: Schema | Record<string, Schema>,
  /** answers with another status, by media type */
  others?: Record<number, Record<string, Schema>>,
  /** whether another deck does it, and answers the same to the same request itself */
  isPassedOn?: boolean,
  /** beside those that any operation may have */
  problems?: readonly ErrorCode[],
  /**
   * forms of pages may ask for the operation. `read`: makes the fields of the form those of the body; `next`: the page
   * to which the form leads; null: none. It throws what the reader of the page has to know.
   */
  form?: { read?: (fields: Fields) => Fields, next?: (answer: any) => string | null },
  /** undefined: it has answered itself */
  handle: (call: Call<z.infer<Q>, z.infer<B>>) => Reply | undefined | Promise<Reply | undefined>
}

export type Resource = Partial<Record<Method, Operation>>
/** what a form sends: texts, or a list of them where a name is there several times */
export type Fields = Record<string, unknown>

const JSON_TYPE = 'application/json'
const BODY_LIMIT_BYTES = 64 * 1024

// Not strict: a body such as `3` is valid JSON of the wrong shape, which is another error. Not inflated: 64 KiB means
// 64 KiB.
const jsonReader = (limit: number) => promisify(express.json({ limit, strict: false, inflate: false, type: JSON_TYPE }))
const readJson = jsonReader(BODY_LIMIT_BYTES)

/** Exists for its types: `handle` gets what `query` and `body` describe. */
export function operation<Q extends ZodObject, B extends ZodObject> (operation: Operation<Q, B>): Operation {
  return operation
}

export function routeOperations (groups: Mount['groups'], { idempotency }: { idempotency: Idempotency }): Router {
  const router = Router({ caseSensitive: true })
  for (const [path, resource] of Object.values(groups).flatMap(({ resources }) => Object.entries(resources))) {
    router.all(path, (req, res) => answerRequest(resource, req, res, idempotency))
  }
  return router
}

async function answerRequest (resource: Resource, req: Request, res: Response, idempotency: Idempotency) {
  const operation = operationFor(resource, req.method)
  const call: Call = {
    ...callerOf(operation, { req, res, params: req.params as Asked['params'], seen: req.headers['if-match'] }),
    query: parseQuery(operation.query ?? NO_QUERY, req.url),
    type: negotiateType(req, operation.produces ?? [JSON_TYPE]),
    body: await bodyOf(operation, req, res)
  }
  const runOperation = async () => operation.handle(call)
  const reply =
    await (req.method === 'POST' && !operation.isPassedOn
      ? idempotency.once(call, operation, runOperation)
      : runOperation())
  if (!reply || res.destroyed) return
  res.status(reply.status ?? operation.status ?? 200).set(reply.headers ?? {}).json(reply.body)
}

/**
 * Does what a form asks for. `query`: texts; `body`: as JSON has it.
 * @throws {DeckError} as the API refuses it
 */
export async function perform (operation: Operation,
  { query, body, ...asked }: Asked & { query: Record<string, string>, body: Fields }): Promise<Reply | undefined>
{
  return operation.handle({ ...callerOf(operation, asked),
    query: parseQuery(operation.query ?? NO_QUERY, `?${new URLSearchParams(query)}`), type: JSON_TYPE,
    body: parseBody(operation.body ?? NO_BODY, body) })
}

/** @throws {DeckError} unauthenticated, forbidden, invalid-id */
function callerOf ({ role, byToken }: Operation, asked: Asked): Asked & Pick<Call, 'auth' | 'id'> {
  const { req: { auth }, params: { id } } = asked
  if (role !== null) requireRole(auth, role)
  if (byToken && auth?.via !== 'token') throw new DeckError('forbidden', `${byToken} requires a token, not a session`)
  // It is null only for operations without a role, which do not read it.
  return { ...asked, auth: auth as Auth, id: id === undefined ? 0 : parseId(id) }
}

/** @throws {DeckError} unauthenticated, forbidden */
export function requireRole (auth: Auth | null | undefined, role: Role): asserts auth is Auth {
  if (!auth) throw new DeckError('unauthenticated', 'Sign in, or send a token')
  if (roleAllows(auth.role, role)) return
  throw new DeckError('forbidden',
    `This needs the role ${role}, and ${auth.actor} is ${auth.role}${auth.bound ? `: ${auth.bound}` : ''}`, {
    details: { role }
  })
}

/**
 * What concerns the whole host needs a role for all of its apps.
 * @throws {DeckError} forbidden
 */
export function refuseLimited ({ apps, actor }: Pick<Auth, 'apps' | 'actor'>, what: string) {
  if (apps)
    throw new DeckError('forbidden',
      `Whoever ${what} needs a role for all apps, and ${actor} has one for ${apps.join(', ')}`)
}

/**
 * Of operations that an app has, and its host for all of its apps together. Returns where they are, what their names and
 * commands have besides, and what keeps those out who have a role for some apps.
 */
export function placeOf ({ isOfHost }: { isOfHost: boolean }) {
  if (!isOfHost) return { at: '', of: '', flag: '', guard: (resources: Record<string, Resource>) => resources }
  return { at: '/host', of: 'Host', flag: ' --host', guard (resources: Record<string, Resource>) {
    for (const operation of Object.values(resources).flatMap((resource) => Object.values(resource))) {
      const { handle } = operation
      operation.handle = (call) => {
        refuseLimited(call.auth, 'sees alerts and notices of the host')
        return handle(call)
      }
    }
    return resources
  } }
}

/** @returns the answer of what has made something. `path`: of that, below /api/v1 */
export function created (path: string, body: unknown): Reply {
  return { headers: { Location: `/api/v1${path}` }, body }
}

function operationFor (resource: Resource, method: string): Operation {
  const wanted = method === 'HEAD' ? 'GET' : method
  const [, operation] = Object.entries(resource).find(([known]) => known === wanted) ?? []
  if (operation) return operation
  const allow = Object.keys(resource).flatMap((known) => known === 'GET' ? ['GET', 'HEAD'] : [known]).join(', ')
  throw new DeckError('method-not-allowed', `${method} is not allowed here: expected ${allow}`, { details: { allow } })
}

function negotiateType (req: Request, produces: string[]) {
  if (produces.length === 0) return ''
  const type = req.accepts(produces)
  if (type) return type
  throw new DeckError('not-acceptable',
    `Accept: expected ${produces.join(' or ')}, received ${JSON.stringify(String(req.headers.accept).slice(0, 100))}`)
}

async function bodyOf (operation: Operation, req: Request, res: Response) {
  if (req.method === 'GET' || req.method === 'HEAD') return {}
  if (operation.takes !== undefined) return acceptStream(operation.takes, req)
  if (!hasBody(req)) return parseBody(operation.body ?? NO_BODY, {})
  checkType(req, JSON_TYPE)
  const read = operation.largestBodyBytes === undefined ? readJson : jsonReader(operation.largestBodyBytes)
  await read(cutEndlessBody(req), res)
  return parseBody(operation.body ?? NO_BODY, req.body)
}

/** Leaves the body to `handle`, which reads it as it comes. */
function acceptStream (type: string, req: Request) {
  checkType(req, type)
  takeTime(req)
  return {}
}

/** @throws {DeckError} unsupported-media-type */
function checkType (req: Request, type: string) {
  if (req.is(type)) return
  throw new DeckError('unsupported-media-type',
    `Content-Type: expected ${type}, received ${
      JSON.stringify(String(req.headers['content-type'] ?? '').slice(0, 100))
    }`)
}

function hasBody ({ headers }: Request) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
