import { createIdempotency } from '../api/idempotency.ts'
import { clusterResources } from '../api/cluster.ts'
import { checkResources } from '../doctor/api.ts'
import { configResources } from '../config/api.ts'
import { crashResources } from '../crashes/api.ts'
import { diagnosticsResources } from '../diagnostics/api.ts'
import { eventCountResources } from '../events/api-counts.ts'
import { eventFeedResources } from '../events/api-feed.ts'
import { eventResources } from '../events/api.ts'
import { fleetCrashResources } from '../fleet/api-crashes.ts'
import { fleetResources } from '../fleet/api.ts'
import { memberResources } from '../fleet/api-members.ts'
import { histogramResources } from '../events/api-histogram.ts'
import { jobResources } from '../jobs/api.ts'
import { logResources } from '../logs/api.ts'
import { messageResources } from '../api/messages.ts'
import { noticeResources } from '../events/api-notices.ts'
import { mcpResources, type Ask } from './mcp.ts'
import { metricsResources } from './metrics.ts'
import { probeResources } from './probes.ts'
import { profileResources } from '../diagnostics/api-profiles.ts'
import { livePages } from '../dashboard/pages.ts'
import { dashboardRouter } from '../dashboard/router.ts'
import { createViews } from '../dashboard/views.ts'
import { describeApi, openapiResources, type Mount } from '../api/openapi.ts'
import { comparisonResources } from '../releases/api-comparison.ts'
import { releaseResources } from '../releases/api.ts'
import { rolloutResources } from '../rollouts/api.ts'
import { createExpressApp } from './express-app.ts'
import { signInRouter } from './sign-in.ts'
import { createSite, type Timers } from './site.ts'
import { signInLinkResources } from '../access/api-sign-in-links.ts'
import { tokenResources } from '../access/api-tokens.ts'
import { routeResources } from '../vitals/api-routes.ts'
import { vitalsResources } from '../vitals/api.ts'
import { alertResources } from '../alerts/api.ts'
import type { IncomingMessage } from 'node:http'
import type { Deck } from '../deck.ts'
import type { History } from '../../db/history.ts'
import type { Access } from './access.ts'
import type { Neighbours } from '../dashboard/palette.ts'
import type { SchemaPool } from '../api/schema-pool.ts'
import type { Log } from '../system/log.ts'

type DeckSiteParts = {
  deck: Deck,
  history: History,
  access: Access,
  /** the URL of this site for the sender */
  urlFor: (req: IncomingMessage) => string,
  basePath: string,
  /** the base path of the port */
  home: string,
  /** whether a person signs in here, and not at a site of its own */
  hasSignIn: boolean,
  /** in a host */
  neighbours?: Neighbours,
  /** of sites that are alike */
  schemas?: SchemaPool,
  /** answers a request without a port */
  ask: Ask,
  closing: AbortSignal,
  now: () => number,
  timers: Timers,
  log: Log
}

/** The site of one deck: its API, its pages, its live page, and in its history who has used them. */
export function createDeckSite (parts: DeckSiteParts) {
  const { deck, history, access, basePath, home, hasSignIn, now, log } = parts
  const { version, nodeVersion } = deck.snapshot().master
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software, basePath, home, mounts: () => mounts })
  /** made at the first request, as most masters get none */
  let document: ReturnType<typeof describeApi> | null = null
  const mounts = operationsOf(parts, readDocument)
  parts.schemas?.share(mounts)
  const app = createExpressApp({ access, mounts, idempotency: createIdempotency({ store: history.answers, now }),
    pages: [...(hasSignIn ? [signInRouter({ ...access, views })] : []),
      dashboardRouter({ deck, history, views, mounts, tokens: access.tokens, sessions: access.sessions,
        describe: readDocument, neighbours: parts.neighbours, basePath, now, log })], log })
  return createSite({ ...parts, events: deck.events, software, app,
    pages: livePages({ deck, history, tokens: access.tokens, sessions: access.sessions, now, views }) })

  function readDocument () {
    document ??= describeApi(mounts, { version, url: basePath || '/' })
    return document
  }
}

/** All operations, in the order of the document. `describe`: returns the document. */
export function operationsOf (parts: DeckSiteParts, describe: () => object): Mount[] {
  const { access } = parts
  const stream = { ...parts, authenticate: access.sessions.authenticate, streams: new Map() }
  const mounts: Mount[] = [{ base: '/api/v1',
    groups: { Cluster: { about: 'The state of the cluster, and its size.', resources: clusterResources(parts) },
      Notices: { about: 'Problems that nobody has acknowledged.', resources: noticeResources(parts) },
      Configuration: { about: 'The settings of the master.', resources: configResources(parts) },
      Checks: { about: 'What could drop a request or lose a release.', resources: checkResources(parts) },
      Rollouts: { about: 'Restarts, deploys and rollbacks.', resources: rolloutResources(parts) },
      Fleet: { about: 'The app on other machines, and its rollouts over all of them.',
        resources: { ...fleetResources(parts), ...memberResources(parts), ...fleetCrashResources(parts) } },
      Releases: { about: 'The code that was deployed.',
        resources: { ...releaseResources(parts), ...comparisonResources(parts) } },
      History: { about: 'Events, past and live.',
        resources: { ...eventFeedResources(parts, stream), ...eventCountResources(parts), ...histogramResources(parts),
          ...eventResources(parts) } },
      Crashes: { about: 'Crashes of workers, in groups.', resources: crashResources(parts) },
      Messages: { about: 'Messages of operators to the app.', resources: messageResources(parts) },
      Vitals: { about: 'Memory, CPU, event loop and requests of the workers.',
        resources: { ...vitalsResources(parts), ...routeResources(parts) } },
      Logs: { about: 'Output of the workers on stdout and stderr.', resources: logResources(parts, stream) },
      Jobs: { about: 'Commands that run beside the workers, by the clock or when somebody asks.',
        resources: jobResources(parts, stream) },
      Diagnostics: { about: 'Profiles and snapshots of one worker, and continuous profiling of all.',
        resources: { ...diagnosticsResources(parts), ...profileResources(parts) } },
      Alerts: { about: 'Alerts and their deliveries.', resources: alertResources(parts) },
      Access: { about: 'Tokens and sign-in links.',
        resources: { ...tokenResources({ ...parts, ...access }),
          ...signInLinkResources({ ...parts, ...access, urlFor: parts.urlFor }) } },
      Description: { about: 'The API itself.', resources: openapiResources(describe) } } }, { base: '/',
    groups: {
      Probes: { about: 'For load balancers and Prometheus.',
        resources: { ...probeResources(parts), ...metricsResources(parts) } },
      Agents: { about: 'For agents, by the Model Context Protocol.',
        resources: mcpResources({ ...parts, takesApp: false, hasFleet: () => parts.deck.fleet !== null, groups: () =>
          mounts[0].groups, about: () => parts.deck.snapshot().master }) }
    } }]
  return mounts
}
