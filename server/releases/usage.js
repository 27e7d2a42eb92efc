import { formatBytes, formatPercent } from '../../public/format.js'

/** @typedef {import('../lifecycle/rollout/strategy.js').Limits} Limits */
/** @typedef {{ cpuPercent: number, rssBytes: number, intervalMs: number, isCounted: boolean }} Report  of one worker for one second; `isCounted`: so are its requests */
/** @typedef {{ cpuPercent: number, rssBytes: number }} Usage of one worker */

/** It has to be over in this many stretches in a row. */
const STRETCHES = 3
/** A smaller difference is ignored. @type {Readonly<Usage>} */
const LEAST_MORE = Object.freeze({ cpuPercent: 20, rssBytes: 64 * 1024 ** 2 })
/** Workers that take less than this share of what they took in the stretch before are still warming up. */
const FALLS = 0.9
/** @type {Readonly<Record<keyof Usage, { name: string, format: (value: number) => string }>>} */
const KINDS = Object.freeze({ cpuPercent: { name: 'CPU', format: formatPercent }, rssBytes: { name: 'memory', format: formatBytes } })

/**
 * Whether new workers take more CPU or memory than old ones, where nobody counts requests: the kernel gives all workers
 * about as many connections. The first seconds of each worker do not count.
 */
export function createUsages () {
  /** How long each worker has been known. @type {Map<number, number>} */
  const known = new Map()
  let stretch = newStretch()
  /** @type {{ canary: Usage, baseline: Usage } | null} */
  let last = null
  /** What new workers took in the stretches in which they were over, by what. @type {Record<keyof Usage, number[]>} */
  const over = { cpuPercent: [], rssBytes: [] }
  let hasAny = false

  return {
    /** @param {[worker: number, report: Report][]} reports of one second @param {{ canary: Set<number>, baseline: Set<number> }} sides @param {Limits} limits */
    add (reports, sides, limits) {
      for (const [worker, { isCounted, ...report }] of reports) {
        const side = sides.canary.has(worker) ? 'canary' : sides.baseline.has(worker) ? 'baseline' : null
        if (side === null || isCounted) continue
        hasAny = true
        const ms = known.get(worker) ?? 0
        known.set(worker, ms + report.intervalMs)
        if (ms >= limits.warmupMs) stretch[side].push(report)
      }
      if (stretch.canary.length === 0) stretch = newStretch()
      else if (++stretch.seconds * 1000 >= limits.warmupMs && stretch.baseline.length > 0) closeStretch(limits)
    },

    /** Whether there is a worker whose requests nobody counts. */
    hasAny: () => hasAny,

    /** @param {Limits} limits @returns {{ passed: boolean | null, message: string }} */
    verdict ({ p99Ratio }) {
      if (!last) return { passed: null, message: 'the new workers have run for too short a time to compare their CPU and memory; nobody counts the requests of this program' }
      const { canary, baseline } = last
      const textOf = (/** @type {keyof Usage} */ kind) => `${KINDS[kind].name} ${KINDS[kind].format(canary[kind])} (old: ${KINDS[kind].format(baseline[kind])})`
      const found = kindsOf(over).find((kind) => over[kind].length >= STRETCHES)
      if (found) return { passed: false, message: `each new worker takes much more than an old one: ${textOf(found)} (option rollout.limits.p99Ratio: ${p99Ratio})` }
      return { passed: true, message: `the new workers take no more than the old ones: ${kindsOf(over).map(textOf).join(', ')}; nobody counts the requests of this program` }
    }
  }

  /** @param {Limits} limits */
  function closeStretch ({ p99Ratio }) {
    const [canary, baseline] = [meanOf(stretch.canary), meanOf(stretch.baseline)]
    last = { canary, baseline }
    for (const kind of kindsOf(over)) {
      const isOver = canary[kind] > Math.max(baseline[kind] * p99Ratio, baseline[kind] + LEAST_MORE[kind])
      const isFalling = canary[kind] < FALLS * (over[kind].at(-1) ?? 0)
      over[kind] = !isOver ? [] : isFalling ? [canary[kind]] : [...over[kind], canary[kind]]
    }
    stretch = newStretch()
  }
}

function newStretch () {
  return { canary: /** @type {Usage[]} */ ([]), baseline: /** @type {Usage[]} */ ([]), seconds: 0 }
}

/** @param {Usage[]} usages @returns {Usage} */
function meanOf (usages) {
  const mean = (/** @type {keyof Usage} */ kind) => usages.reduce((sum, each) => sum + each[kind], 0) / usages.length
  return { cpuPercent: mean('cpuPercent'), rssBytes: mean('rssBytes') }
}

/** @param {Record<keyof Usage, unknown>} of */
function kindsOf (of) {
  return /** @type {(keyof Usage)[]} */ (Object.keys(of))
}
