import type { ToldMetric } from './told-metrics.ts'
import type { Buckets, Metric, Series } from './metric.ts'

/** How values of several workers become one: the aggregators of prom-client. Any other one is `sum`. */
const AGGREGATORS: Map<string, (values: number[]) => number> = new Map([['first', ([value]) => value], ['min',
  (values) => Math.min(...values)], ['max', (values) => Math.max(...values)], ['average',
  (values) => sum(values) / values.length]])

/**
 * Makes one metric of those that several workers have under the same name. `living`: newest worker first; `ended`: of
 * workers that have ended. Returns null: the app wants it left out, or it has no series.
 */
export function sumMetric (living: readonly ToldMetric[], ended: readonly ToldMetric[]): Metric | null {
  const [{ name, help, type, aggregator }] = [...living, ...ended]
  if (aggregator === 'omit') return null
  const aggregate = AGGREGATORS.get(aggregator) ?? sum
  const all = [...living, ...aggregate === sum && type !== 'gauge' ? ended : []].filter((metric) =>
    metric.type === type
  )
  const bySeries: Map<string, Series[]> = new Map()
  for (const { series } of all) {
    for (const [key, each] of series) {
      const others = bySeries.get(key)
      if (others) others.push(each)
      else bySeries.set(key, [each])
    }
  }
  return bySeries.size === 0
    ? null
    : { name, help, type, series: [...bySeries.values()].map((several) => joinSeries(several, aggregate)) }
}

/**
 * Keeps what workers have counted until they ended, or until the app reset its metrics.
 * @param maxSeries labels may be new with each worker, such as a pid
 */
export function createKeptMetrics (maxSeries: number) {
  const kept: Map<string, ToldMetric> = new Map()
  let count = 0

  return {
    names: () => [...kept.keys()],

    /** @returns none or one */
    named: (name: string): ToldMetric[] => [kept.get(name) ?? []].flat(),

    /** `series`: of it */
    add (metric: ToldMetric, series: Iterable<[string, Series]> = metric.series) {
      // Values that only grow count also of a worker that has ended.
      if (metric.type !== 'gauge') {
        for (const [key, each] of series)
          if (count < maxSeries || kept.has(metric.name)) addSeries(ofType(metric), key, each)
      }
    }
  }

  function ofType (metric: ToldMetric): ToldMetric {
    let own = kept.get(metric.name)
    if (own?.type === metric.type) return own
    // The app means something else by that name now.
    for (const each of own?.series.values() ?? []) count -= linesOf(each)
    kept.set(metric.name, own = { ...metric, series: new Map() })
    return own
  }

  function addSeries (own: ToldMetric, key: string, series: Series) {
    const before = own.series.get(key)
    const joined = before ? joinSeries([before, series], sum) : series
    const lines = linesOf(joined) - (before ? linesOf(before) : 0)
    if (!before && count + lines > maxSeries) return
    count += lines
    own.series.set(key, joined)
  }
}

/** @returns how many lines Prometheus reads of it, each a series to it */
export function linesOf (series: Series): number {
  if ('value' in series) return 1
  return 2 + (series.buckets.length > 0 ? series.buckets.length + 1 : 0)
}

/** @returns what never falls as long as nobody resets it */
export function countOf (series: Series): number {
  return 'value' in series ? series.value : series.count
}

/** `several`: with the same labels */
function joinSeries (several: Series[], aggregate: (values: number[]) => number): Series {
  const [{ labels }] = several
  if (several.length === 1) return several[0]
  const [single, multiple] = [several.filter(isSingle), several.filter(isMultiple)]
  if (single.length > 0) return { labels, value: aggregate(single.map(({ value }) => value)) }
  return { labels, sum: sum(multiple.map((each) => each.sum)), count: sum(multiple.map(({ count }) => count)),
    buckets: joinBuckets(multiple.map(({ buckets }) => buckets)) }
}

/**
 * Releases may have other bounds for the same histogram. Where one has no such bound, what is below its next lower one
 * is certain.
 */
function joinBuckets (several: Buckets[]): Buckets {
  const [first, ...others] = several
  const areAlike = others.every((buckets) =>
    buckets.length === first.length && buckets.every(([le], index) => le === first[index][0])
  )
  if (areAlike)
    return first.map(([le], index) => [le, several.reduce((count, buckets) => count + buckets[index][1], 0)])
  const bounds = [...new Set(several.flatMap((buckets) => buckets.map(([le]) => le)))].sort((a, b) => a - b)
  return bounds.map((
    bound
  ) => [bound, sum(several.map((buckets) => buckets.findLast(([le]) => le <= bound)?.[1] ?? 0))])
}

function sum (values: number[]) {
  return values.reduce((a, b) => a + b, 0)
}

function isSingle (series: Series): series is Extract<Series, { value: number }> {
  return 'value' in series
}

function isMultiple (series: Series): series is Exclude<Series, { value: number }> {
  return !isSingle(series)
}
