import { APP_NAME, appResources } from '../api/apps.js'
import { hostEventResources } from '../api/events.js'
import { hostFleetResources } from '../api/host-fleet.js'
import { hostResources } from '../api/host.js'
import { createIdempotency } from '../api/idempotency.js'
import { describeApi, openapiResources } from '../api/openapi.js'
import { signInLinkResources } from '../api/sign-in-links.js'
import { tokenResources } from '../api/tokens.js'
import { createHostErrorPage, liveHostPages } from '../dashboard/host-pages.js'
import { hostRouter } from '../dashboard/host-router.js'
import { createViews } from '../dashboard/views.js'
import { isPublic } from './anonymous-limiter.js'
import { operationsOf } from './deck-site.js'
import { createExpressApp } from './express-app.js'
import { mcpResources } from './mcp.js'
import { hostMetricsResources } from './metrics.js'
import { hostProbeResources } from './probes.js'
import { signInRouter } from './sign-in.js'
import { createSite } from './site.js'

/** The host answers this probe in the place of each of its apps, and of any other. */
const APP_PROBE = /^\/apps\/[^/]+\/healthz$/
/** The host answers these groups for all of its apps. */
const OF_HOST = ['Access', 'Description', 'Probes']

/**
 * The host's own site: the list of apps, and its API.
 * @param {Parameters<typeof import('./host-sites.js').createHostSites>[0]} parts
 */
export function createHostSite (parts) {
  const { apps, history, events, access, basePath, now, log } = parts
  const { version, nodeVersion } = apps.about()
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software, basePath })
  /** @type {ReturnType<typeof describeApi> | null} made at the first request */
  let document = null
  const mounts = hostOperations(parts, readDocument)
  const app = createExpressApp({
    access,
    mounts,
    idempotency: createIdempotency({ store: history.answers, now }),
    pages: [signInRouter({ ...access, views }), hostRouter({ apps, history, views, tokens: access.tokens, sessions: access.sessions, describe: readDocument, now, log })],
    isOpen: (path) => isPublic(path) || APP_PROBE.test(path),
    log
  })
  return {
    site: createSite({ ...parts, events, basePath, software, app, pages: liveHostPages({ apps, history, tokens: access.tokens, sessions: access.sessions, events, now, render: views.render }) }),
    showError: createHostErrorPage({ views, apps, now, log }).show
  }

  function readDocument () {
    document ??= describeApi([...mounts, ...appOperations()], { version, url: basePath || '/' })
    return document
  }
}

/**
 * What the host answers itself, in the order of the document.
 * @param {Pick<Parameters<typeof createHostSite>[0], 'apps' | 'history' | 'access' | 'ask' | 'now' | 'log'>} parts @param {() => object} describe  returns the document
 * @returns {import('../api/openapi.js').Mount[]}
 */
export function hostOperations ({ apps, history, access, ask, now, log }, describe) {
  return [
    {
      base: '/api/v1',
      groups: {
        Host: {
          about: 'The host itself: one master with many apps.',
          resources: { ...hostResources({ apps }), ...hostFleetResources({ apps }), ...hostEventResources({ history, now, log }) }
        },
        Apps: { about: 'The apps of the host.', resources: appResources({ apps }) },
        Access: {
          about: 'Tokens and sign-in links.',
          resources: { ...tokenResources({ ...access, history, now }), ...signInLinkResources({ ...access, now }) }
        },
        Description: { about: 'The API itself.', resources: openapiResources(describe) }
      }
    },
    {
      base: '/',
      groups: { Probes: { about: 'For load balancers and Prometheus.', resources: { ...hostProbeResources({ apps }), ...hostMetricsResources({ apps }) } }, Agents: { about: 'For agents, by the Model Context Protocol.', resources: mcpResources({ ask, now, log, isHost: true, about: apps.about }) } }
    }
  ]
}

/** What each app answers below its path, as the document has it. @returns {import('../api/openapi.js').Mount[]} */
function appOperations () {
  const [{ groups }] = operationsOf(/** @type {any} */ ({ deck: {}, access: { sessions: {} }, now: Date.now }), () => ({}))
  const { '/stop': _, ...cluster } = groups.Cluster.resources
  const own = Object.entries({ ...groups, Cluster: { ...groups.Cluster, resources: cluster } }).filter(([name]) => !OF_HOST.includes(name))
  return [{ base: '/api/v1/apps/:app', path: { app: APP_NAME }, problems: ['not-found', 'app-not-running'], groups: Object.fromEntries(own) }]
}
