import { BUCKETS, quantile } from '../../workers/histogram.ts'
import { formatLatency, formatPercent } from '../../public/format.ts'
import { durationText } from '../lifecycle/duration.ts'
import { countOf } from '../vitals/answers.ts'
import { indexOf } from '../vitals/columns.ts'
import { readReport } from '../vitals/report.ts'
import { createFailures } from './failures.ts'
import { createLatencies, type Slower } from './latencies.ts'
import { createUsages } from './usage.ts'
import { createWorseRoute, p99Of, type Worse } from './worse-route.ts'
import type { Figures, Verdict } from '../lifecycle/state.ts'
import type { Limits } from '../api/shapes.ts'
import type { RouteReport } from '../../workers/protocol.ts'

type Report = import('./latencies.ts').Report & import('./usage.ts').Report & { failed: number, routes: RouteReport[] }
const LOOP_UTILIZATION = indexOf('eventLoopUtilization')
const CPU_PERCENT = indexOf('cpuPercent')
const RSS_BYTES = indexOf('rssBytes')
/** Reports are kept this long for the next comparison; while a rollout is held there is none. */
const MAX_SECONDS = 120
/** A quantile is shown only if this many answers were slower. */
const LEAST_SLOWER = 5
const WARMING_UP =
  'new workers answered with 5xx at first, but no longer; with ready.path a worker gets no connection before it can answer'

/** Compares new workers (canary) with old ones (baseline) that serve at the same time. `parts`: wall clock, ms. */
export function createJudge ({ now = Date.now }: { now?: () => number } = {}) {
  /** Reports of each second since the last comparison. */
  const seconds: Map<number, [worker: number, report: Report][]> = new Map()
  let beganAt = now()
  /** All old workers, also those that have gone since: their answers still count. */
  const before: Set<number> = new Set()
  let sums = { canary: newSum(), baseline: newSum() }
  let failures = createFailures()
  let latencies = createLatencies()
  let usages = createUsages()
  let worseRoute = createWorseRoute()

  return {
    /** Begins a comparison; earlier reports do not count. */
    begin () {
      seconds.clear()
      beganAt = now()
      before.clear()
      sums = { canary: newSum(), baseline: newSum() }
      failures = createFailures()
      latencies = createLatencies()
      usages = createUsages()
      worseRoute = createWorseRoute()
    },

    /** `body`: its report, untrusted @throws {TypeError} where it cannot be read */
    accept (worker: number, body: unknown) {
      const { statuses, latency, intervalMs, row, routes } = readReport(body)
      const second = Math.floor(now() / 1000)
      let reports = seconds.get(second)
      if (!reports) seconds.set(second, reports = [])
      const usage = { isCounted: statuses !== null, cpuPercent: row[CPU_PERCENT], rssBytes: row[RSS_BYTES] }
      reports.push([worker, { ...usage, ...countOf(statuses), latency, routes, intervalMs,
        busyMs: row[LOOP_UTILIZATION] * intervalMs }])
      if (seconds.size > MAX_SECONDS) seconds.delete(seconds.keys().next().value ?? 0)
    },

    /** `order`: ids of workers */
    judge (
      { canary, baseline, isFinal, limits }: { canary: number[], baseline: number[], isFinal: boolean, limits: Limits }
    ): Verdict & { warning?: string } {
      for (const id of baseline) before.add(id)
      const sides = { canary: new Set(canary), baseline: before }
      for (const reports of seconds.values()) {
        failures.add(addUp(sums.canary, sides.canary, reports), addUp(sums.baseline, sides.baseline, reports), limits)
        latencies.add(reports, sides, limits)
        usages.add(reports, sides, limits)
        addRoutes(worseRoute, reports, sides)
      }
      seconds.clear()
      const figures = { canary: figuresOf(canary.length, sums.canary, latencies.warm.canary),
        baseline: figuresOf(before.size, sums.baseline, latencies.warm.baseline) }
      const verdict = usages.hasAny() && figures.canary.requests === 0
        ? usages.verdict(limits)
        : verdictOn({ ...figures, ms: now() - beganAt, failures: failures.look(limits), latencies, worseRoute }, limits)
      return { at: new Date(now()).toISOString(), isFinal, ...verdict, ...figures }
    }
  }
}

function newSum () {
  return { requests: 0, failed: 0 }
}

/** Adds the reports of one second to a sum. @returns of this second */
function addUp (sum: { requests: number, failed: number }, workers: Set<number>,
  reports: [worker: number, report: Report][]): { requests: number, failed: number }
{
  const second = newSum()
  for (const [worker, { requests, failed }] of reports) {
    if (!workers.has(worker)) continue
    second.requests += requests
    second.failed += failed
  }
  sum.requests += second.requests
  sum.failed += second.failed
  return second
}

function figuresOf (workers: number, { requests, failed }: { requests: number, failed: number },
  warm: Float64Array): Figures
{
  return { workers, requests, errorRate: requests === 0 ? null : failed / requests, p50Ms: roundMs(quantile(warm, 0.5)),
    p99Ms: roundMs(quantile(warm, 0.99)) }
}

function roundMs (ms: number) {
  return Number.isNaN(ms) ? null : round(ms)
}

function round (ms: number) {
  return Math.round(ms * 100) / 100
}

