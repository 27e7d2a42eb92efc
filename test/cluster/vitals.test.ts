import assert from 'node:assert/strict'
import { test } from 'node:test'
import autocannon from 'autocannon'
import { type Deck, startReady } from '../support/deck.ts'
import { COUNTED_BY_AUTOCANNON } from '../support/load.ts'
import { present } from '../support/present.ts'
import { metric, untilReported } from '../support/vitals.ts'

test('every request is counted once, whichever worker answers it and however that ends', async (t) => {
  const deck = await startReady(t, 'answers-with-pid.js', { flags: [...COUNTED_BY_AUTOCANNON] })
  const url = await deck.appUrl()
  await autocannon({ url, connections: 8, amount: 2000 })
  assert.equal((await deck.rollout('restart')).state, 'succeeded')
  assert.equal(await requestsTold(deck), 2000)

  await autocannon({ url, connections: 8, amount: 1000 })
  await untilReported(deck)
  const [{ pid, id }] = (await deck.status()).workers
  process.kill(present(pid), 'SIGKILL')
  await deck.untilEvent('worker.exited', { worker: id })
  assert.equal(await requestsTold(deck), 3000)
  assert.equal(await metric(deck, 'clusterdeck_worker_exits_total{cause="killed"}'), 1)
  assert.equal(await metric(deck, 'clusterdeck_worker_exits_total{cause="restart"}'), 2)
})

async function requestsTold (deck: Deck) {
  return (await metric(deck, 'clusterdeck_http_requests_total{slot="1",code_class="2xx"}')) +
    (await metric(deck, 'clusterdeck_http_requests_total{slot="2",code_class="2xx"}'))
}
