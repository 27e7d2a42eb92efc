import { MAX_APP_SERIES } from '../../workers/protocol.js'

/**
 * The metrics of a worker, checked: any code of the app could have sent them under our name.
 * @typedef {import('./metric.js').MetricType} MetricType
 * @typedef {import('./metric.js').Series} Series
 * @typedef {{ name: string, help: string, type: MetricType, aggregator: string, series: Map<string, Series> }} ToldMetric  `series`: by their labels
 * @typedef {{ metrics: ToldMetric[], gone: string[], leftOut: number }} Told
 */

/** The names of our own metrics begin with it. */
export const OWN_PREFIX = 'clusterdeck_'

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$/
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]{0,99}$/
const MAX_TEXT_CHARS = 1000
const MAX_BUCKETS = 200
const TYPES = ['counter', 'gauge', 'histogram', 'summary']

/**
 * @param {unknown} body of a message `app-metrics`
 * @returns {Told} without what is not valid
 */
export function readTold (body) {
  const { metrics, gone, leftOut } = Object(body)
  const read = listOf(metrics).slice(0, MAX_APP_SERIES).flatMap((metric) => readMetric(Object(metric)) ?? [])
  return { metrics: read, gone: listOf(gone).map(String), leftOut: Number(leftOut) || 0 }
}

/** @param {Record<string, unknown>} metric @returns {ToldMetric | null} */
function readMetric ({ name, help, type, aggregator, rows }) {
  if (typeof name !== 'string' || !NAME.test(name) || name.startsWith(OWN_PREFIX)) return null
  const known = TYPES.includes(String(type)) ? /** @type {MetricType} */ (type) : 'gauge'
  /** @type {ToldMetric['series']} */
  const series = new Map()
  for (const row of listOf(rows).slice(0, MAX_APP_SERIES)) {
    const read = readRow(known, listOf(row))
    if (read) series.set(keyOf(read.labels), read)
  }
  return { name, help: clip(help ?? ''), type: known, aggregator: String(aggregator), series }
}

/** @param {MetricType} type @param {unknown[]} row @returns {Series | null} */
function readRow (type, [labels, first, count, buckets]) {
  if (typeof first !== 'number') return null
  const own = readLabels(Object(labels))
  if (type === 'counter' || type === 'gauge') return { labels: own, value: first }
  if (typeof count !== 'number') return null
  const pairs = listOf(buckets).slice(0, MAX_BUCKETS).map(listOf)
  const read = /** @type {[number, number][]} */ (pairs.filter(([le, each]) => typeof le === 'number' && typeof each === 'number'))
  return { labels: own, sum: first, count, buckets: read.toSorted(([a], [b]) => a - b) }
}

/** @param {Record<string, unknown>} labels @returns {Record<string, string>} in the order of their names */
function readLabels (labels) {
  const pairs = Object.entries(labels).filter(([name]) => LABEL_NAME.test(name) && name !== 'le')
  return Object.fromEntries(pairs.map(([name, value]) => [name, clip(value)]).toSorted(([a], [b]) => a < b ? -1 : 1))
}

/** @param {Record<string, string>} labels */
function keyOf (labels) {
  return JSON.stringify(Object.entries(labels))
}

/** @param {unknown} value @returns {any[]} */
function listOf (value) {
  return Array.isArray(value) ? value : []
}

/** @param {unknown} value */
function clip (value) {
  return String(value).slice(0, MAX_TEXT_CHARS)
}
