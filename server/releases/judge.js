import { addSparse, BUCKETS, quantile } from '../../workers/histogram.js'
import { ABORTED, STATUS_CLASSES } from '../../workers/protocol.js'
import { formatLatency, formatPercent } from '../../public/format.js'
import { readReport } from '../vitals/report.js'

/** @typedef {import('../lifecycle/state.js').Figures} Figures */
/** @typedef {import('../lifecycle/state.js').Verdict} Verdict */
/** @typedef {{ statuses: Float64Array, latency: Float64Array }} Count */

const FAILED = STATUS_CLASSES.indexOf('5xx')
/** A p99 of 3 ms instead of 1 ms is no reason to stop anything. */
const LEAST_DIFFERENCE_MS = 10
/** How many requests have to be slower than the latency that is compared. */
const LEAST_SLOWER = 5

/**
 * Judges new workers by old ones that serve at the same time.
 * @param {{ now?: () => number }} [parts] wall clock, ms
 */
export function createJudge ({ now = Date.now } = {}) {
  /** @type {Map<number, Count>} by worker, since the last `begin` */
  const counts = new Map()
  /** Old workers, also those that have gone since: what they answered stays the measure. @type {Set<number>} */
  const before = new Set()

  return {
    /** A comparison begins: what was before does not count. */
    begin () {
      counts.clear()
      before.clear()
    },

    /** @param {number} worker @param {unknown} body its report, untrusted @throws {TypeError} where it cannot be read */
    accept (worker, body) {
      const { statuses, latency } = readReport(body)
      const count = counts.get(worker) ?? { statuses: new Float64Array(STATUS_CLASSES.length), latency: new Float64Array(BUCKETS) }
      counts.set(worker, count)
      for (let index = 0; index < STATUS_CLASSES.length; index++) count.statuses[index] += statuses[index]
      addSparse(count.latency, latency)
    },

    /**
     * @param {{ fresh: number[], old: number[], isFinal: boolean, limits: import('../lifecycle/rollout/strategy.js').Limits }} order ids of workers
     * @returns {Verdict}
     */
    judge ({ fresh, old, isFinal, limits }) {
      for (const id of old) before.add(id)
      const sides = { fresh: sum(fresh), old: sum([...before]) }
      const figures = { fresh: figuresOf(sides.fresh), old: figuresOf(sides.old) }
      return { at: new Date(now()).toISOString(), isFinal, ...verdictOn({ ...figures, slowest: compareSlowest(sides) }, limits), ...figures }
    }
  }

  /** @param {number[]} workers */
  function sum (workers) {
    const statuses = new Float64Array(STATUS_CLASSES.length)
    const latency = new Float64Array(BUCKETS)
    for (const worker of workers) {
      const count = counts.get(worker)
      count?.statuses.forEach((value, index) => { statuses[index] += value })
      count?.latency.forEach((value, index) => { latency[index] += value })
    }
    const requests = statuses.reduce((all, value, index) => index === ABORTED ? all : all + value, 0)
    return { workers: workers.length, requests, failed: statuses[FAILED], latency }
  }
}

/** @typedef {{ workers: number, requests: number, failed: number, latency: Float64Array }} Side */

/** @param {Side} side @returns {Figures} */
function figuresOf ({ workers, requests, failed, latency }) {
  return { workers, requests, errorRate: requests === 0 ? null : failed / requests, p99Ms: msAt(latency, 0.99) }
}

/**
 * The p99 of few requests is their slowest one, which says nothing: at least so many have to be slower than what is compared.
 * @param {{ fresh: Side, old: Side }} sides
 * @returns {Slowest}
 */
function compareSlowest ({ fresh, old }) {
  const at = Math.max(0.5, Math.min(0.99, 1 - LEAST_SLOWER / Math.max(1, Math.min(fresh.requests, old.requests))))
  return { quantile: at, freshMs: msAt(fresh.latency, at), oldMs: msAt(old.latency, at) }
}

/** @param {Float64Array} latency @param {number} at 0…1 */
function msAt (latency, at) {
  const ms = quantile(latency, at)
  return Number.isNaN(ms) ? null : Math.round(ms * 100) / 100
}

/**
 * @typedef {{ quantile: number, freshMs: number | null, oldMs: number | null }} Slowest  latencies of both sides at one quantile
 * @param {{ fresh: Figures, old: Figures, slowest: Slowest }} figures
 * @param {import('../lifecycle/rollout/strategy.js').Limits} limits
 * @returns {{ passed: boolean | null, message: string }} null: there is too little to say
 */
export function verdictOn ({ fresh, old, slowest }, { errorRate, p99Ratio, minRequests }) {
  if (fresh.requests < minRequests) {
    return { passed: null, message: `too few requests to judge the new workers: ${fresh.requests}, expected at least ${minRequests} (option rollout.limits.minRequests)` }
  }
  const failing = fresh.errorRate ?? 0
  const failedBefore = old.errorRate ?? 0
  if (failing - failedBefore > errorRate) {
    return { passed: false, message: `${formatPercent(failing * 100)} of the new workers' responses are 5xx, old workers: ${formatPercent(failedBefore * 100)} (option rollout.limits.errorRate: ${errorRate})` }
  }
  const { freshMs, oldMs } = slowest
  const name = `p${Math.floor(slowest.quantile * 100)}`
  const latencies = old.requests >= minRequests && freshMs !== null && oldMs !== null ? { now: freshMs, before: oldMs } : null
  if (latencies && latencies.now > latencies.before * p99Ratio && latencies.now - latencies.before >= LEAST_DIFFERENCE_MS) {
    return { passed: false, message: `the new workers' ${name} latency is ${formatLatency(freshMs)}, old workers: ${formatLatency(oldMs)} (option rollout.limits.p99Ratio: ${p99Ratio})` }
  }
  const beside = latencies ? `, ${name} ${formatLatency(freshMs)} (old: ${formatLatency(oldMs)})` : ''
  return { passed: true, message: `the new workers do as well as the old ones: ${formatPercent(failing * 100)} of ${fresh.requests} responses are 5xx (old: ${formatPercent(failedBefore * 100)})${beside}` }
}
