import { formatBytes, formatPercent } from '../../public/format.ts'
import type { Limits, Verdict } from '../api/shapes.ts'

/** of one worker for one second; `isCounted`: so are its requests */
export type Report = { cpuPercent: number, rssBytes: number, intervalMs: number, isCounted: boolean }
/** of one worker */
type Usage = { cpuPercent: number, rssBytes: number }

/** It has to be over in this many stretches in a row. */
const STRETCHES = 3
/** A smaller difference is ignored. */
const LEAST_MORE: Readonly<Usage> = Object.freeze({ cpuPercent: 20, rssBytes: 64 * 1024 ** 2 })
/** Workers that take less than this share of what they took in the stretch before are still warming up. */
const FALLS = 0.9
const KINDS = Object.freeze(
  { cpuPercent: { name: 'CPU', unit: 'percent', format: formatPercent },
    rssBytes: { name: 'memory', unit: 'bytes', format: formatBytes } } as const
)

/**
 * Whether new workers take more CPU or memory than old ones, where nobody counts requests: the kernel gives all workers
 * about as many connections. The first seconds of each worker do not count.
 */
export function createUsages () {
  /** How long each worker has been known. */
  const known: Map<number, number> = new Map()
  let stretch = newStretch()
  let last: { canary: Usage, baseline: Usage } | null = null
  /** What new workers took in the stretches in which they were over, by what. */
  const over: Record<keyof Usage, number[]> = { cpuPercent: [], rssBytes: [] }
  let hasAny = false

  return {
    /** `reports`: of one second */
    add (reports: [worker: number, report: Report][], sides: { canary: Set<number>, baseline: Set<number> },
      limits: Limits)
    {
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

    verdict ({ p99Ratio }: Limits): Pick<Verdict, 'passed' | 'message' | 'decided'> {
      if (!last)
        return { passed: null,
          message:
            'the new workers have run for too short a time to compare their CPU and memory; nobody counts the requests of this program' }
      const { canary, baseline } = last
      const textOf = (kind: keyof Usage) =>
        `${KINDS[kind].name} ${KINDS[kind].format(canary[kind])} (old: ${KINDS[kind].format(baseline[kind])})`
      const found = kindsOf(over).find((kind) => over[kind].length >= STRETCHES)
      if (found)
        return { passed: false,
          decided: { figure: KINDS[found].name, unit: KINDS[found].unit, canary: canary[found],
            baseline: baseline[found], limit: limitOf(found, baseline[found], p99Ratio), option: 'p99Ratio' },
          message: `each new worker takes much more than an old one: ${
            textOf(found)
          } (option rollout.limits.p99Ratio: ${p99Ratio})` }
      return { passed: true,
        message: `the new workers take no more than the old ones: ${
          kindsOf(over).map(textOf).join(', ')
        }; nobody counts the requests of this program` }
    }
  }

  function closeStretch ({ p99Ratio }: Limits) {
    const [canary, baseline] = [meanOf(stretch.canary), meanOf(stretch.baseline)]
    last = { canary, baseline }
    for (const kind of kindsOf(over)) {
      const isOver = canary[kind] > limitOf(kind, baseline[kind], p99Ratio)
      const isFalling = canary[kind] < FALLS * (over[kind].at(-1) ?? 0)
      over[kind] = !isOver ? [] : isFalling ? [canary[kind]] : [...over[kind], canary[kind]]
    }
    stretch = newStretch()
  }
}

function limitOf (kind: keyof Usage, baseline: number, p99Ratio: number) {
  return Math.max(baseline * p99Ratio, baseline + LEAST_MORE[kind])
}

function newStretch () {
  return { canary: [] as Usage[], baseline: [] as Usage[], seconds: 0 }
}

function meanOf (usages: Usage[]): Usage {
  const mean = (kind: keyof Usage) => usages.reduce((sum, each) => sum + each[kind], 0) / usages.length
  return { cpuPercent: mean('cpuPercent'), rssBytes: mean('rssBytes') }
}

function kindsOf (of: Record<keyof Usage, unknown>) {
  return Object.keys(of) as (keyof Usage)[]
}
