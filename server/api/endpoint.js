import { promisify } from 'node:util'
import express, { Router } from 'express'
import { DeckError } from '../errors.js'
import { cutEndlessBody, takeTime } from './body.js'
import { NO_BODY, NO_QUERY, parseBody, parseId, parseQuery } from './input.js'
import { roleAllows } from './roles.js'

/**
 * One operation of the API as data: the role that it needs, what it takes, does and returns. A request is checked before
 * `handle` runs, so a refused request changes nothing.
 * @typedef {import('express').Request} Request
 * @typedef {import('express').Response} Response
 * @typedef {import('zod').ZodType} Schema
 * @typedef {'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} Method
 */

/**
 * @template [Q=Record<string, unknown>] @template [B=Record<string, unknown>]
 * @typedef {object} Call
 * @property {Request} req
 * @property {Response} res
 * @property {import('./roles.js').Auth} auth
 * @property {number} id  of a path with `:id`, else 0
 * @property {Q} query
 * @property {B} body
 * @property {string} type  the one of `produces` that the caller wants most
 */

/** @typedef {{ status?: number, headers?: Record<string, string>, body: unknown }} Reply  `status`: one of `others`, in place of that of the operation */

/**
 * @template {import('zod').ZodObject} [Q=import('zod').ZodObject] @template {import('zod').ZodObject} [B=import('zod').ZodObject]
 * @typedef {object} Operation
 * @property {string} name  of the method that a generated client has for it
 * @property {string} summary
 * @property {string} [description]  Markdown
 * @property {import('./roles.js').Role | null} role  the least one that may ask for it; null: anybody
 * @property {string} [byToken]  what it is, where no session may have it: what it gives would outlast the session
 * @property {string | Record<string, string>} [cli]  the same on the command line
 * @property {Record<string, Schema>} [path]  its parameters other than `id`
 * @property {Record<string, Schema>} [headers]  that it reads
 * @property {Q} [query]
 * @property {B} [body]
 * @property {number} [largestBodyBytes]  64 KiB unless said otherwise
 * @property {string} [takes]  the media type of a body that `handle` reads itself, as it comes, from `req`
 * @property {Schema} [shownBody]  as the document has it, where `handle` checks more than `body` says
 * @property {number} [status]  of its answer, 200 unless said otherwise
 * @property {boolean} [location]  whether its answer says where what it has made is
 * @property {boolean} [hasTag]  whether its answer has an ETag
 * @property {boolean} [isSecret]  whether its answer holds a secret
 * @property {string[]} [produces]  media types, the preferred one first; JSON unless said otherwise. None: always the same, whatever a caller accepts
 * @property {Schema | Record<string, Schema>} answer  by media type, where it is not JSON alone
 * @property {Record<number, Record<string, Schema>>} [others]  answers with another status, by media type
 * @property {boolean} [isPassedOn]  whether another deck does it, and answers the same to the same request itself
 * @property {readonly import('../errors.js').ErrorCode[]} [problems]  beside those that any operation may have
 * @property {(call: Call<import('zod').infer<Q>, import('zod').infer<B>>) => Reply | undefined | Promise<Reply | undefined>} handle
 *   undefined: it has answered itself
 */

/** @typedef {Partial<Record<Method, Operation>>} Resource */

const JSON_TYPE = 'application/json'
const BODY_LIMIT_BYTES = 64 * 1024

// Not strict: a body such as `3` is valid JSON of the wrong shape, which is another error. Not inflated: 64 KiB means 64 KiB.
const jsonReader = (/** @type {number} */ limit) => promisify(express.json({ limit, strict: false, inflate: false, type: JSON_TYPE }))
const readJson = jsonReader(BODY_LIMIT_BYTES)

/**
 * Exists for its types: `handle` gets what `query` and `body` describe.
 * @template {import('zod').ZodObject} Q @template {import('zod').ZodObject} B
 * @param {Operation<Q, B>} operation
 * @returns {Operation}
 */
export function operation (operation) {
  return operation
}

/**
 * @param {import('./openapi.js').Mount['groups']} groups
 * @param {{ idempotency: import('./idempotency.js').Idempotency }} parts
 * @returns {Router}
 */
export function routeOperations (groups, { idempotency }) {
  const router = Router({ caseSensitive: true })
  for (const [path, resource] of Object.values(groups).flatMap(({ resources }) => Object.entries(resources))) {
    router.all(path, (req, res) => answerRequest(resource, req, res, idempotency))
  }
  return router
}

