import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { DeckError } from '../errors.js'
import { routeOperations } from '../api/endpoint.js'
import { createIdempotency } from '../api/idempotency.js'
import { sendProblem, toDeckError } from '../problem.js'
import { assetsRouter } from '../dashboard/assets.js'
import { compressResponse } from './compression.js'
import { clusterResources } from '../api/cluster.js'
import { configResources } from '../api/config.js'
import { crashResources } from '../api/crashes.js'
import { diagnosticsResources } from '../api/diagnostics.js'
import { eventCountResources } from '../api/event-counts.js'
import { eventFeedResources } from '../api/event-feed.js'
import { eventResources } from '../api/events.js'
import { fleetCrashResources } from '../api/fleet-crashes.js'
import { fleetResources } from '../api/fleet.js'
import { fleetEventResources } from '../api/fleet-events.js'
import { memberResources } from '../api/members.js'
import { histogramResources } from '../api/histogram.js'
import { logResources } from '../api/logs.js'
import { messageResources } from '../api/messages.js'
import { noticeResources } from '../api/notices.js'
import { metricsResources } from './metrics.js'
import { probeResources } from './probes.js'
import { dashboardRouter } from '../dashboard/router.js'
import { describeApi, openapiResources } from '../api/openapi.js'
import { releaseResources } from '../api/releases.js'
import { rolloutResources } from '../api/rollouts.js'
import { signInRouter } from './sign-in.js'
import { signInLinkResources } from '../api/sign-in-links.js'
import { isPublic } from './anonymous-limiter.js'
import { tokenResources } from '../api/tokens.js'
import { vitalsResources } from '../api/vitals.js'
import { webhookResources } from '../api/webhooks.js'

/**
 * How many requests are answered in a window of time.
 * @typedef {object} Limits
 * @property {number} windowMs
 * @property {number} signInAttempts  with a wrong token, from one address
 * @property {number} requests  of one holder who is signed in
 * @property {number} switches  to other decks, of one holder who is signed in: each makes a link there
 * @property {number} strangerRequests  without a sign-in, from one address, for paths that are not public
 */

/** @type {Readonly<Limits>} */
export const LIMITS = Object.freeze({ windowMs: 60_000, signInAttempts: 10, requests: 6000, switches: 30, strangerRequests: 600 })

/**
 * @typedef {object} AppParts
 * @property {import('../deck.js').Deck} deck
 * @property {import('../../db/history.js').History} history
 * @property {import('./sessions.js').Sessions} sessions
 * @property {import('../api/tokens.js').TokenRegistry} tokens
 * @property {import('./sign-in-links.js').Links} links
 * @property {(req: import('node:http').IncomingMessage) => string} urlFor  the URL of this site for the sender
 * @property {string} basePath
 * @property {import('../dashboard/views.js').Views} views
 * @property {AbortSignal} closing
 * @property {() => number} now
 * @property {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>} timers
 * @property {Limits} limits
 * @property {import('../system/log.js').Log} log
 */

/**
 * Expects that the guard has admitted the request and set `req.auth`; without it the sender is not signed in.
 * @param {AppParts} parts
 */
export function createApp (parts) {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.set('query parser', 'simple')

  const { windowMs, requests, switches } = parts.limits
  app.use('/api', limitRequests({ windowMs, limit: requests }))
  app.use('/actions/switch', limitRequests({ windowMs, limit: switches }))
  app.use(sendToSignIn)
  app.use(assetsRouter())
  app.use(compressResponse)
  /** @type {ReturnType<typeof describeApi> | null} made at the first request, as most masters get none */
  let document = null
  const readDocument = () => {
    document ??= describeApi(mounts, { ...parts.deck.snapshot().master, url: parts.basePath || '/' })
    return document
  }
  const mounts = operationsOf(parts, readDocument)
  const idempotency = createIdempotency({ store: parts.history.answers, now: parts.now })
  for (const { base, groups } of mounts) app.use(base, routeOperations(groups, { idempotency }))
  app.use('/api', (req) => { throw new DeckError('not-found', `No such path: ${req.originalUrl.split('?')[0].slice(0, 200)}`) })
  app.use(signInRouter(parts))
  app.use(dashboardRouter({ ...parts, describe: readDocument }))
  app.use((req) => { throw new DeckError('not-found', `No such path: ${req.path.slice(0, 200)}`) })
  app.use(answerError(parts.log))
  return app
}

