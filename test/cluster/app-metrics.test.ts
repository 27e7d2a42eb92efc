import assert from 'node:assert/strict'
import { test } from 'node:test'
import autocannon from 'autocannon'
import { above } from '../support/event-log.ts'
import { startDeck, type TestOwner } from '../support/deck.ts'
import { COUNTED_BY_AUTOCANNON } from '../support/load.ts'
import { startCollector } from '../support/otlp-receiver.ts'
import { present } from '../support/present.ts'
import { parsePrometheus } from '../support/prometheus.ts'
import { rareTest } from '../support/rare.ts'

const COUNTED = 'orders_total{kind="a\\\\b\\"c",service="shop"}'

test('what the app counts by prom-client is summed exactly over its workers, a deploy, a crash and a kill', async (t) => {
  const collector = await startCollector(t)
  const deck = await startCounting(t, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: 'shop' },
    flags: ['--telemetry-worker-output', 'on'] })
  await deck.count(500)
  assert.equal((await deck.rollout('restart')).state, 'succeeded')
  await deck.count(500)
  await deck.endOne(() => fetch(`${deck.url}/die`).catch(() => {}))
  await deck.count(100)
  await deck.kill()
  await deck.count(100)

  const samples = await deck.samples()
  assert.equal(samples.get('order_seconds_bucket{service="shop",le="1"}'), deck.sent())
  assert.equal(samples.get('order_seconds_sum{service="shop"}'), deck.sent() / 2)
  assert.equal(samples.get('order_bytes_sum{service="shop"}'), deck.sent() * 100)
  assert.equal(samples.get('open_orders{service="shop"}'), 4, 'a gauge: 2 of each worker that lives')
  const clusterMetrics = parsePrometheus(await (await fetch(`${deck.url}/cluster`)).text())
  assert.equal(clusterMetrics.get(COUNTED), deck.sent(), 'AggregatorRegistry of prom-client says the same')
  assert.ok(![...clusterMetrics.keys()].some((name) => name.startsWith('clusterdeck_')))

  await deck.stop()
  assert.deepEqual(collector.faults, [], 'a collector of OpenTelemetry has got the same')
  const orders = collector.metrics().find(({ name }) => name === 'orders_total')
  assert.equal(orders?.sum.dataPoints[0].asDouble, deck.sent())
  const logs = collector.logs()
  for (const name of ['worker.ready', 'rollout.succeeded', 'worker.exited', 'master.stopped'])
    assert.ok(logs.some(({ eventName }) => eventName === `clusterdeck.${name}`), name)
  assert.ok(logs.some(({ eventName, body }) => eventName === undefined && body.stringValue.includes('Error: as told')),
    'what a worker has written')
})

rareTest(
  'registries of AggregatorRegistry.setRegistries are told in place of the default one, and none where the option is off',
  async (t) => {
    const deck = await startCounting(t, { args: ['own-registry'] })
    await deck.count(10)
    const samples = await deck.samples()
    assert.deepEqual([samples.get(COUNTED), samples.get('own_total{}')], [undefined, 10])

    const silent = await startCounting(t, { flags: ['--telemetry-app-metrics', 'off'] })
    await fetch(silent.url)
    assert.equal((await silent.samples()).get(COUNTED), undefined)
  }
)

async function startCounting (t: TestOwner, options?: Parameters<typeof startDeck>[2]) {
  const deck = await startDeck(t, 'counts-by-prom-client.js', { ...options,
    flags: [...COUNTED_BY_AUTOCANNON, ...options?.flags ?? []] })
  await deck.until({ ready: 2 })
  const url = await deck.appUrl()
  let sent = 0

  return Object.assign(deck, {
    url,
    sent: () => sent,

    /** `amount`: of requests, each of which is answered */
    async count (amount: number) {
      sent += amount
      const { '2xx': answered, errors } = await autocannon({ url, connections: 8, amount })
      assert.deepEqual([answered, errors], [amount, 0])
    },

    async samples () {
      return parsePrometheus(
        await (await fetch(`${deck.adminUrl}/metrics`, { headers: { authorization: `Bearer ${deck.token}` } })).text()
      )
    },

    /** SIGKILLs a worker whose figures have just been read: what it counts after that is lost. */
    async kill () {
      assert.equal((await this.samples()).get(COUNTED), sent)
      const [{ pid }] = (await deck.status()).workers
      await this.endOne(() => process.kill(present(pid), 'SIGKILL'))
    },

    async endOne (end: () => unknown) {
      const { lastEventId } = await deck.status()
      await end()
      await deck.untilEvent('worker.ready', { id: above(lastEventId) })
    }
  })
}
