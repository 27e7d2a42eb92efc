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
  const pairs = pairsText(series.labels)
  if ('value' in series) return sample(name, pairs, series.value)
  const before = pairs === '' ? '' : `${pairs},`
  const buckets = type === 'histogram' ? [...series.buckets, /** @type {const} */ ([Infinity, series.count])] : []
  return [
    ...buckets.map(([le, count]) => sample(`${name}_bucket`, `${before}le="${numberText(le)}"`, count)),
    sample(`${name}_sum`, pairs, series.sum),
    sample(`${name}_count`, pairs, series.count)
  ].join('')
}

/** @param {string} name @param {string} pairs @param {number} value */
function sample (name, pairs, value) {
  return `${name}${pairs === '' ? '' : `{${pairs}}`} ${numberText(value)}\n`
}

/** @param {Labels} labels */
function pairsText (labels) {
  return Object.entries(labels).map(([key, text]) => `${key}="${escape(text).replaceAll('"', '\\"')}"`).join(',')
}

/** @param {number} value */
function numberText (value) {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}

/** @param {string} text */
function escape (text) {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
