import { addSparse, BUCKETS, quantile, toSparse, totalOf } from '../../workers/histogram.ts'
import { MAX_ROUTES, OTHER_ROUTES, type RouteReport, type SlowRequest } from '../../workers/protocol.ts'

type Slow = Omit<SlowRequest, 'at'> & { at: string, worker: number, release: string }
/** `latency`: sparse, of a sum all buckets */
type Part<Latency = readonly number[]> = { errors: number, latency: Latency, slowest: Slow | null }
type Sum = Part<Float64Array>
/** of one minute and release */
type Slice = { release: string, routes: Map<string, Part> }
type Range = { release?: string, sinceMs?: number, untilMs?: number }
/** `totalMs`: about what its requests took together */
type Figures = { requests: number, errors: number, totalMs: number, p50Ms: number, p99Ms: number }
type RouteFigures = Figures & { route: string }

const MINUTE_MS = 60_000
/** The last hour is kept by the minute. */
const KEPT_MINUTES = 60
const MAX_RELEASES = 10
const MAX_SLOWEST = 10

/**
 * What the workers have answered, by release and route, since this master began: in all, and each minute of the last
 * hour. `parts`: wall clock, ms.
 */
export function createRoutes ({ now }: { now: () => number }) {
  /** by release, the newest last */
  const totals: Map<string, Map<string, Sum>> = new Map()
  /** by release, of the minute that is not over */
  let current: Map<string, Map<string, Sum>> = new Map()
  let currentMinute = 0
  /** oldest first */
  const minutes: { minute: number, slices: Slice[] }[] = []

  return {
    /** `reports`: checked */
    add (release: string, worker: number, reports: RouteReport[]) {
      if (reports.length === 0) return
      turnTo(minuteOf(now()))
      for (const { route, errors, latency, slowest } of reports) {
        const part = { route, errors, latency, slowest: slowest ? toSlow(slowest, { worker, release }) : null }
        addTo(sumsOf(totals, release), part)
        addTo(sumsOf(current, release), part)
      }
      if (totals.size > MAX_RELEASES) totals.delete(totals.keys().next().value ?? '')
    },

    /**
     * `release`: of this one alone; `sinceMs`: since the begin of that minute, within the last hour; `untilMs`: to the
     * end of the minute before. Returns those with the most time first.
     */
    read ({ release, sinceMs, untilMs }: Range = {}): RouteFigures[] {
      const sums: Map<string, Sum> = new Map()
      const isMeant = (each: string) => release === undefined || each === release
      const isInside = isIn({ sinceMs, untilMs })
      const newest = sinceMs === undefined ? totals : isInside(currentMinute) ? current : []
      for (const [name, routes] of newest) if (isMeant(name)) addAll(sums, routes)
      if (sinceMs !== undefined) {
        for (const { minute, slices } of minutes) {
          if (!isInside(minute)) continue
          for (const slice of slices)
            if (isMeant(slice.release)) { for (const [route, sum] of slice.routes) addTo(sums, { route, ...sum }) }
        }
      }
      return Array.from(sums, ([route, sum]) => ({ route, ...figuresOf(sum) })).sort((one, other) =>
        other.totalMs - one.totalMs || one.route.localeCompare(other.route)
      )
    },

    /** By route: of the slowest requests of each minute and release so many, the slowest first. */
    slowest ({ release, ...range }: Range = {}): Map<string, Slow[]> {
      const isInside = isIn(range)
      const all = lastHour(release).filter(({ at }) => isInside(minuteOf(at))).flatMap(({ routes }) => [...routes])
      return new Map(Array.from(Map.groupBy(all, ([route]) => route), ([route, parts]) => [route, slowestOf(parts)]))
    },

    /**
     * How many requests each route has answered in each minute of the last hour, by the begin of the minute, ms.
     * `release`: of this release alone
     */
    requestsByMinute (release?: string): Map<string, Map<number, number>> {
      const found: Map<string, Map<number, number>> = new Map()
      for (const { at, routes } of lastHour(release)) {
        for (const [route, { latency }] of routes) {
          const known = found.get(route) ?? new Map()
          found.set(route, known.set(at, (known.get(at) ?? 0) + totalInSparse(latency)))
        }
      }
      return found
    },

    /** What one route has answered in each minute of the last hour, by the begin of the minute, ms. */
    minutesOf (route: string): Map<number, Figures> {
      const sums: Map<number, Sum> = new Map()
      for (const { at, routes } of lastHour()) {
        const known = routes.get(route)
        if (!known) continue
        const sum = sums.get(at) ?? emptySum()
        sums.set(at, sum)
        increase(sum, known)
      }
      return new Map(Array.from(sums, ([at, sum]) => [at, figuresOf(sum)]))
    }
  }

  /** @returns of each minute and release, oldest first; `at`: the begin of the minute, ms */
  function lastHour (wanted?: string) {
    return [...minutes, sparseMinute()].flatMap(({ minute, slices }) =>
      slices.filter(({ release }) => (wanted ?? release) === release).map(({ routes }) => ({ at: minute * MINUTE_MS,
        routes })
      )
    )
  }

  /** The minute that is not over. */
  function sparseMinute () {
    return { minute: currentMinute,
      slices: [...current].map(([release, routes]) => ({ release, routes: sparseOf(routes) })) }
  }

  function turnTo (minute: number) {
    if (minute === currentMinute) return
    if (current.size > 0) minutes.push(sparseMinute())
    current = new Map()
    currentMinute = minute
    while (minutes.length > 0 && minutes[0].minute < minute - KEPT_MINUTES) minutes.shift()
  }
}

