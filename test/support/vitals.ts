import { setTimeout as sleep } from 'node:timers/promises'
import { bucketOf, BUCKETS, toSparse } from '../../workers/histogram.ts'
import type { VitalsReport } from '../../workers/protocol.ts'
import type { DeckClient } from './deck-client.ts'

/** What a worker reports, with whatever a test cares about. `latenciesMs`: of requests answered with 200. */
export function report (
  { latenciesMs = [], ...fields }: Partial<VitalsReport> & { latenciesMs?: number[] } = {}
): VitalsReport & { type: 'vitals' } {
  const counts = new Float64Array(BUCKETS)
  for (const ms of latenciesMs) counts[bucketOf(ms)]++
  return { type: 'vitals', intervalMs: 1000, rssBytes: 64 * 1024 * 1024, heapUsedBytes: 8 * 1024 * 1024,
    heapTotalBytes: 16 * 1024 * 1024, externalBytes: 2 * 1024 * 1024, cpuPercent: 50, eventLoopUtilization: 0.5,
    loopDelayP50Ms: 1, loopDelayP99Ms: 10, loopDelayMaxMs: 20, statuses: [latenciesMs.length, 0, 0, 0, 0, 0],
    latency: toSparse(counts), latencySumMs: latenciesMs.reduce((a, b) => a + b, 0), inFlight: 3, openConnections: 7,
    ...fields }
}

/** Waits until every worker has told of what is over by now. */
export async function untilReported (deck: DeckClient) {
  const second = Math.floor(Date.now() / 1000)
  for (;;) {
    const answer = await deck.api('/vitals?step=1s')
    if (Number(answer.body.time.at(-1)) >= second) return answer
    await sleep(100)
  }
}

/** `name`: with its labels */
export async function metric ({ adminUrl, token }: DeckClient, name: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  return Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.slice(name.length))
}
