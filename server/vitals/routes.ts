import { addSparse, BUCKETS, quantile, toSparse, totalOf } from '../../workers/histogram.ts'
import { MAX_ROUTES, OTHER_ROUTES, type RouteReport } from '../../workers/protocol.ts'

type Sum = { errors: number, latency: Float64Array }
/** of one minute and release; `latency`: sparse */
type Slice = { release: string, routes: Map<string, { errors: number, latency: readonly number[] }> }
/** `totalMs`: about what its requests took together */
type Figures = { requests: number, errors: number, totalMs: number, p50Ms: number, p99Ms: number }
type RouteFigures = Figures & { route: string }

const MINUTE_MS = 60_000
/** The last hour is kept by the minute. */
const KEPT_MINUTES = 60
const MAX_RELEASES = 10

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
    add (release: string, reports: RouteReport[]) {
      if (reports.length === 0) return
      turnTo(minuteOf(now()))
      for (const report of reports) {
        addTo(sumsOf(totals, release), report)
        addTo(sumsOf(current, release), report)
      }
      if (totals.size > MAX_RELEASES) totals.delete(totals.keys().next().value ?? '')
    },

    /**
     * `release`: of this one alone; `sinceMs`: since the begin of that minute, within the last hour; `untilMs`: to the
     * end of the minute before. Returns those with the most time first.
     */
    read (
      { release, sinceMs, untilMs = Infinity }: { release?: string, sinceMs?: number, untilMs?: number } = {}
    ): RouteFigures[] {
      const sums: Map<string, Sum> = new Map()
      const isMeant = (each: string) => release === undefined || each === release
      const isInside = (minute: number) => minute >= minuteOf(sinceMs ?? 0) && minute * MINUTE_MS < untilMs
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

function sumsOf (all: Map<string, Map<string, Sum>>, release: string) {
  let sums = all.get(release)
  if (!sums) all.set(release, sums = new Map())
  return sums
}

function addTo (sums: Map<string, Sum>,
  { route, errors, latency }: { route: string, errors: number, latency: readonly number[] })
{
  const name = sums.has(route) || sums.size < MAX_ROUTES ? route : OTHER_ROUTES
  let sum = sums.get(name)
  if (!sum) sums.set(name, sum = emptySum())
  increase(sum, { errors, latency })
}

function emptySum (): Sum {
  return { errors: 0, latency: new Float64Array(BUCKETS) }
}

function increase (sum: Sum, { errors, latency }: { errors: number, latency: readonly number[] }) {
  sum.errors += errors
  addSparse(sum.latency, latency)
}

function addAll (sums: Map<string, Sum>, more: Map<string, Sum>) {
  for (const [route, { errors, latency }] of sparseOf(more)) addTo(sums, { route, errors, latency })
}

function sparseOf (sums: Map<string, Sum>): Slice['routes'] {
  return new Map([...sums].map(([route, { errors, latency }]) => [route, { errors, latency: toSparse(latency) }]))
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
