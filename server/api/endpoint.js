import express, { Router } from 'express'
import { DeckError } from '../errors.js'
import { NO_BODY, NO_QUERY, parseBody, parseId, parseQuery } from './input.js'

/**
 * One call of the API, told as data: what it takes and what it does. Everything that can be wrong with a request is
 * answered before `handle` runs, so nothing that is refused changes anything.
 * @typedef {import('express').Request} Request
 * @typedef {import('express').Response} Response
 * @typedef {object} Call
 * @property {Request} req
 * @property {Response} res
 * @property {import('../admin/guard.js').Auth} auth
 * @property {number} id  of a path with `:id`, else 0
 * @property {Record<string, any>} query
 * @property {Record<string, any>} body
 * @property {string} type  the one of `produces` that the caller wants most
 *
 * @typedef {{ status?: number, headers?: Record<string, string>, body: unknown }} Reply
 *
 * @typedef {object} Endpoint
 * @property {import('zod').ZodObject} [query]
 * @property {import('zod').ZodObject} [body]
 * @property {string[]} [produces]  media types, the preferred one first; JSON unless said otherwise
 * @property {(call: Call) => Reply | undefined | Promise<Reply | undefined>} handle  undefined: it has answered itself
 *
 * @typedef {Partial<Record<'GET' | 'POST' | 'PUT' | 'DELETE', Endpoint>>} Resource
 */

const JSON_TYPE = 'application/json'
const BODY_LIMIT_BYTES = 64 * 1024

// Not strict: a body such as `3` is valid JSON of the wrong shape, which is another error. Not inflated: 64 KiB means 64 KiB.
const readJson = express.json({ limit: BODY_LIMIT_BYTES, strict: false, inflate: false, type: JSON_TYPE })

/**
 * @param {Record<string, Resource>} resources  by path
 * @returns {Router}
 */
export function createApi (resources) {
  const router = Router({ caseSensitive: true })
  for (const [path, resource] of Object.entries(resources)) {
    router.all(path, (req, res) => answer(resource, req, res))
  }
  router.use((req) => { throw new DeckError('not-found', `No such path: ${req.originalUrl.split('?')[0].slice(0, 200)}`) })
  return router
}

/** @param {Resource} resource @param {Request} req @param {Response} res */
async function answer (resource, req, res) {
  const endpoint = endpointFor(resource, req.method)
  const call = {
    req,
    res,
    auth: req.auth,
    id: req.params.id === undefined ? 0 : parseId(req.params.id),
    query: parseQuery(endpoint.query ?? NO_QUERY, req.url),
    type: negotiate(req, endpoint.produces ?? [JSON_TYPE]),
    body: await bodyOf(endpoint, req, res)
  }
  const reply = await endpoint.handle(/** @type {Call} */ (call))
  if (!reply || res.destroyed) return
  res.status(reply.status ?? 200).set(reply.headers ?? {}).json(reply.body)
}

/** @param {Resource} resource @param {string} method @returns {Endpoint} */
function endpointFor (resource, method) {
  const name = method === 'HEAD' ? 'GET' : method
  const endpoint = resource[/** @type {keyof Resource} */ (name)]
  if (endpoint) return endpoint
  const allow = Object.keys(resource).flatMap((known) => known === 'GET' ? ['GET', 'HEAD'] : [known]).join(', ')
  throw new DeckError('method-not-allowed', `${method} is not allowed here: expected ${allow}`, { details: { allow } })
}

/** @param {Request} req @param {string[]} produces */
function negotiate (req, produces) {
  const type = req.accepts(produces)
  if (type) return type
  throw new DeckError('not-acceptable', `Accept: expected ${produces.join(' or ')}, received ${JSON.stringify(String(req.headers.accept).slice(0, 100))}`)
}

/** @param {Endpoint} endpoint @param {Request} req @param {Response} res */
async function bodyOf (endpoint, req, res) {
  if (req.method === 'GET' || req.method === 'HEAD') return {}
  if (!hasBody(req)) return parseBody(endpoint.body ?? NO_BODY, {})
  if (!req.is(JSON_TYPE)) {
    throw new DeckError('unsupported-media-type', `Content-Type: expected ${JSON_TYPE}, received ${JSON.stringify(String(req.headers['content-type'] ?? '').slice(0, 100))}`)
  }
  await /** @type {Promise<void>} */ (new Promise((resolve, reject) => {
    readJson(req, res, (/** @type {unknown} */ error) => error ? reject(error) : resolve())
  }))
  return parseBody(endpoint.body ?? NO_BODY, req.body)
}

function hasBody (/** @type {Request} */ { headers }) {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
