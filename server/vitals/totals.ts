import { CAUSES } from '../causes.ts'
import { addSparse, BOUNDS_MS, BUCKETS } from '../../workers/histogram.ts'
import { STATUS_CLASSES } from '../../workers/protocol.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Report } from './report.ts'

/**
 * The bounds of cumulative counts: those of Prometheus' own clients, and some lower ones. All are bounds of the
 * histogram too, so the counts are exact.
 */
const SHOWN_BOUNDS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000,
  30_000, 60_000]
const SHOWN_BUCKETS = SHOWN_BOUNDS_MS.map((ms) => BOUNDS_MS.indexOf(ms))

/** Ends of any other cause are counted here, so that the number of labels is limited. */
const OTHER_CAUSE = 'other'
const ROLLOUT_ENDS = ['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back']

/** Counts since this master began. They are kept by slot, not by worker, so that they never fall. */
export function createTotals () {
  /** `statuses`: null while nobody counts its requests. */
  const bySlot: Map<number, { statuses: Float64Array | null, cpuSeconds: number }> = new Map()
  const latency = new Float64Array(BUCKETS)
  let latencySumMs = 0
  const exits: Map<string, number> = new Map([...CAUSES, OTHER_CAUSE].map((cause) => [cause, 0]))
  let endedRequests = 0
  let endedConnections = 0
  let stalledRequests = 0
  const restarts: Map<number, number> = new Map()
  const rollouts: Map<string, number> = new Map(ROLLOUT_ENDS.map((end) => [end, 0]))

  return {
    count ({ type, cause, slot, detail }: DeckEvent) {
      if (type === 'worker.exited') {
        countUp(exits, exits.has(String(cause)) ? String(cause) : OTHER_CAUSE)
        endedRequests += detail?.endedRequests ?? 0
        endedConnections += detail?.endedConnections ?? 0
        stalledRequests += detail?.stalledRequests ?? 0
      } else if (type === 'worker.restarted' && slot !== null) countUp(restarts, slot)
      else if (rollouts.has(type)) countUp(rollouts, type)
    },

    add (slot: number, report: Report) {
      let totals = bySlot.get(slot)
      if (!totals) bySlot.set(slot, totals = { statuses: null, cpuSeconds: 0 })
      if (report.statuses)
        totals.statuses = addUp(totals.statuses ?? new Float64Array(STATUS_CLASSES.length), report.statuses)
      totals.cpuSeconds += report.cpuSeconds
      addSparse(latency, report.latency)
      latencySumMs += report.latencySumMs
    },

    /**
     * @returns `requests`: by slot and class; `duration`: cumulative, `le` in seconds, `count` of all; null: nobody
     * counts requests
     */
    read () {
      const slots = [...bySlot].sort(([a], [b]) => a - b)
      return {
        requests: slots.flatMap(([slot, { statuses }]) =>
          statuses ? STATUS_CLASSES.map((name, index) => ({ slot, class: name, value: statuses[index] })) : []
        ),
        cpuSeconds: slots.map(([slot, { cpuSeconds }]) => ({ slot, value: cpuSeconds })),
        exits: [...exits].map(([cause, value]) => ({ cause, value })),
        endedRequests,
        endedConnections,
        stalledRequests,
        restarts: [...restarts].sort(([a], [b]) => a - b).map(([slot, value]) => ({ slot, value })),
        rollouts: [...rollouts].map(([type, value]) => ({ result: type.slice('rollout.'.length), value })),
        duration: slots.length > 0 && slots.every(([, { statuses }]) => statuses === null)
          ? null
          : { ...cumulativeCounts(latency), sumSeconds: latencySumMs / 1000 }
      }
    }
  }
}

function addUp (sums: Float64Array, counts: readonly number[]) {
  counts.forEach((count, index) => {
    sums[index] += count
  })
  return sums
}

function countUp<K> (counts: Map<K, number>, key: K) {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function cumulativeCounts (counts: Float64Array) {
  const buckets = []
  let count = 0
  let shown = 0
  for (let index = 0; index < BUCKETS; index++) {
    count += counts[index]
    if (index === SHOWN_BUCKETS[shown]) buckets.push({ le: SHOWN_BOUNDS_MS[shown++] / 1000, count })
  }
  return { buckets, count }
}
