import { addSparse, BUCKETS, bucketOf, quantile } from '../../workers/histogram.js'

/**
 * @typedef {{ requests: number, errors: number, latency: Float64Array }} Sum
 * @typedef {Record<'canary' | 'baseline', Sum>} Sides
 * @typedef {{ route: string, share: number, canary: Sum, baseline: Sum }} Worse  `share`: of all that got worse
 */

/** A route is named if it has at least this share of what got worse. */
const LEAST_SHARE = 0.5
/** With fewer answers, chance may have chosen it. */
const LEAST_REQUESTS = 10

/** Which route the answers are of that got worse with the new workers. */
export function createWorseRoute () {
  /** @type {Map<string, Sides>} */
  const routes = new Map()

  return {
    /** @param {'canary' | 'baseline'} side @param {import('../../workers/protocol.js').RouteReport[]} reports  checked */
    add (side, reports) {
      for (const { route, errors, latency } of reports) {
        let sides = routes.get(route)
        if (!sides) routes.set(route, sides = newSides())
        addTo(sides[side], errors, latency)
      }
    },

    /** @returns {Worse | null} that with most of the errors that the old workers did not have; null: it is in no one route */
    failing: () => worst(({ errors }) => errors),

    /** @param {number} ms  what takes longer is slow @returns {Worse | null} */
    slower (ms) {
      const limit = bucketOf(ms)
      return worst(({ latency }) => slowIn(latency, limit))
    }
  }

  /** @param {(sum: Sum) => number} badOf @returns {Worse | null} */
  function worst (badOf) {
    const found = [...routes].map(([route, sides]) => ({ route, ...sides, excess: excessOf(sides, badOf) })).sort((one, other) => other.excess - one.excess)[0]
    const total = [...routes.values()].reduce((sum, sides) => sum + Math.max(0, excessOf(sides, badOf)), 0)
    if (!found || found.excess <= 0 || found.excess < LEAST_SHARE * total || found.canary.requests < LEAST_REQUESTS) return null
    const { excess, ...worse } = found
    return { ...worse, share: excess / total }
  }
}

/** How many more are bad than with the old workers' share of bad ones in this route. @param {Sides} sides @param {(sum: Sum) => number} badOf */
function excessOf ({ canary, baseline }, badOf) {
  return badOf(canary) - (baseline.requests === 0 ? 0 : badOf(baseline) * canary.requests / baseline.requests)
}

/** @param {Worse} worse @returns {{ canary: number, baseline: number | null }} p99 in ms; null: the old workers had no such request */
export function p99Of ({ canary, baseline }) {
  return { canary: quantile(canary.latency, 0.99), baseline: baseline.requests === 0 ? null : quantile(baseline.latency, 0.99) }
}

/** @param {Float64Array} latency @param {number} limit */
function slowIn (latency, limit) {
  let sum = 0
  for (let index = limit + 1; index < BUCKETS; index++) sum += latency[index]
  return sum
}

/** @param {Sum} sum @param {number} errors @param {readonly number[]} latency */
function addTo (sum, errors, latency) {
  sum.errors += errors
  for (let n = 1; n < latency.length; n += 2) sum.requests += latency[n]
  addSparse(sum.latency, latency)
}

/** @returns {Sides} */
function newSides () {
  return { canary: newSum(), baseline: newSum() }
}

/** @returns {Sum} */
function newSum () {
  return { requests: 0, errors: 0, latency: new Float64Array(BUCKETS) }
}
