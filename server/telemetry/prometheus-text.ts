import type { Labels, Metric, MetricType, Series } from './metric.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Writes metrics as Prometheus reads them: its text format, version 0.0.4. */
export function toPrometheusText (metrics: readonly Metric[]) {
  return metrics.map(metricText).join('\n')
}

function metricText ({ name, help, type, series }: Metric) {
  return `# HELP ${name} ${escape(help)}\n# TYPE ${name} ${type}\n${
    series.map((each) => seriesText(name, type, each)).join('')
  }`
}

function seriesText (name: string, type: MetricType, series: Series) {
  const pairs = pairsText(series.labels)
  if ('value' in series) return sample(name, pairs, series.value)
  const before = pairs === '' ? '' : `${pairs},`
  const buckets = type === 'histogram' ? [...series.buckets, [Infinity, series.count] as const] : []
  return [...buckets.map(([le, count]) => sample(`${name}_bucket`, `${before}le="${numberText(le)}"`, count)),
    sample(`${name}_sum`, pairs, series.sum), sample(`${name}_count`, pairs, series.count)].join('')
}

function sample (name: string, pairs: string, value: number) {
  return `${name}${pairs === '' ? '' : `{${pairs}}`} ${numberText(value)}\n`
}

function pairsText (labels: Labels) {
  return Object.entries(labels).map(([key, text]) => `${key}="${escape(text).replaceAll('"', '\\"')}"`).join(',')
}

function numberText (value: number) {
  return Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}

function escape (text: string) {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
