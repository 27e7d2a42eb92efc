import { visibleNames, type Auth } from '../api/roles.ts'
import { appsMetric, deckMetrics, infoMetric, leftOutMetric, masterMetrics } from '../telemetry/deck-metrics.ts'
import { joinMetrics, type Metric } from '../telemetry/metric.ts'
import { toPrometheusText } from '../telemetry/prometheus-text.ts'
import type { Apps } from '../host/api-apps.ts'

type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'vitals' | 'jobs' | 'appMetrics'>

/** All metrics of an app, in the format of Prometheus. */
export async function metricsTextOf (deck: Deck): Promise<string> {
  const { master } = deck.snapshot()
  // The figures of the process are those of the host, which tells them once.
  return toPrometheusText([...master.isShared ? [infoMetric(master)] : masterMetrics(master), ...await metricsOf(deck)])
}

/** The metrics of all apps that are the sender's to see, each with the label `app`. */
export async function hostMetricsText (apps: Apps, auth: Auth): Promise<string> {
  const visible = visibleNames(apps, auth).map((app) => ({ app, deck: apps.opened(app)?.deck }))
  const parts = await Promise.all(
    visible.flatMap(({ app, deck }) => deck ? [metricsOf(deck).then((metrics) => ({ labels: { app }, metrics }))] : [])
  )
  return toPrometheusText([...masterMetrics(apps.about()),
    appsMetric(visible.map(({ app, deck }) => ({ app, isRunning: Boolean(deck) }))), ...joinMetrics(parts)])
}

/** @returns ours, and those of the app */
async function metricsOf (deck: Deck): Promise<Metric[]> {
  const { metrics, leftOut } = await deck.appMetrics.read()
  const own = deckMetrics({ vitals: deck.vitals.metrics(), status: deck.snapshot(), jobs: deck.jobs.metrics() })
  return [...own, leftOutMetric(leftOut), ...metrics]
}
