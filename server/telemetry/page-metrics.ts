import { z } from 'zod'
import { formatBytes, formatLatency, formatPercent, formatRate } from '../../public/format.ts'
import { parseFields } from '../api/input.ts'
import { RELEASE } from '../api/filters.ts'
import { toShownProblem, urlOf } from '../events/page-filters.ts'
import { SPARK_BOX, sparklineOf } from '../vitals/page-sparkline.ts'
import type { Deck } from '../deck.ts'
import type { KnownMetric, KnownSeries } from './metric-history.ts'

/** The page of what the app counts itself, by prom-client. */
type Asked = { deck: Pick<Deck, 'metricHistory'>, params: URLSearchParams, now: () => number }

const MAX_SERIES = 8
/** What prom-client counts of a process by itself, the vitals tell as well. */
const OF_PROCESS = /^(?:process|nodejs)_/
const FIELDS = z.object({ q: z.string().max(100).optional().describe('at most 100 characters'),
  type: z.enum(['counter', 'gauge', 'histogram', 'summary']).optional().describe('a type of metric'),
  release: RELEASE })

export function metricsModel ({ deck, params, now: clock }: Asked) {
  const now = clock()
  const { times, releases, metrics } = deck.metricHistory.list()
  const spanMs = Math.max(60_000, now - (times[0] ?? now))
  const blank = { now, since: new Date(now - spanMs).toISOString(), box: SPARK_BOX,
    releases: [...new Set(releases)].filter((id) => id !== null).toReversed(),
    types: [...new Set(metrics.map(({ type }) => type))].sort(), isEmpty: metrics.length === 0 }
  try {
    const { texts } = parseFields(FIELDS, params)
    const { q = '', type, release } = texts
    const kept = times.map((at, index) => release === undefined || releases[index] === release ? at : null)
    const found = metrics.filter((metric) =>
      (type === undefined || metric.type === type) &&
      `${metric.name} ${metric.help}`.toLowerCase().includes(q.toLowerCase())
    )
    return { ...blank, problem: null, filters: texts, marks: deploysIn(times, releases).map((at) =>
      SPARK_BOX.width * (1 - (now - at) / spanMs)
    ), metrics: found.map((metric) => toShown(metric, { kept, now, spanMs })).sort((one, other) =>
      Number(OF_PROCESS.test(one.name)) - Number(OF_PROCESS.test(other.name)) || (one.name < other.name ? -1 : 1)
    ), canonicalUrl: urlOf('/app-metrics', texts) }
  } catch (error) {
    return { ...blank, problem: toShownProblem(error), filters: {}, marks: [], metrics: [],
      canonicalUrl: '/app-metrics' }
  }
}

/** Draws it again once there is something new. */
export function followMetrics (asked: Asked) {
  let seen = -1
  return () => {
    const newest = asked.deck.metricHistory.newestAt()
    if (newest === seen) return null
    seen = newest
    return metricsModel(asked)
  }
}

function deploysIn (times: number[], releases: (string | null)[]): number[] {
  return times.filter((_, index) => index > 0 && releases[index] !== releases[index - 1])
}

/** `kept`: when; null: another release than the chosen one ran */
function toShown ({ name, help, type, series }: KnownMetric,
  { kept, now, spanMs }: { kept: (number | null)[], now: number, spanMs: number })
{
  const rows = series.flatMap(({ labels, lines }) =>
    lines.map((line) => toRow(line, { labels, name, kept, now, spanMs }))
  ).filter(({ max }) => max !== null)
  return { name, help, type, rows: rows.slice(0, MAX_SERIES * 3), more: Math.max(0, rows.length - MAX_SERIES * 3) }
}

function toRow ({ label, values }: KnownSeries['lines'][number],
  { labels, name, kept, now, spanMs }: { labels: KnownSeries['labels'], name: string, kept: (number | null)[],
    now: number, spanMs: number })
{
  const points = kept.flatMap((at, index) => at === null ? [] : [{ ageMs: now - at, value: values[index] }])
  const { path, end, max, last } = sparklineOf(points, spanMs)
  const format = formatOf(name, label)
  return {
    label: [label, ...Object.entries(labels).map(([key, value]) => `${key} ${value}`)].filter(Boolean).join(', '),
    path,
    end,
    max,
    lastText: format(last),
    maxText: format(max)
  }
}

/** By the unit that Prometheus wants at the end of a name. */
function formatOf (name: string, label: string): (value: number | null) => string {
  if (label === 'rate') return (value) => rateText(value, name.endsWith('_seconds_total'))
  if (/_seconds(?:_total)?$/.test(name)) return (value) => formatLatency(value === null ? null : value * 1000)
  if (/_bytes(?:_total)?$/.test(name)) return formatBytes
  if (name.endsWith('_ratio')) return (value) => formatPercent(value === null ? null : value * 100)
  return (value) => value === null ? '–' : Number(value.toPrecision(4)).toLocaleString('en-US')
}

/** A small rate is read by the minute. `isShare`: seconds of each second */
function rateText (value: number | null, isShare: boolean): string {
  if (value === null) return '–'
  return value < 1 && !isShare ? `${formatRate(value * 60)}/min` : `${formatRate(value)}/s`
}
