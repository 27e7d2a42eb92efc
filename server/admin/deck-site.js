import { createIdempotency } from '../api/idempotency.js'
import { clusterResources } from '../api/cluster.js'
import { checkResources } from '../api/checks.js'
import { configResources } from '../api/config.js'
import { crashResources } from '../api/crashes.js'
import { diagnosticsResources } from '../api/diagnostics.js'
import { eventCountResources } from '../api/event-counts.js'
import { eventFeedResources } from '../api/event-feed.js'
import { eventResources } from '../api/events.js'
import { fleetCrashResources } from '../api/fleet-crashes.js'
import { fleetLogResources } from '../api/fleet-logs.js'
import { fleetResources } from '../api/fleet.js'
import { fleetEventResources } from '../api/fleet-events.js'
import { memberResources } from '../api/members.js'
import { histogramResources } from '../api/histogram.js'
import { jobResources } from '../api/jobs.js'
import { logResources } from '../api/logs.js'
import { messageResources } from '../api/messages.js'
import { noticeResources } from '../api/notices.js'
import { mcpResources } from './mcp.js'
import { metricsResources } from './metrics.js'
import { probeResources } from './probes.js'
import { profileResources } from '../api/profiles.js'
import { livePages } from '../dashboard/pages.js'
import { dashboardRouter } from '../dashboard/router.js'
import { createViews } from '../dashboard/views.js'
import { describeApi, openapiResources } from '../api/openapi.js'
import { releaseResources } from '../api/releases.js'
import { rolloutResources } from '../api/rollouts.js'
import { createExpressApp } from './express-app.js'
import { signInRouter } from './sign-in.js'
import { createSite } from './site.js'
import { signInLinkResources } from '../api/sign-in-links.js'
import { tokenResources } from '../api/tokens.js'
import { routeResources } from '../api/routes.js'
import { vitalsResources } from '../api/vitals.js'
import { alertResources } from '../api/alerts.js'

/**
 * @typedef {object} DeckSiteParts
 * @property {import('../deck.js').Deck} deck
 * @property {import('../../db/history.js').History} history
 * @property {import('./access.js').Access} access
 * @property {(req: import('node:http').IncomingMessage) => string} urlFor  the URL of this site for the sender
 * @property {string} basePath
 * @property {string} home  the base path of the port
 * @property {boolean} hasSignIn  whether a person signs in here, and not at a site of its own
 * @property {import('../dashboard/palette.js').Neighbours} [neighbours]  in a host
 * @property {import('../api/schema-pool.js').SchemaPool} [schemas]  of sites that are alike
 * @property {import('./mcp.js').Ask} ask  answers a request without a port
 * @property {AbortSignal} closing
 * @property {() => number} now
 * @property {import('./site.js').Timers} timers
 * @property {import('../system/log.js').Log} log
 */

/**
 * The site of one deck: its API, its pages, its live page, and in its history who has used them.
 * @param {DeckSiteParts} parts
 */
export function createDeckSite (parts) {
  const { deck, history, access, basePath, home, hasSignIn, now, log } = parts
  const { version, nodeVersion } = deck.snapshot().master
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software, basePath, home })
  /** @type {ReturnType<typeof describeApi> | null} made at the first request, as most masters get none */
  let document = null
  const mounts = operationsOf(parts, readDocument)
  parts.schemas?.share(mounts)
  const app = createExpressApp({
    access,
    mounts,
    idempotency: createIdempotency({ store: history.answers, now }),
    pages: [
      ...(hasSignIn ? [signInRouter({ ...access, views })] : []),
      dashboardRouter({ deck, history, views, tokens: access.tokens, sessions: access.sessions, describe: readDocument, neighbours: parts.neighbours, basePath, now, log })
    ],
    log
  })
  return createSite({ ...parts, events: deck.events, software, app, pages: livePages({ deck, history, tokens: access.tokens, sessions: access.sessions, now, render: views.render }) })

  function readDocument () {
    document ??= describeApi(mounts, { version, url: basePath || '/' })
    return document
  }
}

/**
 * All operations, in the order of the document.
 * @param {DeckSiteParts} parts @param {() => object} describe  returns the document
 * @returns {import('../api/openapi.js').Mount[]}
 */
export function operationsOf (parts, describe) {
  const { access } = parts
  const stream = { ...parts, authenticate: access.sessions.authenticate, streams: new Map() }
  return [
    {
      base: '/api/v1',
      groups: {
        Cluster: { about: 'The state of the cluster, and its size.', resources: clusterResources(parts) },
        Notices: { about: 'Problems that nobody has acknowledged.', resources: noticeResources(parts) },
        Configuration: { about: 'The settings of the master.', resources: configResources(parts) },
        Checks: { about: 'What could drop a request or lose a release.', resources: checkResources(parts) },
        Rollouts: { about: 'Restarts, deploys and rollbacks.', resources: rolloutResources(parts) },
        Fleet: {
          about: 'The app on other machines, and its rollouts over all of them.',
          resources: { ...fleetResources(parts), ...memberResources(parts), ...fleetCrashResources(parts), ...fleetLogResources(parts), ...fleetEventResources(parts) }
        },
        Releases: { about: 'The code that was deployed.', resources: releaseResources(parts) },
        History: {
          about: 'Events, past and live.',
          resources: { ...eventFeedResources(parts, stream), ...eventCountResources(parts), ...histogramResources(parts), ...eventResources(parts) }
        },
        Crashes: { about: 'Crashes of workers, in groups.', resources: crashResources(parts) },
        Messages: { about: 'Messages of operators to the app.', resources: messageResources(parts) },
        Vitals: { about: 'Memory, CPU, event loop and requests of the workers.', resources: { ...vitalsResources(parts), ...routeResources(parts) } },
        Logs: { about: 'Output of the workers on stdout and stderr.', resources: logResources(parts, stream) },
        Jobs: { about: 'Commands that run beside the workers, by the clock or when somebody asks.', resources: jobResources(parts, stream) },
        Diagnostics: { about: 'Profiles and snapshots of one worker, and continuous profiling of all.', resources: { ...diagnosticsResources(parts), ...profileResources(parts) } },
        Alerts: { about: 'Alerts and their deliveries.', resources: alertResources(parts) },
        Access: { about: 'Tokens and sign-in links.', resources: { ...tokenResources({ ...parts, ...access }), ...signInLinkResources({ ...parts, ...access, urlFor: parts.urlFor }) } },
        Description: { about: 'The API itself.', resources: openapiResources(describe) }
      }
    },
    { base: '/', groups: { Probes: { about: 'For load balancers and Prometheus.', resources: { ...probeResources(parts), ...metricsResources(parts) } }, Agents: { about: 'For agents, by the Model Context Protocol.', resources: mcpResources({ ...parts, isHost: false, hasFleet: () => parts.deck.fleet !== null, about: () => parts.deck.snapshot().master }) } } }
  ]
}
