import express from 'express'
import { ipKeyGenerator, rateLimit } from 'express-rate-limit'
import { DeckError } from '../errors.js'
import { routeOperations } from '../api/endpoint.js'
import { sendProblem, toDeckError } from '../api/problem.js'
import { assetsRouter } from '../dashboard/assets.js'
import { clusterResources } from '../api/cluster.js'
import { crashResources } from '../api/crashes.js'
import { diagnosticsResources } from '../api/diagnostics.js'
import { eventFeedResources } from '../api/event-feed.js'
import { eventResources } from '../api/events.js'
import { logResources } from '../api/logs.js'
import { messageResources } from '../api/messages.js'
import { metricsResources } from './metrics.js'
import { probeResources } from './probes.js'
import { dashboardRouter } from '../dashboard/router.js'
import { describeApi, openapiResources } from '../api/openapi.js'
import { releaseResources } from '../api/releases.js'
import { rolloutResources } from '../api/rollouts.js'
import { signInRouter } from './sign-in.js'
import { signInLinkResources } from '../api/sign-in-links.js'
import { tokenResources } from '../api/tokens.js'
import { vitalsResources } from '../api/vitals.js'
import { webhookResources } from '../api/webhooks.js'

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
 * @property {import('./tokens.js').Tokens} tokens
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
  /** @type {ReturnType<typeof describeApi> | null} most masters are never asked */
  let document = null
  const describe = () => {
    document ??= describeApi(mounts, parts.deck.snapshot().master)
    return document
  }
  const mounts = operationsOf(parts, describe)
  for (const { base, groups } of mounts) app.use(base, routeOperations(groups))
  app.use('/api', (req) => { throw new DeckError('not-found', `No such path: ${req.originalUrl.split('?')[0].slice(0, 200)}`) })
  app.use(assetsRouter())
  app.use(signInRouter(parts))
  app.use(dashboardRouter({ ...parts, describe }))
  app.use((req) => { throw new DeckError('not-found', `No such path: ${req.path.slice(0, 200)}`) })
  app.use(answerError(parts.log))
  return app
}

/**
 * All operations, in the order in which somebody reads of them.
 * @param {AppParts} parts @param {() => object} describe  the document of them
 * @returns {import('../api/openapi.js').Mount[]}
 */
export function operationsOf (parts, describe) {
  const stream = { ...parts, authenticate: parts.sessions.authenticate }
  return [
    {
      base: '/api/v1',
      groups: {
        Cluster: { about: 'The cluster as it is, and as it should be.', resources: clusterResources(parts) },
        Rollouts: { about: 'Restarts, deploys and rollbacks.', resources: rolloutResources(parts) },
        Releases: { about: 'The code that was deployed.', resources: releaseResources(parts) },
        History: { about: 'What happened, and what happens now.', resources: { ...eventFeedResources(parts, stream), ...eventResources(parts) } },
        Crashes: { about: 'What workers have died of.', resources: crashResources(parts) },
        Messages: { about: 'What operators say to the app.', resources: messageResources(parts) },
        Vitals: { about: 'How the workers are.', resources: vitalsResources(parts) },
        Logs: { about: 'What the workers write to stdout and stderr.', resources: logResources(parts, stream) },
        Diagnostics: { about: 'A look into one worker.', resources: diagnosticsResources(parts) },
        Webhooks: { about: 'Who is told of events, and what became of it.', resources: webhookResources(parts) },
        Access: { about: 'Who may come in.', resources: { ...tokenResources(parts), ...signInLinkResources(parts) } },
        Description: { about: 'The API itself.', resources: openapiResources(describe) }
      }
    },
    { base: '/', groups: { Probes: { about: 'For load balancers and Prometheus.', resources: { ...probeResources(parts), ...metricsResources(parts) } } } }
  ]
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
    keyGenerator: (req) => req.auth ? `${req.auth.via} ${req.auth.token}` : ipKeyGenerator(req.ip ?? ''),
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
