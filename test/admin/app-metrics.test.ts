import assert from 'node:assert/strict'
import { test } from 'node:test'
import { START_MS, startAdmin } from '../support/admin.ts'

test('what the app counts itself is drawn by name, type and release, and is no page where it counts nothing', async (t) => {
  const admin = await startAdmin(t)
  assert.doesNotMatch((await admin.visit('/')).text, /href="\/app-metrics"/)
  assert.match((await admin.visit('/app-metrics')).text, /No metrics of the app yet/)

  Object.assign(admin.deck.metricsOfApp, { times: [START_MS - 30_000, START_MS - 15_000, START_MS],
    releases: ['r1', 'r1', 'r2'],
    metrics: [{ name: 'process_cpu_seconds_total', help: '', type: 'counter',
      series: [{ labels: {}, lines: [{ label: 'rate', values: [null, 0.1, 0.2] }] }] }, { name: 'orders_total',
      help: '', type: 'counter', series: [{ labels: {}, lines: [{ label: 'rate', values: [null, 2.5, 0.08] }] }] }, {
      name: 'orders_seconds',
      help: 'how long <b>orders</b> take',
      type: 'histogram',
      series: [{ labels: { kind: '<i>' }, lines: [{ label: 'p99', values: [null, 0.25, 0.5] }] }]
    }] })
  assert.match((await admin.visit('/')).text, /href="\/app-metrics"/)
  const all = (await admin.visit('/app-metrics')).text
  assert.match(all,
    /orders_seconds[^]*how long &lt;b&gt;orders[^]*p99, kind &lt;i&gt;[^]*500 ms[^]*<strong>4\.8\/min<[^]*<\/span>2\.5\/s<[^]*process_cpu_seconds_total[^]*<strong>0\.2\/s</)
  assert.match(all,
    /class="spark-ends"><time[^>]*datetime="2025-12-31T23:59:00[^]*>now<[^]*>last<[^]*>max<[^]*class="spark-deploy"/)
  const old = (await admin.visit('/app-metrics?q=orders&type=histogram&release=r1')).text
  assert.match(old, /<strong>250 ms<\/strong>/)
  assert.doesNotMatch(old, /process_cpu/)
  assert.match((await admin.visit('/app-metrics?type=x')).text, /type: expected/)
})
