import express, { type RequestHandler } from 'express'
import { routeOperations } from '../api/endpoint.ts'
import { assetsRouter } from '../dashboard/assets.ts'
import { isFormOfPage } from '../dashboard/form-of-page.ts'
import { pageBefore } from '../dashboard/page-router.ts'
import { DeckError } from '../errors.ts'
import { sendProblem, toDeckError } from '../problem.ts'
import { encodeContent, encodingFor, PASSING, type Encoding } from '../api/encoding.ts'
import { isPublic } from './anonymous-limiter.ts'
import type { Access } from './access.ts'
import type { Mount } from '../api/openapi.ts'
import type { Idempotency } from '../api/idempotency.ts'
import type { Log } from '../system/log.ts'

/** All sites share it, as assets are the same everywhere. */
const assets = assetsRouter()

/** Smaller answers fit into one network packet anyway. */
const MIN_BYTES = 1400

const TEXTS = /^(?:text\/|application\/(?:problem\+)?json|application\/x-ndjson|image\/svg)/

/**
 * Compresses whole answers; streams are sent as they are. An attacker who puts text into a page and sees its compressed
 * length could guess the rest of it (BREACH), so no secret may be compressed. Pages hold none: the secret of a session
 * is in its cookie alone, and foreign pages are recognised by headers. New tokens and sign-in links are answers to
 * POST, which are not compressed.
 */
const compressResponse: RequestHandler = (req, res, next) => {
  const encoding = req.method === 'GET' && req.auth ? encodingFor(req) : null
  if (!encoding) return next()
  const { end } = res
  res.end = (...args: unknown[]) => {
    const [chunk] = args
    const isWhole = (typeof chunk === 'string' || Buffer.isBuffer(chunk)) && !res.headersSent &&
      !res.hasHeader('Content-Encoding')
    const content = isWhole ? Buffer.from(chunk) : null
    if (!content || content.length < MIN_BYTES || !TEXTS.test(String(res.getHeader('Content-Type'))))
      return Reflect.apply(end, res, args)
    sendContent(content, encoding)
    return res
  }
  next()

  async function sendContent (content: Buffer, encoding: Encoding) {
    try {
      const encoded = await encodeContent(content, encoding, PASSING)
      if (res.headersSent || res.destroyed) return
      res.setHeader('Content-Encoding', encoding)
      res.setHeader('Content-Length', encoded.length)
      Reflect.apply(end, res, [encoded])
    } catch {
      // ENOMEM: it is sent uncompressed.
      Reflect.apply(end, res, [content])
    }
  }
}

/**
 * Puts what answers at a path of the admin port in order. It expects that the guard has admitted the request and set
 * `req.auth`; without it the sender is not signed in.
 */
export function createExpressApp ({ access: { limiters }, mounts, idempotency, pages, isOpen = isPublic, log }: {
  access: Pick<Access, 'limiters'>,
  mounts: Mount[],
  idempotency: Idempotency,
  pages: express.Router[],
  /** whether nobody has to sign in for it */
  isOpen?: (path: string) => boolean,
  log: Log
}) {
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
  app.use('/api', (req) => {
    throw new DeckError('not-found', `No such path: ${req.originalUrl.split('?')[0].slice(0, 200)}`)
  })
  for (const router of pages) app.use(router)
  app.use((req) => {
    throw new DeckError('not-found', `No such path: ${req.path.slice(0, 200)}`)
  })
  app.use(answerError(log))
  return app
}

/**
 * Sends a visit of a page, and a form of one, to the sign-in page; other requests without a sign-in are refused
 * earlier.
 */
function sendToSignIn (isOpen: (path: string) => boolean): express.RequestHandler {
  return (req, res, next) => {
    if (req.auth || isOpen(req.path)) return next()
    const isForm = isFormOfPage(req)
    const wanted = isForm ? pageBefore(req) : req.originalUrl
    res.redirect(303, `/sign-in?${isForm ? 'state=not-done&' : ''}next=${encodeURIComponent(wanted.slice(0, 1000))}`)
  }
}

function answerError (log: Log): express.ErrorRequestHandler {
  return (error, _req, res, _next) => {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
    sendProblem(res, error)
  }
}
