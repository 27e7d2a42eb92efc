import { addSparse, BUCKETS, bucketOf, quantile } from '../../workers/histogram.ts'
import { slowIn } from './latencies.ts'
import type { RouteReport } from '../../workers/protocol.ts'

type Sum = { requests: number, errors: number, latency: Float64Array }
type Sides = Record<'canary' | 'baseline', Sum>
/** `share`: of all that got worse */
export type Worse = { route: string, share: number, canary: Sum, baseline: Sum }

/** A route is named if it has at least this share of what got worse. */
const LEAST_SHARE = 0.5
/** With fewer answers, chance may have chosen it. */
const LEAST_REQUESTS = 10

/** Which route the answers are of that got worse with the new workers. */
export function createWorseRoute () {
  const routes: Map<string, Sides> = new Map()

  return {
    /** `reports`: checked */
    add (side: 'canary' | 'baseline', reports: RouteReport[]) {
      for (const { route, errors, latency } of reports) {
        let sides = routes.get(route)
        if (!sides) routes.set(route, sides = { canary: newSum(), baseline: newSum() })
        addTo(sides[side], errors, latency)
      }
    },

    /** @returns that with most of the errors that the old workers did not have; null: it is in no one route */
    failing: (): Worse | null => worst(({ errors }) => errors),

    /** `ms`: what takes longer is slow */
    slower (ms: number): Worse | null {
      const limit = bucketOf(ms)
      return worst(({ latency }) => slowIn(latency, limit))
    }
  }

  function worst (badOf: (sum: Sum) => number): Worse | null {
    const found =
      [...routes].map(([route, sides]) => ({ route, ...sides, excess: excessOf(sides, badOf) })).sort((one, other) =>
        other.excess - one.excess
      )[0]
    const total = [...routes.values()].reduce((sum, sides) => sum + Math.max(0, excessOf(sides, badOf)), 0)
    if (!found || found.excess <= 0 || found.excess < LEAST_SHARE * total || found.canary.requests < LEAST_REQUESTS)
      return null
    const { excess, ...worse } = found
    return { ...worse, share: excess / total }
  }
}

/** How many more are bad than with the old workers' share of bad ones in this route. */
function excessOf ({ canary, baseline }: Sides, badOf: (sum: Sum) => number) {
  return badOf(canary) - (baseline.requests === 0 ? 0 : badOf(baseline) * canary.requests / baseline.requests)
}

/** @returns p99 in ms; null: the old workers had no such request */
export function p99Of ({ canary, baseline }: Worse): { canary: number, baseline: number | null } {
  return { canary: quantile(canary.latency, 0.99),
    baseline: baseline.requests === 0 ? null : quantile(baseline.latency, 0.99) }
}

function addTo (sum: Sum, errors: number, latency: readonly number[]) {
  sum.errors += errors
  for (let n = 1; n < latency.length; n += 2) sum.requests += latency[n]
  addSparse(sum.latency, latency)
}

function newSum (): Sum {
  return { requests: 0, errors: 0, latency: new Float64Array(BUCKETS) }
}
