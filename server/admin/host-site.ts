import { alertResources } from '../alerts/api.ts'
import { APP_NAME, appResources } from '../host/api-apps.ts'
import { hostEventResources } from '../events/api.ts'
import { hostFleetResources } from '../fleet/api-host.ts'
import { hostLogResources } from '../logs/api-apps.ts'
import { hostResources } from '../host/api.ts'
import { createIdempotency } from '../api/idempotency.ts'
import { noticeResources } from '../events/api-notices.ts'
import { describeApi, openapiResources, type Mount } from '../api/openapi.ts'
import { signInLinkResources } from '../access/api-sign-in-links.ts'
import { tokenResources } from '../access/api-tokens.ts'
import { createHostErrorPage, liveHostPages } from '../dashboard/host-pages.ts'
import { hostRouter } from '../dashboard/host-router.ts'
import { createViews } from '../dashboard/views.ts'
import { isPublic } from './anonymous-limiter.ts'
import { operationsOf } from './deck-site.ts'
import { createExpressApp } from './express-app.ts'
import { mcpResources } from './mcp.ts'
import { hostMetricsResources } from './metrics.ts'
import { hostProbeResources } from './probes.ts'
import { signInRouter } from './sign-in.ts'
import { createSite } from './site.ts'
import type { createHostSites } from './host-sites.ts'

/** The host answers this probe in the place of each of its apps, and of any other. */
const APP_PROBE = /^\/apps\/[^/]+\/healthz$/
/** The host answers these groups for all of its apps. */
const OF_HOST = ['Access', 'Description', 'Probes']

/** The host's own site: the list of apps, and its API. */
export function createHostSite (parts: Parameters<typeof createHostSites>[0]) {
  const { apps, history, events, access, basePath, now, log } = parts
  const { version, nodeVersion } = apps.about()
  const software = `clusterdeck ${version} on Node ${nodeVersion}`
  const views = createViews({ software, basePath, mounts: () => mounts })
  /** made at the first request */
  let document: ReturnType<typeof describeApi> | null = null
  const mounts = hostOperations(parts, readDocument)
  const app = createExpressApp({ access, mounts, idempotency: createIdempotency({ store: history.answers, now }),
    pages: [signInRouter({ ...access, views }),
      hostRouter({ apps, history, views, mounts, tokens: access.tokens, sessions: access.sessions,
        describe: readDocument, basePath, now, log })], isOpen: (path) => isPublic(path) || APP_PROBE.test(path), log })
  return {
    site: createSite({ ...parts, events, basePath, software, app,
      pages: liveHostPages({ apps, history, tokens: access.tokens, sessions: access.sessions, events, now, views }) }),
    showError: createHostErrorPage({ views, apps, now, log }).show
  }

  function readDocument () {
    document ??= describeApi([...mounts, ...appOperations()], { version, url: basePath || '/' })
    return document
  }
}

/** What the host answers itself, in the order of the document. `describe`: returns the document. */
export function hostOperations (
  { apps, history, access, ask, now, log }: Pick<Parameters<typeof createHostSite>[0],
    'apps' | 'history' | 'access' | 'ask' | 'now' | 'log'>,
  describe: () => object
): Mount[] {
  return [{ base: '/api/v1',
    groups: {
      Host: { about: 'The host itself: one master with many apps.',
        resources: { ...hostResources({ apps }), ...hostFleetResources({ apps }),
          ...hostEventResources({ apps, history, now, log }), ...hostLogResources({ apps, now }),
          ...noticeResources({ deck: apps, isOfHost: true }),
          ...alertResources({ deck: apps, history, isOfHost: true }) } },
      Apps: { about: 'The apps of the host.', resources: appResources({ apps }) },
      Access: { about: 'Tokens and sign-in links.',
        resources: { ...tokenResources({ ...access, history, now }), ...signInLinkResources({ ...access, now }) } },
      Description: { about: 'The API itself.', resources: openapiResources(describe) }
    } }, { base: '/',
    groups: {
      Probes: { about: 'For load balancers and Prometheus.',
        resources: { ...hostProbeResources({ apps }), ...hostMetricsResources({ apps }) } },
      Agents: { about: 'For agents, by the Model Context Protocol.',
        resources: mcpResources({ ask, now, log, takesApp: true, groups: () => appOperations()[0].groups,
          about: apps.about }) }
    } }]
}

/** What each app answers below its path, as the document has it. */
function appOperations (): Mount[] {
  const [{ groups }] = operationsOf(
    { deck: {}, access: { sessions: {} }, now: Date.now } as Parameters<typeof operationsOf>[0],
    () => ({})
  )
  const { '/stop': _, ...cluster } = groups.Cluster.resources
  const own = Object.entries({ ...groups, Cluster: { ...groups.Cluster, resources: cluster } }).filter(([name]) =>
    !OF_HOST.includes(name)
  )
  return [{ base: '/api/v1/apps/:app', path: { app: APP_NAME }, problems: ['not-found', 'app-not-running'],
    groups: Object.fromEntries(own) }]
}
