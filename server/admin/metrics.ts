import { z } from 'zod'
import { visibleNames, type Apps } from '../host/api-apps.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { appsMetric, deckMetrics, infoMetric, leftOutMetric, masterMetrics } from '../telemetry/deck-metrics.ts'
import { joinMetrics, type Metric } from '../telemetry/metric.ts'
import { CONTENT_TYPE, toPrometheusText } from '../telemetry/prometheus-text.ts'
import type { Auth } from '../api/roles.ts'

type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'vitals' | 'jobs' | 'appMetrics'>

const TEXT = 'text/plain'

/** Needs a token, as everything does: `authorization: { credentials_file: …/admin.token }`. */
export function metricsResources ({ deck }: { deck: Deck }): Record<string, Resource> {
  return metricsResource(async () => {
    const { master } = deck.snapshot()
    // The figures of the process are those of the host, which tells them once.
    return [...master.isShared ? [infoMetric(master)] : masterMetrics(master), ...await metricsOf(deck)]
  })
}

/** Has the metrics of all apps, each with the label `app`. */
export function hostMetricsResources ({ apps }: { apps: Apps }): Record<string, Resource> {
  return metricsResource(async (auth) => {
    const visible = visibleNames(apps, auth).map((app) => ({ app, deck: apps.opened(app)?.deck }))
    const parts = await Promise.all(
      visible.flatMap(({ app, deck }) =>
        deck ? [metricsOf(deck).then((metrics) => ({ labels: { app }, metrics }))] : []
      )
    )
    return [...masterMetrics(apps.about()),
      appsMetric(visible.map(({ app, deck }) => ({ app, isRunning: Boolean(deck) }))), ...joinMetrics(parts)]
  })
}

function metricsResource (read: (auth: Auth) => Promise<Metric[]>) {
  return {
    '/metrics': {
      GET: operation({ name: 'getMetrics', summary: 'Returns all metrics in the format of Prometheus', role: 'viewer',
        produces: [], answer: { [TEXT]: z.string() }, async handle ({ res, auth }) {
        const text = toPrometheusText(await read(auth))
        res.type(CONTENT_TYPE).send(text)
        return undefined
      } })
    }
  }
}

/** @returns ours, and those of the app */
async function metricsOf (deck: Deck): Promise<Metric[]> {
  const { metrics, leftOut } = await deck.appMetrics.read()
  const own = deckMetrics({ vitals: deck.vitals.metrics(), status: deck.snapshot(), jobs: deck.jobs.metrics() })
  return [...own, leftOutMetric(leftOut), ...metrics]
}
