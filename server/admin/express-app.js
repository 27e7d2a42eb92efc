import express from 'express'
import { routeOperations } from '../api/endpoint.js'
import { assetsRouter } from '../dashboard/assets.js'
import { isFormOfPage, pageBefore } from '../dashboard/page-router.js'
import { DeckError } from '../errors.js'
import { sendProblem, toDeckError } from '../problem.js'
import { isPublic } from './anonymous-limiter.js'
import { compressResponse } from './compression.js'

/** All sites share it, as assets are the same everywhere. */
const assets = assetsRouter()

/**
 * Puts what answers at a path of the admin port in order. It expects that the guard has admitted the request and set
 * `req.auth`; without it the sender is not signed in.
 * @param {object} parts
 * @param {Pick<import('./access.js').Access, 'limiters'>} parts.access
 * @param {import('../api/openapi.js').Mount[]} parts.mounts
 * @param {import('../api/idempotency.js').Idempotency} parts.idempotency
 * @param {express.Router[]} parts.pages
 * @param {(path: string) => boolean} [parts.isOpen]  whether nobody has to sign in for it
 * @param {import('../system/log.js').Log} parts.log
 */
export function createExpressApp ({ access: { limiters }, mounts, idempotency, pages, isOpen = isPublic, log }) {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.set('query parser', 'simple')

  app.use(['/api', '/mcp'], limiters.requests)
  app.use('/actions/switch', limiters.switches)
  app.use(sendToSignIn(isOpen))
  app.use(assets)
  app.use(compressResponse)
  for (const { base, groups } of mounts) app.use(base, routeOperations(groups, { idempotency }))
  app.use('/api', (req) => { throw new DeckError('not-found', `No such path: ${req.originalUrl.split('?')[0].slice(0, 200)}`) })
  for (const router of pages) app.use(router)
  app.use((req) => { throw new DeckError('not-found', `No such path: ${req.path.slice(0, 200)}`) })
  app.use(answerError(log))
  return app
}

/**
 * Sends a visit of a page, and a form of one, to the sign-in page; other requests without a sign-in are refused earlier.
 * @param {(path: string) => boolean} isOpen
 * @returns {express.RequestHandler}
 */
function sendToSignIn (isOpen) {
  return (req, res, next) => {
    if (req.auth || isOpen(req.path)) return next()
    const isForm = isFormOfPage(req)
    const wanted = isForm ? pageBefore(req) : req.originalUrl
    res.redirect(303, `/sign-in?${isForm ? 'state=not-done&' : ''}next=${encodeURIComponent(wanted.slice(0, 1000))}`)
  }
}

/** @param {import('../system/log.js').Log} log @returns {express.ErrorRequestHandler} */
function answerError (log) {
  return (error, _req, res, _next) => {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
    sendProblem(res, error)
  }
}
