/**
 * Requests of OTLP/HTTP as JSON, as https://github.com/open-telemetry/opentelemetry-proto defines them, version 1.
 * @typedef {import('./metric.js').Metric} Metric
 * @typedef {import('./metric.js').Series} Series
 * @typedef {import('./log-record.js').LogRecord} LogRecord
 * @typedef {{ attributes: Record<string, string | number>, version: string }} Sender  `attributes`: of its resource
 * @typedef {{ startMs: number, nowMs: number }} Span  the time that the sums are over
 */

const CUMULATIVE = 2
const SEVERITIES = Object.freeze({ error: 17, warn: 13, info: 9, debug: 5, none: 0 })
/** The end of its name tells the unit of a metric, which OTLP writes as UCUM does. */
const UNITS = /** @type {const} */ ([[/_seconds(_total)?$/, 's'], [/_bytes(_total)?$/, 'By'], [/_ratio$/, '1']])

/** @param {readonly Metric[]} metrics @param {Span} span @param {Sender} sender */
export function metricsRequest (metrics, span, sender) {
  const told = metrics.filter(({ series }) => series.length > 0).map((metric) => toMetric(metric, span))
  return { resourceMetrics: [{ resource: resourceOf(sender), scopeMetrics: [{ scope: scopeOf(sender), metrics: told }] }] }
}

/** @param {readonly LogRecord[]} records @param {{ nowMs: number }} span @param {Sender} sender */
export function logsRequest (records, { nowMs }, sender) {
  return { resourceLogs: [{ resource: resourceOf(sender), scopeLogs: [{ scope: scopeOf(sender), logRecords: records.map((record) => toLogRecord(record, nowMs)) }] }] }
}

/** @param {Sender} sender */
function resourceOf ({ attributes }) {
  return { attributes: toAttributes(attributes) }
}

/** @param {Sender} sender */
function scopeOf ({ version }) {
  return { name: 'clusterdeck', version }
}

/** @param {Metric} metric @param {Span} span */
function toMetric ({ name, help, type, series }, span) {
  const unit = UNITS.find(([end]) => end.test(name))?.[1]
  const about = { name, description: help, ...unit && { unit } }
  if (type === 'gauge') return { ...about, gauge: { dataPoints: series.flatMap((each) => numberPoint(each, span)) } }
  if (type === 'counter') return { ...about, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints: series.flatMap((each) => numberPoint(each, span)) } }
  if (type === 'summary') return { ...about, summary: { dataPoints: series.flatMap((each) => countPoint(each, span)) } }
  return { ...about, histogram: { aggregationTemporality: CUMULATIVE, dataPoints: series.flatMap((each) => bucketPoint(each, span)) } }
}

/** @param {Series} series @param {Span} span @returns {object[]} none for NaN and infinity, which JSON does not have */
function numberPoint (series, span) {
  return 'value' in series && Number.isFinite(series.value) ? [{ ...pointOf(series, span), asDouble: series.value }] : []
}

/** @param {Series} series @param {Span} span */
function countPoint (series, span) {
  return 'count' in series && Number.isFinite(series.sum) ? [{ ...pointOf(series, span), count: wholeText(series.count), sum: series.sum }] : []
}

/** @param {Series} series @param {Span} span */
function bucketPoint (series, span) {
  if (!('count' in series)) return []
  const counts = [...series.buckets.map(([, count]) => count), series.count]
  return countPoint(series, span).map((point) => ({
    ...point,
    explicitBounds: series.buckets.map(([le]) => le),
    bucketCounts: counts.map((count, index) => wholeText(count - (counts[index - 1] ?? 0)))
  }))
}

/** @param {Series} series @param {Span} span */
function pointOf ({ labels }, { startMs, nowMs }) {
  return { attributes: toAttributes(labels), startTimeUnixNano: nanoseconds(startMs), timeUnixNano: nanoseconds(nowMs) }
}

/** @param {LogRecord} record @param {number} nowMs */
function toLogRecord ({ at, level, text, event, attributes, trace }, nowMs) {
  return {
    timeUnixNano: nanoseconds(at),
    observedTimeUnixNano: nanoseconds(nowMs),
    severityNumber: SEVERITIES[level],
    ...level !== 'none' && { severityText: level.toUpperCase() },
    body: { stringValue: text },
    attributes: toAttributes(attributes),
    ...event !== null && { eventName: `clusterdeck.${event}` },
    ...trace && { traceId: trace.traceId, ...trace.spanId && { spanId: trace.spanId } }
  }
}

/** @param {Record<string, string | number>} attributes */
function toAttributes (attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: typeof value === 'string' ? { stringValue: value } : { intValue: wholeText(value) } }))
}

/** A 64-bit number is a text in the JSON of protobuf. One that an app has made up, and that has no such text, must not stop the others. @param {number} value */
function wholeText (value) {
  return String(Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value) || 0)))
}

/** @param {number} ms since the epoch, which a double has no nanoseconds for */
function nanoseconds (ms) {
  return `${Math.floor(ms)}000000`
}
