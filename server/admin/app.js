import express from 'express'
import { ipKeyGenerator, rateLimit } from 'express-rate-limit'
import { DeckError } from '../errors.js'
import { createApi } from '../api/endpoint.js'
import { sendProblem, toDeckError } from '../api/problem.js'
import { assetsRouter } from '../dashboard/assets.js'
import { clusterResources } from '../api/cluster.js'
import { crashResources } from '../api/crashes.js'
import { diagnosticsResources } from '../api/diagnostics.js'
import { eventFeedResources } from '../api/event-feed.js'
import { eventResources } from '../api/events.js'
import { healthRouter } from './probes.js'
import { logResources } from '../api/logs.js'
import { metricsRouter } from './metrics.js'
import { dashboardRouter } from '../dashboard/router.js'
import { releaseResources } from '../api/releases.js'
import { rolloutResources } from '../api/rollouts.js'
import { signInRouter } from './sign-in.js'
import { signInLinkResources } from '../api/sign-in-links.js'
import { vitalsResources } from '../api/vitals.js'

/** What may be seen without signing in; everything else is denied, whether it exists or not. */
const PUBLIC_PATHS = Object.freeze(['/healthz', '/readyz', '/sign-in'])
const PUBLIC_FOLDERS = Object.freeze(['/assets/'])

/**
 * How much one may ask for in a window of time.
 * @typedef {object} Limits
 * @property {number} windowMs
 * @property {number} signInAttempts  wrong tokens of one address
 * @property {number} requests  calls of the API by whoever is signed in
 * @property {number} strangerRequests  calls of the API by anybody else, by address
 */

/** @type {Readonly<Limits>} */
export const LIMITS = Object.freeze({ windowMs: 60_000, signInAttempts: 10, requests: 6000, strangerRequests: 600 })

/**
 * @typedef {Record<'error' | 'warn', (fields: object, text: string) => void>} Log
 * @typedef {object} AppParts
 * @property {import('../deck.js').Deck} deck
 * @property {import('../../db/history.js').History} history
 * @property {import('./sessions.js').Sessions} sessions
 * @property {import('./sign-in-links.js').Links} links
 * @property {import('../dashboard/views.js').Views} views
 * @property {AbortSignal} closing
 * @property {() => number} now
 * @property {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>} timers
 * @property {Limits} limits
 * @property {Log} log
 */

/**
 * Expects that the guard has admitted the request and set `req.auth`; without that, nobody is signed in.
 * @param {AppParts} parts
 */
export function createApp (parts) {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.set('query parser', 'simple')

  app.use('/api', limitRequests(parts.limits))
  app.use(denyStrangers)
  app.use(healthRouter(parts))
  app.use(metricsRouter(parts))
  app.use(assetsRouter())
  app.use(signInRouter(parts))
  const stream = { ...parts, authenticate: parts.sessions.authenticate }
  app.use('/api/v1', createApi({
    ...clusterResources(parts),
    ...releaseResources(parts),
    ...rolloutResources(parts),
    ...crashResources(parts),
    ...diagnosticsResources(parts),
    ...eventFeedResources(parts, stream),
    ...eventResources(parts),
    ...logResources(parts, stream),
    ...signInLinkResources(parts),
    ...vitalsResources(parts)
  }))
  app.use(dashboardRouter(parts))
  app.use((req) => { throw new DeckError('not-found', `No such path: ${req.path.slice(0, 200)}`) })
  app.use(answerError(parts.log))
  return app
}

/** @type {express.RequestHandler} */
function denyStrangers (req, res, next) {
  if (req.auth || isPublic(req.path)) return next()
  const signIn = `/sign-in?next=${encodeURIComponent(req.originalUrl.slice(0, 1000))}`
  if (isPageVisit(req)) return res.redirect(303, signIn)
  // htmx follows this one itself; a redirect would put the sign-in page into a part of the page.
  if (req.headers['hx-request']) res.set('HX-Redirect', '/sign-in')
  throw new DeckError('unauthenticated', 'Sign in, or send the token: Authorization: Bearer <admin.token>')
}

function isPublic (/** @type {string} */ path) {
  return PUBLIC_PATHS.includes(path) || PUBLIC_FOLDERS.some((folder) => path.startsWith(folder))
}

function isPageVisit (/** @type {express.Request} */ { method, path, headers }) {
  return method === 'GET' && !path.startsWith('/api/') && !headers['hx-request'] && String(headers.accept).includes('text/html')
}

/**
 * Strangers are counted by address, apart from those who are signed in: they cannot use up what those have.
 * @param {Limits} limits
 */
function limitRequests ({ windowMs, requests, strangerRequests }) {
  return rateLimit({
    windowMs,
    limit: (req) => req.auth ? requests : strangerRequests,
    keyGenerator: (req) => req.auth ? req.auth.via : ipKeyGenerator(req.ip ?? ''),
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    validate: false,
    handler: (_req, _res, next) => next(new DeckError('rate-limited', 'Too many requests; see Retry-After'))
  })
}

/** @param {AppParts['log']} log @returns {express.ErrorRequestHandler} */
function answerError (log) {
  return (error, _req, res, _next) => {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
    sendProblem(res, error)
  }
}