/**
 * All operations, in the order of the document.
 * @param {AppParts} parts @param {() => object} describe  returns the document
 * @returns {import('../api/openapi.js').Mount[]}
 */
export function operationsOf (parts, describe) {
  const stream = { ...parts, authenticate: parts.sessions.authenticate, streams: new Map() }
  return [
    {
      base: '/api/v1',
      groups: {
        Cluster: { about: 'The state of the cluster, and its size.', resources: clusterResources(parts) },
        Notices: { about: 'Problems that nobody has acknowledged.', resources: noticeResources(parts) },
        Configuration: { about: 'The settings of the master.', resources: configResources(parts) },
        Rollouts: { about: 'Restarts, deploys and rollbacks.', resources: rolloutResources(parts) },
        Fleet: {
          about: 'Decks on other machines, and rollouts over all of them.',
          resources: { ...fleetResources(parts), ...memberResources(parts), ...fleetCrashResources(parts), ...fleetEventResources(parts) }
        },
        Releases: { about: 'The code that was deployed.', resources: releaseResources(parts) },
        History: {
          about: 'Events, past and live.',
          resources: { ...eventFeedResources(parts, stream), ...eventCountResources(parts), ...histogramResources(parts), ...eventResources(parts) }
        },
        Crashes: { about: 'Crashes of workers, in groups.', resources: crashResources(parts) },
        Messages: { about: 'Messages of operators to the app.', resources: messageResources(parts) },
        Vitals: { about: 'Memory, CPU, event loop and requests of the workers.', resources: vitalsResources(parts) },
        Logs: { about: 'Output of the workers on stdout and stderr.', resources: logResources(parts, stream) },
        Diagnostics: { about: 'Profiles and snapshots of one worker.', resources: diagnosticsResources(parts) },
        Webhooks: { about: 'Webhooks and their deliveries.', resources: webhookResources(parts) },
        Access: { about: 'Tokens and sign-in links.', resources: { ...tokenResources(parts), ...signInLinkResources(parts) } },
        Description: { about: 'The API itself.', resources: openapiResources(describe) }
      }
    },
    { base: '/', groups: { Probes: { about: 'For load balancers and Prometheus.', resources: { ...probeResources(parts), ...metricsResources(parts) } } } }
  ]
}

/**
 * Sends a visit of a page to the sign-in page; other requests without a sign-in are refused earlier.
 * @type {express.RequestHandler}
 */
function sendToSignIn (req, res, next) {
  if (req.auth || isPublic(req.path)) return next()
  res.redirect(303, `/sign-in?next=${encodeURIComponent(req.originalUrl.slice(0, 1000))}`)
}

/**
 * Limits requests with a sign-in. Those without one are counted earlier and apart, so that they cannot use up this limit.
 * @param {{ windowMs: number, limit: number }} limits
 */
function limitRequests ({ windowMs, limit }) {
  return rateLimit({
    windowMs,
    limit,
    skip: (req) => !req.auth,
    keyGenerator: (req) => `${req.auth?.via} ${req.auth?.token}`,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    validate: false,
    handler: (_req, _res, next) => next(new DeckError('rate-limited', 'Too many requests: wait for the seconds in Retry-After'))
  })
}

/** @param {AppParts['log']} log @returns {express.ErrorRequestHandler} */
function answerError (log) {
  return (error, _req, res, _next) => {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
    sendProblem(res, error)
  }
}
