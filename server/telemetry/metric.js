/**
 * A metric and its samples, as they are told to whoever collects metrics.
 * @typedef {object} Metric
 * @property {string} name
 * @property {string} help
 * @property {MetricType} type
 * @property {Series[]} series
 *
 * @typedef {'counter' | 'gauge' | 'histogram' | 'summary'} MetricType
 * @typedef {Record<string, string>} Labels
 * @typedef {[le: number, count: number][]} Buckets  ascending, cumulative, without that of +Inf
 *
 * One set of labels. A histogram has all four, a summary no buckets.
 * @typedef {{ labels: Labels, value: number } | { labels: Labels, sum: number, count: number, buckets: Buckets }} Series
 */

/**
 * Joins the metrics of several apps, each of which adds its labels to all of its series.
 * @param {{ labels: Labels, metrics: readonly Metric[] }[]} parts
 * @returns {Metric[]} where two apps differ in the type of a metric, that of the first one stays
 */
export function joinMetrics (parts) {
  /** @type {Map<string, Metric>} */
  const joined = new Map()
  for (const { labels, metrics } of parts) {
    for (const { series, ...metric } of metrics) {
      const known = joined.get(metric.name) ?? { ...metric, series: [] }
      joined.set(metric.name, known)
      if (known.type === metric.type) for (const each of series) known.series.push({ ...each, labels: addLabels(each.labels, labels) })
    }
  }
  return [...joined.values()]
}

/** A label of the app's own that is called as one of ours is renamed, as Prometheus does it. @param {Labels} own @param {Labels} added @returns {Labels} */
function addLabels (own, added) {
  const renamed = Object.fromEntries(Object.entries(own).map(([name, value]) => [Object.hasOwn(added, name) ? `exported_${name}` : name, value]))
  return { ...added, ...renamed }
}
