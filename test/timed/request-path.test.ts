import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import autocannon from 'autocannon'
import { startDeck } from '../support/deck.ts'
import { COUNTED_BY_AUTOCANNON } from '../support/load.ts'

const ROUNDS = 5
const REQUESTS = 10_000

test(
  `the master stays off the request path: while the app answers ${REQUESTS} requests it uses less than 2 % of the workers' CPU time`,
  { skip: process.platform !== 'linux' && 'reads /proc' },
  async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js', { flags: [...COUNTED_BY_AUTOCANNON] })
    const { workers } = await deck.until({ ready: 2 })
    const pids = workers.map(({ pid }) => pid)
    const url = await deck.appUrl()
    const used = async () => ({ atMs: performance.now(), master: await cpuMs(deck.masterPid),
      workers: (await Promise.all(pids.map(cpuMs))).reduce((a, b) => a + b) })

    // What it does at its start is no matter of requests either.
    for (let last = await used(), isResting = false; !isResting; last = await used()) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      isResting = (await used()).master - last.master < 10
    }

    const shares = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = await used()
      const { requests, errors, non2xx } = await autocannon({ url, connections: 32, amount: REQUESTS })
      const after = await used()
      assert.deepEqual([requests.total, errors, non2xx], [REQUESTS, 0, 0])
      assert.ok(after.workers - before.workers > 100, 'the workers have worked for a while')

      // What it does each second anyway is no matter of requests: on a busy machine they take many seconds.
      const tookMs = after.atMs - before.atMs
      await new Promise((resolve) => setTimeout(resolve, Math.min(tookMs, 2000)))
      const rested = await used()
      const anyway = (rested.master - after.master) * tookMs / (rested.atMs - after.atMs)
      shares.push((after.master - before.master - anyway) / (after.workers - before.workers))
    }

    // Its garbage is collected once, some seconds after the start: in one of the rounds, with load or at rest.
    const share = shares.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)]
    t.diagnostic(
      `the master used ${shares.map((each) => (each * 100).toFixed(2)).join(', ')} % of the workers' CPU time`
    )
    assert.ok(share < 0.02, `${share}`)
  }
)

/**
 * @returns what the threads of a process have used, told in nanoseconds (Documentation/scheduler/sched-stats.rst of
 * Linux); /proc/<pid>/stat counts in 10 ms
 */
async function cpuMs (pid: number | undefined): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`)
  const stats = await Promise.all(threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')))
  return stats.reduce((sum, stat) => sum + Number(stat.split(' ')[0]), 0) / 1e6
}
