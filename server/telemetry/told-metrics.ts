import { MAX_APP_SERIES } from '../../workers/protocol.ts'
import type { MetricType, Series } from './metric.ts'

/** The metrics of a worker, checked: any code of the app could have sent them under our name. */
/** `series`: by their labels */
export type ToldMetric = { name: string, help: string, type: MetricType, aggregator: string,
  series: Map<string, Series> }
type Told = { metrics: ToldMetric[], gone: string[], leftOut: number }

/** The names of our own metrics begin with it. */
export const OWN_PREFIX = 'clusterdeck_'

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$/
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/
const MAX_TEXT_CHARS = 1000
const MAX_BUCKETS = 200
const TYPES = ['counter', 'gauge', 'histogram', 'summary']

/** `body`: of a message `app-metrics` @returns without what is not valid */
export function readMetrics (body: unknown): Told {
  const { metrics, gone, leftOut } = Object(body)
  const read = listOf(metrics).slice(0, MAX_APP_SERIES).flatMap((metric) => readMetric(Object(metric)) ?? [])
  return { metrics: read, gone: listOf(gone).map(String), leftOut: Number(leftOut) || 0 }
}

function readMetric ({ name, help, type, aggregator, rows }: Record<string, unknown>): ToldMetric | null {
  if (typeof name !== 'string' || !NAME.test(name) || name.startsWith(OWN_PREFIX)) return null
  const known = TYPES.includes(String(type)) ? (type as MetricType) : 'gauge'
  const series: ToldMetric['series'] = new Map()
  for (const row of listOf(rows).slice(0, MAX_APP_SERIES)) {
    const read = readRow(known, listOf(row))
    if (read) series.set(JSON.stringify(Object.entries(read.labels)), read)
  }
  return { name, help: clip(help ?? ''), type: known, aggregator: String(aggregator), series }
}

function readRow (type: MetricType, [labels, first, count, buckets]: unknown[]): Series | null {
  if (typeof first !== 'number') return null
  const own = readLabels(Object(labels))
  if (type === 'counter' || type === 'gauge') return { labels: own, value: first }
  if (typeof count !== 'number') return null
  const pairs = listOf(buckets).slice(0, MAX_BUCKETS).map(listOf)
  const read = pairs.filter(([le, each]) => typeof le === 'number' && typeof each === 'number') as [number, number][]
  return { labels: own, sum: first, count, buckets: read.toSorted(([a], [b]) => a - b) }
}

/** @returns in the order of their names */
function readLabels (labels: Record<string, unknown>): Record<string, string> {
  const pairs = Object.entries(labels).filter(([name]) => LABEL_NAME.test(name) && name !== 'le')
  return Object.fromEntries(pairs.map(([name, value]) => [name, clip(value)]).toSorted(([a], [b]) => a < b ? -1 : 1))
}

function listOf (value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function clip (value: unknown) {
  return String(value).slice(0, MAX_TEXT_CHARS)
}
