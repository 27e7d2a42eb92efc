import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import autocannon from 'autocannon'
import { startDeck } from '../support/deck.js'

const REQUESTS = 50_000

test(`the master stays off the request path: while the app answers ${REQUESTS} requests it uses less than 2 % of the workers' CPU time`, { skip: process.platform !== 'linux' && 'reads /proc' }, async (t) => {
  const deck = await startDeck(t, 'answers-with-pid.js')
  const { workers } = await deck.until({ ready: 2 })
  const pids = workers.map((/** @type {any} */ { pid }) => pid)
  const url = await deck.appUrl()
  const cpu = async () => ({ master: await cpuTicks(deck.masterPid), workers: (await Promise.all(pids.map(cpuTicks))).reduce((a, b) => a + b) })

  const before = await cpu()
  const startedAt = performance.now()
  const { requests, errors, non2xx } = await autocannon({ url, connections: 32, amount: REQUESTS })
  const after = await cpu()
  // What it does each second anyway is no matter of requests: on a busy machine they take many seconds.
  const tookMs = performance.now() - startedAt
  const idleMs = Math.min(tookMs, 2000)
  await new Promise((resolve) => setTimeout(resolve, idleMs))
  const anyway = ((await cpu()).master - after.master) * tookMs / idleMs

  assert.deepEqual([requests.total, errors, non2xx], [REQUESTS, 0, 0])
  const share = (after.master - before.master - anyway) / (after.workers - before.workers)
  t.diagnostic(`the master used ${(share * 100).toFixed(2)} % of the workers' CPU time`)
  assert.ok(after.workers - before.workers > 20, 'the workers have worked for a while')
  assert.ok(share < 0.02, `${share}`)
})

/** @returns {Promise<number>} user and system time in clock ticks (proc(5), fields 14 and 15) */
async function cpuTicks (/** @type {number | undefined} */ pid) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