/** Nothing else is kept of what an app may have sent. */
function toSlow ({ method, path, status, ms, at }: SlowRequest, by: { worker: number, release: string }): Slow {
  return { at: new Date(at).toISOString(), method, path, status, ms: roundMs(ms), ...by }
}

function sumsOf (all: Map<string, Map<string, Sum>>, release: string) {
  let sums = all.get(release)
  if (!sums) all.set(release, sums = new Map())
  return sums
}

function addTo (sums: Map<string, Sum>, { route, ...part }: Part & { route: string }) {
  const name = sums.has(route) || sums.size < MAX_ROUTES ? route : OTHER_ROUTES
  let sum = sums.get(name)
  if (!sum) sums.set(name, sum = emptySum())
  increase(sum, part)
}

function emptySum (): Sum {
  return { errors: 0, latency: new Float64Array(BUCKETS), slowest: null }
}

function increase (sum: Sum, { errors, latency, slowest }: Part) {
  sum.errors += errors
  if (slowest && slowest.ms > (sum.slowest?.ms ?? -1)) sum.slowest = slowest
  addSparse(sum.latency, latency)
}

function addAll (sums: Map<string, Sum>, more: Map<string, Sum>) {
  for (const [route, part] of sparseOf(more)) addTo(sums, { route, ...part })
}

/** Tells whether a minute is meant: from that of `sinceMs` to the one before `untilMs`. */
function isIn ({ sinceMs = 0, untilMs = Infinity }: Range) {
  return (minute: number) => minute >= minuteOf(sinceMs) && minute * MINUTE_MS < untilMs
}

function slowestOf (parts: [route: string, Part][]): Slow[] {
  const found = parts.flatMap(([, { slowest }]) => slowest ?? [])
  return found.sort((one, other) => other.ms - one.ms).slice(0, MAX_SLOWEST)
}

function sparseOf (sums: Map<string, Sum>): Slice['routes'] {
  return new Map([...sums].map(([route, { latency, ...rest }]) => [route, { ...rest, latency: toSparse(latency) }]))
}

/** @returns how many there are in all of the buckets, see toSparse */
function totalInSparse (sparse: readonly number[]): number {
  return sparse.reduce((sum, count, index) => index % 2 === 1 ? sum + count : sum, 0)
}

function figuresOf ({ errors, latency }: Sum): Figures {
  return { requests: latency.reduce((all, count) => all + count, 0), errors, totalMs: roundMs(totalOf(latency)),
    p50Ms: roundMs(quantile(latency, 0.5)), p99Ms: roundMs(quantile(latency, 0.99)) }
}

function roundMs (ms: number) {
  return Math.round(ms * 100) / 100
}

function minuteOf (ms: number) {
  return Math.floor(ms / MINUTE_MS)
}
