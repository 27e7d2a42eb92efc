import type { AppMetrics } from './app-metrics.ts'
import type { Labels, MetricType, Series } from './metric.ts'

/** How what the app counts by prom-client has changed over the last hour, without anybody who collects it. */
export type MetricHistory = ReturnType<typeof createMetricHistory>
export type KnownMetric = { name: string, help: string, type: MetricType, series: KnownSeries[] }
/** `lines`: a value for each of `times`, oldest first; null: unknown */
export type KnownSeries = { labels: Labels, lines: { label: string, values: (number | null)[] }[] }
type Known = { metric: Omit<KnownMetric, 'series'>, labels: Labels, last: Series,
  lines: Map<string, (number | null)[]> }

/** As often as most collectors ask. */
const STEP_MS = 15_000
const STEPS = 240
/** Labels may be new with each request. */
const MAX_SERIES = 300
const P99 = 0.99

export function createMetricHistory (
  { appMetrics: { read, isEmpty }, release, now = Date.now, setTimer = setInterval, clearTimer = clearInterval }: {
    appMetrics: Pick<AppMetrics, 'read' | 'isEmpty'>,
    /** that runs */
    release: () => string | null,
    /** wall clock, ms since the epoch */
    now?: () => number,
    setTimer?: (work: () => void, ms: number) => NodeJS.Timeout,
    clearTimer?: (timer: NodeJS.Timeout) => void
  }
) {
  /** by name and labels */
  const series: Map<string, Known> = new Map()
  const times: number[] = []
  const releases: (string | null)[] = []
  const timer = setTimer(look, STEP_MS)
  timer.unref?.()

  return {
    /** Tells whether the app has no metrics of its own */
    isEmpty,

    /** When it last looked, ms since the epoch; 0: never. */
    newestAt: () => times.at(-1) ?? 0,

    /** `times`: ms since the epoch; `releases`: what ran then */
    list (): { times: number[], releases: (string | null)[], metrics: KnownMetric[] } {
      const metrics: Map<string, KnownMetric> = new Map()
      for (const { metric, labels, lines } of series.values()) {
        const known = metrics.get(metric.name) ?? { ...metric, series: [] }
        metrics.set(metric.name, known)
        known.series.push({ labels, lines: Array.from(lines, ([label, values]) => ({ label, values: [...values] })) })
      }
      return { times: [...times], releases: [...releases], metrics: [...metrics.values()] }
    },

    look,

    stop: () => clearTimer(timer)
  }

  async function look () {
    if (isEmpty()) return
    const { metrics } = await read()
    const at = now()
    const seconds = (at - (times.at(-1) ?? at)) / 1000
    times.push(at)
    releases.push(release())
    const seen: Set<string> = new Set()
    for (const { series: all, ...metric } of metrics) {
      for (const each of all) {
        const key = `${metric.name}${JSON.stringify(each.labels)}`
        const known = series.get(key) ?? begin(key, metric, each)
        if (!known) continue
        seen.add(key)
        for (const [label, value] of valuesOf(metric.type, each, { before: known.last, seconds })) {
          // A line that begins late is empty before.
          const values = known.lines.get(label) ?? new Array(times.length - 1).fill(null)
          known.lines.set(label, values)
          values.push(value)
        }
        known.last = each
      }
    }
    for (const [key, { lines }] of series) {
      if (!seen.has(key)) { for (const values of lines.values()) values.push(null) }
    }
    if (times.length > STEPS) forgetOldest()
  }

  function begin (key: string, metric: Known['metric'], first: Series): Known | null {
    if (series.size >= MAX_SERIES) return null
    const known: Known = { metric, labels: first.labels, last: first, lines: new Map() }
    series.set(key, known)
    return known
  }

  function forgetOldest () {
    times.shift()
    releases.shift()
    for (const [key, { lines }] of series) {
      for (const values of lines.values()) values.shift()
      if ([...lines.values()].every((values) => values.every((value) => value === null))) series.delete(key)
    }
  }
}

/** What is drawn of a series: how fast a counter grows, how long it took that a histogram has measured. */
function valuesOf (type: MetricType, series: Series,
  { before, seconds }: { before: Series, seconds: number }): [label: string, value: number | null][]
{
  if ('value' in series)
    return type === 'counter' ? [['rate', growth(series.value, valueOf(before), seconds)]] : [['', series.value]]
  const last = 'value' in before ? null : before
  const count = last && series.count - last.count
  const isKnown = count !== null && count > 0
  return [['rate', growth(series.count, last?.count ?? null, seconds)], ['mean',
    isKnown ? (series.sum - Number(last?.sum)) / count : null],
    ...(type === 'histogram'
      ? [['p99', isKnown ? quantile(series, last, count) : null] as [string, number | null]]
      : [])]
}

function valueOf (series: Series): number | null {
  return 'value' in series ? series.value : null
}

/** Null: it is seen for the first time, or has begun anew */
function growth (value: number, before: number | null, seconds: number): number | null {
  return before === null || seconds <= 0 || value < before ? null : (value - before) / seconds
}

/** The upper bound of the bucket that the quantile falls into. Null: it is above all of them */
function quantile ({ buckets }: { buckets: [number, number][] }, before: { buckets: [number, number][] } | null,
  count: number): number | null
{
  const old = new Map(before?.buckets)
  return buckets.find(([le, all]) => all - (old.get(le) ?? 0) >= P99 * count)?.[0] ?? null
}
