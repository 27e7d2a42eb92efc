import type { Metric, Series } from './metric.ts'
import type { LogRecord } from './log-record.ts'

/** Requests of OTLP/HTTP as JSON, as https://github.com/open-telemetry/opentelemetry-proto defines them, version 1. */
/** `attributes`: of its resource */
export type Sender = { attributes: Record<string, string | number>, version: string }
/** the time that the sums are over */
type Span = { startMs: number, nowMs: number }

const CUMULATIVE = 2
const SEVERITIES = Object.freeze({ error: 17, warn: 13, info: 9, debug: 5, none: 0 })
/** The end of its name tells the unit of a metric, which OTLP writes as UCUM does. */
const UNITS = [[/_seconds(_total)?$/, 's'], [/_bytes(_total)?$/, 'By'], [/_ratio$/, '1']] as const

export function metricsRequest (metrics: readonly Metric[], span: Span, sender: Sender) {
  const told = metrics.filter(({ series }) => series.length > 0).map((metric) => toMetric(metric, span))
  return {
    resourceMetrics: [{ resource: resourceOf(sender), scopeMetrics: [{ scope: scopeOf(sender), metrics: told }] }]
  }
}

export function logsRequest (records: readonly LogRecord[], { nowMs }: { nowMs: number }, sender: Sender) {
  return {
    resourceLogs: [{ resource: resourceOf(sender),
      scopeLogs: [{ scope: scopeOf(sender), logRecords: records.map((record) => toLogRecord(record, nowMs)) }] }]
  }
}

function resourceOf ({ attributes }: Sender) {
  return { attributes: toAttributes(attributes) }
}

function scopeOf ({ version }: Sender) {
  return { name: 'clusterdeck', version }
}

function toMetric ({ name, help, type, series }: Metric, span: Span) {
  const unit = UNITS.find(([end]) => end.test(name))?.[1]
  const about = { name, description: help, ...unit && { unit } }
  if (type === 'gauge') return { ...about, gauge: { dataPoints: series.flatMap((each) => numberPoint(each, span)) } }
  if (type === 'counter')
    return { ...about,
      sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true,
        dataPoints: series.flatMap((each) => numberPoint(each, span)) } }
  if (type === 'summary') return { ...about, summary: { dataPoints: series.flatMap((each) => countPoint(each, span)) } }
  return { ...about,
    histogram: { aggregationTemporality: CUMULATIVE, dataPoints: series.flatMap((each) => bucketPoint(each, span)) } }
}

/** @returns none for NaN and infinity, which JSON does not have */
function numberPoint (series: Series, span: Span): object[] {
  return 'value' in series && Number.isFinite(series.value)
    ? [{ ...pointOf(series, span), asDouble: series.value }]
    : []
}

function countPoint (series: Series, span: Span) {
  return 'count' in series && Number.isFinite(series.sum)
    ? [{ ...pointOf(series, span), count: wholeText(series.count), sum: series.sum }]
    : []
}

function bucketPoint (series: Series, span: Span) {
  if (!('count' in series)) return []
  const counts = [...series.buckets.map(([, count]) => count), series.count]
  return countPoint(series, span).map((point) => ({ ...point, explicitBounds: series.buckets.map(([le]) => le),
    bucketCounts: counts.map((count, index) => wholeText(count - (counts[index - 1] ?? 0))) })
  )
}

function pointOf ({ labels }: Series, { startMs, nowMs }: Span) {
  return { attributes: toAttributes(labels), startTimeUnixNano: nanoseconds(startMs), timeUnixNano: nanoseconds(nowMs) }
}

function toLogRecord ({ at, level, text, event, attributes, trace }: LogRecord, nowMs: number) {
  return { timeUnixNano: nanoseconds(at), observedTimeUnixNano: nanoseconds(nowMs), severityNumber: SEVERITIES[level],
    ...level !== 'none' && { severityText: level.toUpperCase() }, body: { stringValue: text },
    attributes: toAttributes(attributes), ...event !== null && { eventName: `clusterdeck.${event}` },
    ...trace && { traceId: trace.traceId, ...trace.spanId && { spanId: trace.spanId } } }
}

function toAttributes (attributes: Record<string, string | number>) {
  return Object.entries(attributes).map(([key, value]) => ({ key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: wholeText(value) } })
  )
}

/**
 * A 64-bit number is a text in the JSON of protobuf. One that an app has made up, and that has no such text, must not
 * stop the others.
 */
function wholeText (value: number) {
  return String(Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(value) || 0)))
}

/** `ms`: since the epoch, which a double has no nanoseconds for */
function nanoseconds (ms: number) {
  return `${Math.floor(ms)}000000`
}
