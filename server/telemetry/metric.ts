/** A metric and its samples, as they are told to whoever collects metrics. */
export type Metric = { name: string, help: string, type: MetricType, series: Series[] }
export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary'
export type Labels = Record<string, string>
/** ascending, cumulative, without that of +Inf */
export type Buckets = [le: number, count: number][]
/** One set of labels. A histogram has all four, a summary no buckets. */
export type Series =
  | { labels: Labels, value: number }
  | { labels: Labels, sum: number, count: number, buckets: Buckets }

/**
 * Joins the metrics of several apps, each of which adds its labels to all of its series.
 * @returns where two apps differ in the type of a metric, that of the first one stays
 */
export function joinMetrics (parts: { labels: Labels, metrics: readonly Metric[] }[]): Metric[] {
  const joined: Map<string, Metric> = new Map()
  for (const { labels, metrics } of parts) {
    for (const { series, ...metric } of metrics) {
      const known = joined.get(metric.name) ?? { ...metric, series: [] }
      joined.set(metric.name, known)
      if (known.type === metric.type) {
        for (const each of series) known.series.push({ ...each, labels: addLabels(each.labels, labels) })
      }
    }
  }
  return [...joined.values()]
}

/** A label of the app's own that is called as one of ours is renamed, as Prometheus does it. */
function addLabels (own: Labels, added: Labels): Labels {
  const renamed = Object.fromEntries(
    Object.entries(own).map(([name, value]) => [Object.hasOwn(added, name) ? `exported_${name}` : name, value])
  )
  return { ...added, ...renamed }
}
