import { bucketOf, BUCKETS, toSparse } from '../../workers/histogram.js'

/**
 * What a worker reports, with whatever a test cares about.
 * @param {Partial<import('../../workers/protocol.js').VitalsReport> & { latenciesMs?: number[] }} [fields] `latenciesMs`: of requests answered with 200
 * @returns {import('../../workers/protocol.js').VitalsReport & { type: 'vitals' }}
 */
export function report ({ latenciesMs = [], ...fields } = {}) {
  const counts = new Float64Array(BUCKETS)
  for (const ms of latenciesMs) counts[bucketOf(ms)]++
  return {
    type: 'vitals',
    intervalMs: 1000,
    rssBytes: 64 * 1024 * 1024,
    heapUsedBytes: 8 * 1024 * 1024,
    heapTotalBytes: 16 * 1024 * 1024,
    externalBytes: 2 * 1024 * 1024,
    cpuPercent: 50,
    eventLoopUtilization: 0.5,
    loopDelayP50Ms: 1,
    loopDelayP99Ms: 10,
    loopDelayMaxMs: 20,
    statuses: [latenciesMs.length, 0, 0, 0, 0, 0],
    latency: toSparse(counts),
    latencySumMs: latenciesMs.reduce((a, b) => a + b, 0),
    inFlight: 3,
    openConnections: 7,
    ...fields
  }
}
