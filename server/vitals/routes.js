import { addSparse, BUCKETS, quantile, toSparse, totalOf } from '../../workers/histogram.js'
import { MAX_ROUTES, OTHER_ROUTES } from '../../workers/protocol.js'

/**
 * @typedef {{ errors: number, latency: Float64Array }} Sum
 * @typedef {{ release: string, routes: Map<string, { errors: number, latency: readonly number[] }> }} Slice  of one minute and release; `latency`: sparse
 * @typedef {{ route: string, requests: number, errors: number, totalMs: number, p50Ms: number, p99Ms: number }} RouteFigures  `totalMs`: about what its requests took together
 */

const MINUTE_MS = 60_000
/** The last hour is kept by the minute. */
const KEPT_MINUTES = 60
const MAX_RELEASES = 10

/**
 * What the workers have answered, by release and route, since this master began: in all, and each minute of the last hour.
 * @param {{ now: () => number }} parts wall clock, ms
 */
export function createRoutes ({ now }) {
  /** @type {Map<string, Map<string, Sum>>} by release, the newest last */
  const totals = new Map()
  /** @type {Map<string, Map<string, Sum>>} by release, of the minute that is not over */
  let current = new Map()
  let currentMinute = 0
  /** @type {{ minute: number, slices: Slice[] }[]} oldest first */
  const minutes = []

  return {
    /** @param {string} release @param {import('../../workers/protocol.js').RouteReport[]} reports  checked */
    add (release, reports) {
      if (reports.length === 0) return
      turnTo(minuteOf(now()))
      for (const report of reports) {
        addTo(sumsOf(totals, release), report)
        addTo(sumsOf(current, release), report)
      }
      if (totals.size > MAX_RELEASES) totals.delete(totals.keys().next().value ?? '')
    },

    /**
     * @param {{ release?: string, sinceMs?: number }} [asked]  `release`: of this one alone; `sinceMs`: since the begin of that minute, within the last hour
     * @returns {RouteFigures[]} those with the most time first
     */
    read ({ release, sinceMs } = {}) {
      /** @type {Map<string, Sum>} */
      const sums = new Map()
      const isMeant = (/** @type {string} */ each) => release === undefined || each === release
      const newest = sinceMs === undefined ? totals : currentMinute >= minuteOf(sinceMs) ? current : []
      for (const [name, routes] of newest) if (isMeant(name)) addAll(sums, routes)
      if (sinceMs !== undefined) {
        for (const { minute, slices } of minutes) {
          if (minute < minuteOf(sinceMs)) continue
          for (const slice of slices) if (isMeant(slice.release)) for (const [route, sum] of slice.routes) addTo(sums, { route, ...sum })
        }
      }
      return [...sums].map(([route, sum]) => figuresOf(route, sum)).sort((one, other) => other.totalMs - one.totalMs || one.route.localeCompare(other.route))
    }
  }

  /** @param {number} minute */
  function turnTo (minute) {
    if (minute === currentMinute) return
    if (current.size > 0) minutes.push({ minute: currentMinute, slices: [...current].map(([release, routes]) => ({ release, routes: sparseOf(routes) })) })
    current = new Map()
    currentMinute = minute
    while (minutes.length > 0 && minutes[0].minute < minute - KEPT_MINUTES) minutes.shift()
  }
}

/** @param {Map<string, Map<string, Sum>>} all @param {string} release */
function sumsOf (all, release) {
  let sums = all.get(release)
  if (!sums) all.set(release, sums = new Map())
  return sums
}

/** @param {Map<string, Sum>} sums @param {{ route: string, errors: number, latency: readonly number[] }} more */
function addTo (sums, { route, errors, latency }) {
  const name = sums.has(route) || sums.size < MAX_ROUTES ? route : OTHER_ROUTES
  let sum = sums.get(name)
  if (!sum) sums.set(name, sum = { errors: 0, latency: new Float64Array(BUCKETS) })
  sum.errors += errors
  addSparse(sum.latency, latency)
}

/** @param {Map<string, Sum>} sums @param {Map<string, Sum>} more */
function addAll (sums, more) {
  for (const [route, { errors, latency }] of sparseOf(more)) addTo(sums, { route, errors, latency })
}

/** @param {Map<string, Sum>} sums @returns {Slice['routes']} */
function sparseOf (sums) {
  return new Map([...sums].map(([route, { errors, latency }]) => [route, { errors, latency: toSparse(latency) }]))
}

/** @param {string} route @param {Sum} sum @returns {RouteFigures} */
function figuresOf (route, { errors, latency }) {
  return { route, requests: latency.reduce((all, count) => all + count, 0), errors, totalMs: roundMs(totalOf(latency)), p50Ms: roundMs(quantile(latency, 0.5)), p99Ms: roundMs(quantile(latency, 0.99)) }
}

/** @param {number} ms */
function roundMs (ms) {
  return Math.round(ms * 100) / 100
}

/** @param {number} ms */
function minuteOf (ms) {
  return Math.floor(ms / MINUTE_MS)
}
