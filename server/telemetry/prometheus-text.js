/** @typedef {import('./metric.js').Metric} Metric */
/** @typedef {import('./metric.js').Labels} Labels */

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * Writes metrics as Prometheus reads them: its text format, version 0.0.4.
 * @param {readonly Metric[]} metrics
 */
export function toPrometheusText (metrics) {
  return metrics.map(metricText).join('\n')
}

/** @param {Metric} metric */
function metricText ({ name, help, type, series }) {
  return `# HELP ${name} ${escape(help)}\n# TYPE ${name} ${type}\n${series.map((each) => seriesText(name, type, each)).join('')}`
}

/** @param {string} name @param {import('./metric.js').MetricType} type @param {import('./metric.js').Series} series */
function seriesText (name, type, series) {
  const { labels } = series
  if ('value' in series) return sample(name, labels, series.value)
  const buckets = [...series.buckets, /** @type {const} */ ([Infinity, series.count])]
  return [
    ...type === 'histogram' ? buckets.map(([le, count]) => sample(`${name}_bucket`, { ...labels, le: numberText(le) }, count)) : [],
    sample(`${name}_sum`, labels, series.sum),
    sample(`${name}_count`, labels, series.count)
  ].join('')
}

/** @param {string} name @param {Labels} labels @param {number} value */
function sample (name, labels, value) {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escape(text).replaceAll('"', '\\"')}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${numberText(value)}\n`
}

/** @param {number} value */
function numberText (value) {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}

/** @param {string} text */
function escape (text) {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
