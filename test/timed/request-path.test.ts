import assert from 'node:assert/strict'
import { test } from 'node:test'
import autocannon from 'autocannon'
import { startDeck } from '../support/deck.ts'
import { cpuMs } from '../support/process-figures.ts'
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
    const used = () => ({ atMs: performance.now(), master: cpuMs([deck.masterPid]), workers: cpuMs(pids) })

    // What it does at its start is no matter of requests either.
    for (let last = used(), isResting = false; !isResting; last = used()) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      isResting = used().master - last.master < 10
    }

    const shares = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = used()
      const { requests, errors, non2xx } = await autocannon({ url, connections: 32, amount: REQUESTS })
      const after = used()
      assert.deepEqual([requests.total, errors, non2xx], [REQUESTS, 0, 0])
      assert.ok(after.workers - before.workers > 100, 'the workers have worked for a while')

      // What it does each second anyway is no matter of requests: on a busy machine they take many seconds.
      const tookMs = after.atMs - before.atMs
      await new Promise((resolve) => setTimeout(resolve, Math.min(tookMs, 2000)))
      const rested = used()
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
