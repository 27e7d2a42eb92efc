import { z } from 'zod'
import { visibleNames } from '../api/apps.js'
import { operation } from '../api/endpoint.js'
import { appsMetric, deckMetrics, infoMetric, leftOutMetric, masterMetrics } from '../telemetry/deck-metrics.js'
import { joinMetrics } from '../telemetry/metric.js'
import { CONTENT_TYPE, toPrometheusText } from '../telemetry/prometheus-text.js'

/**
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'vitals' | 'jobs' | 'appMetrics'>} Deck
 * @typedef {import('../telemetry/metric.js').Metric} Metric
 */

const TEXT = 'text/plain'

/**
 * Needs a token, as everything does: `authorization: { credentials_file: …/admin.token }`.
 * @param {{ deck: Deck }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function metricsResources ({ deck }) {
  return metricsResource(async () => {
    const { master } = deck.snapshot()
    // The figures of the process are those of the host, which tells them once.
    return [...master.isShared ? [infoMetric(master)] : masterMetrics(master), ...await metricsOf(deck)]
  })
}

/**
 * Has the metrics of all apps, each with the label `app`.
 * @param {{ apps: import('../api/apps.js').Apps }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function hostMetricsResources ({ apps }) {
  return metricsResource(async (auth) => {
    const visible = visibleNames(apps, auth).map((app) => ({ app, deck: apps.opened(app)?.deck }))
    const parts = await Promise.all(visible.flatMap(({ app, deck }) => deck ? [metricsOf(deck).then((metrics) => ({ labels: { app }, metrics }))] : []))
    return [...masterMetrics(apps.about()), appsMetric(visible.map(({ app, deck }) => ({ app, isRunning: Boolean(deck) }))), ...joinMetrics(parts)]
  })
}

/** @param {(auth: import('../api/roles.js').Auth) => Promise<Metric[]>} read */
function metricsResource (read) {
  return {
    '/metrics': {
      GET: operation({
        name: 'getMetrics',
        summary: 'Returns all metrics in the format of Prometheus',
        role: 'viewer',
        produces: [],
        answer: { [TEXT]: z.string() },
        async handle ({ res, auth }) {
          const text = toPrometheusText(await read(auth))
          res.type(CONTENT_TYPE).send(text)
          return undefined
        }
      })
    }
  }
}

/** @param {Deck} deck @returns {Promise<Metric[]>} ours, and those of the app */
async function metricsOf (deck) {
  const { metrics, leftOut } = await deck.appMetrics.read()
  const own = deckMetrics({ vitals: deck.vitals.metrics(), status: deck.snapshot(), jobs: deck.jobs.metrics() })
  return [...own, leftOutMetric(leftOut), ...metrics]
}