/** `ms`: since the comparison began. Null: there are too few requests to be sure. */
function verdictOn (
  { canary, baseline, ms, failures, latencies, worseRoute }: { canary: Figures, baseline: Figures, ms: number,
    failures: ReturnType<ReturnType<typeof createFailures>['look']>, latencies: ReturnType<typeof createLatencies>,
    worseRoute: ReturnType<typeof createWorseRoute> },
  limits: Limits
): Pick<Verdict, 'passed' | 'message' | 'decided'> & { warning?: string } {
  const { errorRate, p99Ratio, minRequests } = limits
  if (canary.requests < minRequests) {
    const message = `too few requests to judge the new workers: ${canary.requests} in ${
      durationText(ms)
    }, expected at least ${minRequests} (option rollout.limits.minRequests)`
    return { passed: null, message }
  }
  const failing = formatPercent((canary.errorRate ?? 0) * 100)
  const failedBefore = formatPercent((baseline.errorRate ?? 0) * 100)
  if (failures === 'some') {
    const message = `${failing} of the new workers' responses are 5xx, old workers: ${failedBefore}${
      failingText(worseRoute.failing())
    } (option rollout.limits.errorRate: ${errorRate})`
    const before = baseline.errorRate ?? 0
    return { passed: false, message,
      decided: { figure: '5xx', unit: 'share', canary: canary.errorRate ?? 0, baseline: before,
        limit: before + errorRate, option: 'errorRate' } }
  }
  const slower = latencies.slower()
  if (slower) {
    const where = slowerText(
      worseRoute.slower(Math.max(slower.baselineMs * p99Ratio, slower.baselineMs + limits.slowerMs))
    )
    return { passed: false,
      message: `${slowText(slower)}${where} (option rollout.limits.${slower.option}: ${limits[slower.option]})`,
      decided: { figure: nameOf(slower.quantile), unit: 'ms', canary: round(slower.canaryMs),
        baseline: round(slower.baselineMs), limit: round(slower.limitMs), option: slower.option } }
  }
  if (failures === 'unsure') {
    const message =
      `too few responses of new and old workers in the same seconds to be sure: ${failing} of ${canary.requests} are 5xx, old workers: ${failedBefore}`
    return { passed: null, message }
  }
  const suspect = latencies.suspect()
  if (suspect) return { passed: null, message: `too short a time to be sure: ${slowText(suspect)}` }
  const errors = `${failing} of ${canary.requests} responses are 5xx (old: ${failedBefore})`
  return { passed: true, message: praise(errors, latencies, limits), ...failures === 'over' && { warning: WARMING_UP } }
}

function slowText ({ quantile: at, canaryMs, baselineMs }: Slower) {
  const [now, before] = [canaryMs, baselineMs].map((ms) => formatLatency(roundMs(ms)))
  return `the new workers' ${nameOf(at)} latency after warm-up is ${now}, old workers: ${before}`
}

function addRoutes (worseRoute: ReturnType<typeof createWorseRoute>, reports: [worker: number, report: Report][],
  { canary, baseline }: { canary: Set<number>, baseline: Set<number> })
{
  for (const [worker, { routes }] of reports) {
    if (canary.has(worker)) worseRoute.add('canary', routes)
    else if (baseline.has(worker)) worseRoute.add('baseline', routes)
  }
}

function failingText (worse: Worse | null) {
  if (worse === null) return ''
  const [now, before] = [worse.canary, worse.baseline].map(({ requests, errors }) =>
    requests === 0 ? null : formatPercent(errors / requests * 100)
  )
  return `; mostly ${worse.route}: ${now} are 5xx, ${
    before === null ? 'new in this release' : `old workers: ${before}`
  }`
}

function slowerText (worse: Worse | null) {
  if (worse === null) return ''
  const { canary, baseline } = p99Of(worse)
  return `; mostly ${worse.route}: p99 ${formatLatency(roundMs(canary))}, ${
    baseline === null ? 'new in this release' : `old workers: ${formatLatency(roundMs(baseline))}`
  }`
}

function praise (errors: string, { warm, stretches }: ReturnType<typeof createLatencies>, { minRequests }: Limits) {
  const noMore = `the new workers fail no more often than the old ones: ${errors}; latency is not compared`
  const counts = { new: countIn(warm.canary), old: countIn(warm.baseline) }
  for (const [side, count] of Object.entries(counts)) {
    if (count < minRequests)
      return `${noMore}: ${count} answers of the ${side} workers after warm-up, expected at least ${minRequests}`
  }
  if (stretches() === 0) return `${noMore}: the new workers were warm for too short a time, or got many more requests`
  const at = Math.max(0.5, Math.min(0.99, 1 - LEAST_SLOWER / Math.min(counts.new, counts.old)))
  return `the new workers do as well as the old ones: ${errors}, ${nameOf(at)} after warm-up ${
    formatLatency(roundMs(quantile(warm.canary, at)))
  } (old: ${formatLatency(roundMs(quantile(warm.baseline, at)))})`
}

function countIn (latency: Float64Array) {
  let sum = 0
  for (let index = 0; index < BUCKETS; index++) sum += latency[index]
  return sum
}

function nameOf (quantile: number) {
  return `p${Math.floor(quantile * 100 + 1e-9)}`
}