/** @param {Resource} resource @param {Request} req @param {Response} res @param {import('./idempotency.js').Idempotency} idempotency */
async function answerRequest (resource, req, res, idempotency) {
  const operation = operationFor(resource, req.method)
  if (operation.role !== null) requireRole(req.auth, operation.role)
  if (operation.byToken && req.auth?.via !== 'token') throw new DeckError('forbidden', `${operation.byToken} requires a token, not a session`)
  /** @type {Call} */
  const call = {
    req,
    res,
    // It is null only for operations without a role, which do not read it.
    auth: /** @type {import('./roles.js').Auth} */ (req.auth),
    id: req.params.id === undefined ? 0 : parseId(req.params.id),
    query: parseQuery(operation.query ?? NO_QUERY, req.url),
    type: negotiateType(req, operation.produces ?? [JSON_TYPE]),
    body: await bodyOf(operation, req, res)
  }
  const runOperation = async () => operation.handle(call)
  const reply = await (req.method === 'POST' && !operation.isPassedOn
    ? idempotency.once(call, operation, runOperation)
    : runOperation())
  if (!reply || res.destroyed) return
  res.status(reply.status ?? operation.status ?? 200).set(reply.headers ?? {}).json(reply.body)
}

/**
 * @param {import('./roles.js').Auth | null | undefined} auth @param {import('./roles.js').Role} role
 * @returns {asserts auth is import('./roles.js').Auth}
 * @throws {DeckError} unauthenticated, forbidden
 */
export function requireRole (auth, role) {
  if (!auth) throw new DeckError('unauthenticated', 'Sign in, or send a token')
  if (roleAllows(auth.role, role)) return
  throw new DeckError(
    'forbidden',
    `This needs the role ${role}, and ${auth.actor} is ${auth.role}${auth.bound ? `: ${auth.bound}` : ''}`,
    { details: { role } }
  )
}

/**
 * What concerns the whole host needs a role for all of its apps.
 * @param {Pick<import('./roles.js').Auth, 'apps' | 'actor'>} auth @param {string} what
 * @throws {DeckError} forbidden
 */
export function refuseLimited ({ apps, actor }, what) {
  if (apps) throw new DeckError('forbidden', `Whoever ${what} needs a role for all apps, and ${actor} has one for ${apps.join(', ')}`)
}

/** @param {Resource} resource @param {string} method @returns {Operation} */
function operationFor (resource, method) {
  const wanted = method === 'HEAD' ? 'GET' : method
  const [, operation] = Object.entries(resource).find(([known]) => known === wanted) ?? []
  if (operation) return operation
  const allow = Object.keys(resource).flatMap((known) => known === 'GET' ? ['GET', 'HEAD'] : [known]).join(', ')
  throw new DeckError('method-not-allowed', `${method} is not allowed here: expected ${allow}`, { details: { allow } })
}

/** @param {Request} req @param {string[]} produces */
function negotiateType (req, produces) {
  if (produces.length === 0) return ''
  const type = req.accepts(produces)
  if (type) return type
  throw new DeckError('not-acceptable', `Accept: expected ${produces.join(' or ')}, received ${JSON.stringify(String(req.headers.accept).slice(0, 100))}`)
}

/** @param {Operation} operation @param {Request} req @param {Response} res */
async function bodyOf (operation, req, res) {
  if (req.method === 'GET' || req.method === 'HEAD') return {}
  if (operation.takes !== undefined) return acceptStream(operation.takes, req)
  if (!hasBody(req)) return parseBody(operation.body ?? NO_BODY, {})
  checkType(req, JSON_TYPE)
  const read = operation.largestBodyBytes === undefined ? readJson : jsonReader(operation.largestBodyBytes)
  await read(cutEndlessBody(req), res)
  return parseBody(operation.body ?? NO_BODY, req.body)
}

/** Leaves the body to `handle`, which reads it as it comes. @param {string} type @param {Request} req */
function acceptStream (type, req) {
  checkType(req, type)
  takeTime(req)
  return {}
}

/** @param {Request} req @param {string} type @throws {DeckError} unsupported-media-type */
function checkType (req, type) {
  if (req.is(type)) return
  throw new DeckError(
    'unsupported-media-type',
    `Content-Type: expected ${type}, received ${JSON.stringify(String(req.headers['content-type'] ?? '').slice(0, 100))}`
  )
}

function hasBody (/** @type {Request} */ { headers }) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
