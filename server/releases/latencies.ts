import { addSparse, BUCKETS, bucketOf, quantile } from '../../workers/histogram.ts'
import type { Limits } from '../api/shapes.ts'

/** The report of one worker for one second; `latency`: a sparse histogram. */
export type Report = { requests: number, latency: readonly number[], intervalMs: number, busyMs: number }
/** latencies of both sides at one quantile; `limitMs`: what those of the canary exceed, by which option */
export type Slower = { quantile: number, canaryMs: number, baselineMs: number, limitMs: number,
  option: 'p99Ratio' | 'slowerMs' }

/** The shares of slowest answers that are compared, each where a stretch has enough of them. */
const SHARES = Object.freeze([0.5, 0.25, 0.1, 0.05, 0.02, 0.01])
const LEAST_SLOW = 7
/**
 * As many times more answers may be slow: what people ask for is never the same on both sides, and a few more of those
 * that take long are no fault of the release.
 */
const MIX = 3
/** The first answers of a worker are this many times rollout.limits.minRequests. */
const COLD = 2
/** It has to be slower in this many stretches in a row: a worker that warms up gets faster, and a stall passes. */
const STRETCHES = 3
/** Sides are not compared if the new workers get this many times more requests each, as any would be slower then. */
const BUSY = 0.6
const MORE_WHEN_BUSY = 1.1
const MORE_WHEN_IDLE = 3

/**
 * Whether new workers answer more slowly than old ones do, once they are warm. The first answers and the first seconds
 * of each worker do not count, of old ones as of new ones; what follows is compared in stretches of time.
 */
export function createLatencies () {
  /** What each worker has answered, and for how long. */
  const workers: Map<number, { answers: number, ms: number }> = new Map()
  const warm = { canary: new Float64Array(BUCKETS), baseline: new Float64Array(BUCKETS) }
  let stretch = newStretch()
  let stretches = 0
  let slowInRow = 0
  let slower: Slower | null = null

  return {
    /** `reports`: of one second */
    add (reports: [worker: number, report: Report][], sides: { canary: Set<number>, baseline: Set<number> },
      limits: Limits)
    {
      for (const [worker, report] of reports) {
        const side = sides.canary.has(worker) ? 'canary' : sides.baseline.has(worker) ? 'baseline' : null
        if (side === null || !warmUp(worker, report, limits)) continue
        addSparse(warm[side], report.latency)
        stretch[side].add(worker, report, workers.get(worker)?.ms ?? 0)
      }
      // Only what both have answered in the same time is compared.
      if (!stretch.canary.hasAny()) stretch = newStretch()
      else if (++stretch.seconds * 1000 >= limits.warmupMs &&
        Math.min(stretch.canary.requests(), stretch.baseline.requests()) >= limits.minRequests) closeStretch(limits)
    },

    /** Null: they are not slower, or not for long enough to say so */
    slower: (): Slower | null => slowInRow >= STRETCHES ? slower : null,

    /** They were slower in the last stretch, which may be too few. */
    suspect: (): Slower | null => slower,

    /** Latencies of all warm answers. */
    warm,

    /** @returns how often both sides were compared */
    stretches: (): number => stretches
  }

  /** Tells whether it was warm when the report began */
  function warmUp (worker: number, { requests, intervalMs }: Report, { minRequests, warmupMs }: Limits): boolean {
    let known = workers.get(worker)
    if (!known) workers.set(worker, known = { answers: 0, ms: 0 })
    const isWarm = known.answers >= COLD * minRequests && known.ms >= warmupMs
    known.answers += requests
    if (known.answers > 0) known.ms += intervalMs
    return isWarm
  }

  function closeStretch (limits: Limits) {
    const isFair =
      stretch.canary.rate() <= stretch.baseline.rate() * (stretch.canary.isBusy() ? MORE_WHEN_BUSY : MORE_WHEN_IDLE)
    if (isFair) stretches++
    slower = isFair ? compareSides(stretch, limits) : null
    slowInRow = slower ? slowInRow + 1 : 0
    stretch = newStretch()
  }
}

function newStretch () {
  return { canary: new Side(), baseline: new Side(), seconds: 0 }
}

/** Answers of the workers of one side. */
class Side {
  /** `servedMs`: since its first answer. */
  workers: Map<number, { requests: number, latency: Float64Array, servedMs: number }> = new Map()
  #requests = 0
  #ms = 0
  #busyMs = 0

  add (worker: number, { requests, latency, intervalMs, busyMs }: Report, servedMs: number) {
    let known = this.workers.get(worker)
    if (!known) this.workers.set(worker, known = { requests: 0, latency: new Float64Array(BUCKETS), servedMs })
    known.requests += requests
    addSparse(known.latency, latency)
    this.#requests += requests
    this.#ms += intervalMs
    this.#busyMs += busyMs
  }

  hasAny () {
    return this.workers.size > 0
  }

  requests () {
    return this.#requests
  }

  /** Requests per worker and ms. */
  rate () {
    return this.#requests / this.#ms
  }

  isBusy () {
    return this.#busyMs / this.#ms > BUSY
  }

  latency () {
    const all = new Float64Array(BUCKETS)
    for (const { latency } of this.workers.values())
      for (let index = 0; index < BUCKETS; index++) all[index] += latency[index]
    return all
  }
}

function compareSides ({ canary, baseline }: { canary: Side, baseline: Side }, { p99Ratio, slowerMs }: Limits):
  | Slower
  | null
{
  const before = baseline.latency()
  for (const share of SHARES) {
    if (Math.min(canary.requests(), baseline.requests()) * share < LEAST_SLOW) return null
    const usualMs = quantile(before, 1 - share / MIX)
    const limitMs = Math.max(usualMs * p99Ratio, usualMs + slowerMs)
    if (isOver(canary, bucketOf(limitMs), share))
      return { quantile: 1 - share, canaryMs: quantile(canary.latency(), 1 - share),
        baselineMs: quantile(before, 1 - share), limitMs,
        option: limitMs === usualMs * p99Ratio ? 'p99Ratio' : 'slowerMs' }
  }
  return null
}

/**
 * Whether so many of all answers are slow, and as many without the worker that has most of them, which may have the one
 * client that asks for more; and as many of those workers that have served longest, as a rollout always has some that
 * are still getting warm. `limit`: a bucket.
 */
function isOver (canary: Side, limit: number, share: number) {
  const counts = [...canary.workers.values()].map(({ requests, latency, servedMs }) => ({ requests, servedMs,
    slow: slowIn(latency, limit) })
  )
  if (!hasShare(counts, share)) return false
  const worst = counts.reduce((most, each) => each.slow > most.slow ? each : most)
  const longest = [...counts].sort((one, other) => other.servedMs - one.servedMs).slice(0, Math.ceil(counts.length / 2))
  return hasShare(longest, share) &&
    (counts.length === 1 || hasShare(counts.filter((each) => each !== worst), share, LEAST_SLOW))
}

/** `least`: of requests */
function hasShare (counts: { requests: number, slow: number }[], share: number, least: number = 0) {
  const [requests, slow] = counts.reduce(([all, some], each) => [all + each.requests, some + each.slow], [0, 0])
  return requests >= least && slow >= share * requests
}

/** `limit`: a bucket. Returns how many answers took longer. */
export function slowIn (latency: Float64Array, limit: number): number {
  let sum = 0
  for (let index = limit + 1; index < BUCKETS; index++) sum += latency[index]
  return sum
}
