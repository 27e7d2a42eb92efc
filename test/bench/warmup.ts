// What the first clients of a new worker wait after a deploy: without a probe, with one, and with a warm-up.
import http from 'node:http'
import { createOwner } from '../support/owner.ts'
import { supervised } from '../support/supervised.ts'
import { median, printTable } from './figures.ts'
import type { TestContext } from 'node:test'

const DEPLOYS = 5
const REQUESTS = 60

const WAYS = Object.freeze({ 'without a probe': {}, 'with a probe': { readyPath: '/health' },
  'and 1 warm-up request': { readyPath: '/health', readyWarmup: ['/'] },
  'and 60 warm-up requests': { readyPath: '/health', readyWarmup: ['/'], readyWarmupRounds: 60 } })

console.log(
  `after each of ${DEPLOYS} deploys, one client: ms until its answer (the app fills a cache for 200 ms at first)\n`
)
const rows = [['', 'first', 'second', 'median of 3…60', 'boot until ready']]
for (const [way, flags] of Object.entries(WAYS)) rows.push([way, ...await measure(flags)])
printTable(rows)

async function measure (flags: Record<string, unknown>) {
  const owner = createOwner()
  const { deck, release, url, until, last } = await supervised(owner as unknown as TestContext, 'cold-at-first.js', {
    flags
  })
  await until('worker.ready')
  const runs: number[][] = []
  for (let deploy = 1; deploy <= DEPLOYS; deploy++) {
    deck.dispatch({ type: 'rollout', kind: 'deploy', release, actor: 'bench' })
    await until('rollout.succeeded', deploy)
    const bootMs = last('worker.ready').uptimeMs
    const agent = new http.Agent({ keepAlive: true })
    const latencies = []
    for (let asked = 0; asked < REQUESTS; asked++) latencies.push(await time(url(), agent))
    agent.destroy()
    runs.push([latencies[0], latencies[1], median(latencies.slice(2)), bootMs])
  }
  await owner.end()
  return [0, 1, 2, 3].map((index) => median(runs.map((run) => run[index])).toFixed(1))
}

/** @returns ms */
function time (url: string, agent: http.Agent): Promise<number> {
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    http.get(url, { agent }, (response) => response.resume().on('end', () => resolve(performance.now() - startedAt)))
      .on('error', reject)
  })
}
