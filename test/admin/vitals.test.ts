import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatLatency } from '../../public/format.ts'
import { START_MS, startAdmin, type Admin } from '../support/admin.ts'
import { present } from '../support/present.ts'
import { parsePrometheus } from '../support/prometheus.ts'
import { report } from '../support/vitals.ts'
import type { Series } from '../../server/vitals/api.ts'

const HOUR_MS = 3_600_000

/** Lets workers 1 and 2 report for so many seconds. */
function live ({ deck, clock }: Admin, seconds: number) {
  for (let n = 0; n < seconds; n++) {
    deck.vitals.accept(1, 1, report({ latenciesMs: [5] }))
    deck.vitals.accept(2, 2, report({ latenciesMs: [5, 500], statuses: [1, 0, 0, 1, 0, 0] }))
    deck.vitals.turn(clock.now() / 1000)
    clock.advance(1000)
  }
}

test('serves the vitals as columns, of the cluster and of each slot', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 3)
  const { body } = await admin.api('get', '/api/v1/vitals').expect(200)
  const { cluster, slots, ...rest } = body
  const startS = START_MS / 1000
  assert.deepEqual(rest, { step: '1s', stepMs: 1000, since: new Date(START_MS + 3000 - HOUR_MS / 4).toISOString(),
    until: new Date(START_MS + 3000).toISOString(), time: [startS, startS + 1, startS + 2], next: null })
  assert.deepEqual([cluster.requests, cluster.requests5xx, cluster.latencyP50Ms], [[3, 3, 3], [1, 1, 1], [4.873, 4.873,
    4.873]])
  assert.deepEqual(slots.map(({ slot, columns }) => [slot, columns.requests, columns.rssBytes]),
    [1, 2].map((slot) => [slot, Array(3).fill(slot), Array(3).fill(64 * 1024 * 1024)]))
})

test('the overview tells the last second that the charts end with, and nothing once it is old', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 3)
  const { body: { cluster } } = await admin.api('get', '/api/v1/vitals').expect(200)
  const shown = async () => {
    const { text } = await admin.visit('/')
    return Object.fromEntries(Array.from(text.matchAll(/data-figure="([a-zA-Z\d]+)">([^<]+)/g), ([, ...each]) => each))
  }
  assert.deepEqual(await shown(), { requestsPerSecond: `${cluster.requestsPerSecond.at(-1)}/s`,
    latencyP99Ms: formatLatency(cluster.latencyP99Ms.at(-1)), cpuPercent: '100%', rssBytes: '128 MB' })
  admin.clock.advance(6000)
  assert.deepEqual(new Set(Object.values(await shown())), new Set(['–']))
})

test('leaves out the slots that nobody has asked for', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 130)
  for (const step of ['1s', '10s']) {
    for (const [slots, expected] of [['all', [1, 2]], ['none', []], ['2', [2]], ['9', []]] as const) {
      const { body } = await admin.api('get', `/api/v1/vitals?since=2m&step=${step}&slots=${slots}`).expect(200)
      assert.deepEqual(body.slots.map(({ slot }) => slot), expected, `${slots} by ${step}`)
      assert.ok(body.cluster.requests.length > 0)
    }
  }
  assert.match((await admin.api('get', '/api/v1/vitals?slots=0').expect(400)).body.detail,
    /expected all, none or the number of a slot/)
})

test('leaves out the columns that nobody has asked for', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 1)
  const { body } = await admin.api('get', '/api/v1/vitals?columns=cpuPercent,requests,cpuPercent').expect(200)
  assert.deepEqual([body.cluster, body.slots[1].columns], [{ cpuPercent: [100], requests: [3] }, { cpuPercent: [50],
    requests: [2] }])
  assert.match((await admin.api('get', '/api/v1/vitals?columns=rssByte').expect(400)).body.detail,
    /did you mean "rssBytes"/)
})

test('joins the steps into points of a chart, with the lowest and the highest value of each, and leaves those of the newest point as they are', async (t) => {
  const admin = await startAdmin(t)
  const startS = START_MS / 1000
  for (let n = 0; n < 25; n++) {
    admin.deck.vitals.accept(1, 1, report({ latenciesMs: [5], rssBytes: (n + 1) * 1_024_000 }))
    admin.deck.vitals.turn(startS + n)
    admin.clock.advance(1000)
  }
  const { body } = await admin.api('get', '/api/v1/vitals?columns=rssBytes,requests&pointMs=10000').expect(200)
  const { cluster, slots: [{ slot, ...ofSlot }], ...points } = present(body.points)
  assert.deepEqual(points, { pointMs: 10_000, time: [startS, startS + 10] })
  assert.deepEqual(cluster, { mean: { rssBytes: [5_632_000, 15_870_000], requests: [1, 1] },
    low: { rssBytes: [1_024_000, 11_260_000], requests: [1, 1] },
    high: { rssBytes: [10_240_000, 20_480_000], requests: [1, 1] } })
  assert.deepEqual([slot, ofSlot], [1, cluster])
  assert.deepEqual([body.time, body.cluster.rssBytes], [[20, 21, 22, 23, 24].map((n) => startS + n),
    [21, 22, 23, 24, 25].map((n) => n * 1_024_000)])
  assert.deepEqual(
    (await admin.api('get',
      `/api/v1/vitals?columns=requests&slots=9&pointMs=10000&until=${new Date(START_MS).toISOString()}`).expect(200))
      .body.points?.time,
    []
  )
  assert.match((await admin.api('get', '/api/v1/vitals?pointMs=10').expect(400)).body.detail,
    /pointMs.*an integer from 1000 to 86400000/)
})

test('chooses the step by the range and says which it is, and takes any that is asked for', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 130)
  for (const [query, step, count] of [['', '1s', 130], ['since=15m', '1s', 130], ['since=16m', '10s', 12], ['since=4h',
    '10s', 12], ['since=5h', '1m', 2], ['since=30d', '1m', 2], ['since=23h&until=22h', '10s', 0], [
    'since=25h&until=24h',
    '1m',
    0
  ], ['since=5h&until=5h', '', 0], ['step=10s', '10s', 12], ['since=30d&step=1s', '1s', 130], ['since=20s&step=10s',
    '10s', 1]] as [string, string, number][])
  {
    const { body } = await admin.api('get', `/api/v1/vitals?${query}`).expect(step === '' ? 400 : 200 as number)
    if (step !== '') assert.deepEqual([body.step, body.time.length], [step, count], query)
  }
})

test('says where to go on when a range is too much for one answer', async (t) => {
  const admin = await startAdmin(t)
  for (let slot = 1; slot <= 60; slot++) admin.deck.vitals.accept(slot, slot, report())
  for (let n = 0; n < 100; n++) admin.deck.vitals.turn(START_MS / 1000 + n)
  admin.clock.advance(100_000)
  const times = []
  let since: string | null = '15m'
  do {
    const { body }: { body: Series } = await admin.api('get', `/api/v1/vitals?since=${since}`).expect(200)
    times.push(...body.time)
    since = body.next
  } while (since !== null)
  assert.deepEqual(times, Array.from({ length: 100 }, (_, n) => START_MS / 1000 + n))
})

test('says that the history is unavailable where only the database knows, and serves seconds all the same', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 2)
  admin.history.close()
  assert.equal((await admin.api('get', '/api/v1/vitals?step=10s').expect(503)).body.code, 'history-unavailable')
  assert.equal((await admin.api('get', '/api/v1/vitals').expect(200)).body.time.length, 2)
  await admin.api('get', '/metrics').expect(200)
})

test('tells Prometheus all of it: every line parses, and every sample is of a type', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 10)
  admin.deck.events.publish({ type: 'worker.exited', cause: 'crash', slot: 1 })
  for (const detail of [{ endedRequests: 2, endedConnections: 3 }, { endedRequests: 0, endedConnections: 1 }])
    admin.deck.events.publish({ type: 'worker.exited', cause: 'deploy', slot: 1, detail })
  admin.deck.events.publish({ type: 'worker.restarted', slot: 1 })
  const { text, headers } = await admin.api('get', '/metrics').set('Accept',
    'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4').expect(200)
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  const samples = parsePrometheus(text)
  for (const [sample, value] of Object.entries({ 'clusterdeck_worker_resident_memory_bytes{slot="1"}': 64 * 1024 * 1024,
    'clusterdeck_worker_up{slot="2"}': 1, 'clusterdeck_worker_eventloop_delay_p99_seconds{slot="1"}': 0.01,
    'clusterdeck_worker_cpu_seconds_total{slot="1"}': 5,
    'clusterdeck_http_requests_total{slot="2",code_class="5xx"}': 10,
    'clusterdeck_http_request_duration_seconds_bucket{le="0.005"}': 20,
    'clusterdeck_http_request_duration_seconds_bucket{le="0.25"}': 20,
    'clusterdeck_http_request_duration_seconds_bucket{le="0.5"}': 30,
    'clusterdeck_http_request_duration_seconds_bucket{le="+Inf"}': 30,
    'clusterdeck_http_request_duration_seconds_count{}': 30, 'clusterdeck_http_request_duration_seconds_sum{}': 5.1,
    'clusterdeck_worker_exits_total{cause="crash"}': 1, 'clusterdeck_worker_exits_total{cause="hung"}': 0,
    'clusterdeck_ended_requests_total{}': 2, 'clusterdeck_ended_connections_total{}': 4,
    'clusterdeck_worker_restarts_total{slot="1"}': 1, 'clusterdeck_worker_restarts_total{slot="2"}': 0,
    'clusterdeck_workers_ready{}': 2, 'clusterdeck_info{version="0.1.0",node_version="v26.99.0"}': 1 }))
    assert.equal(samples.get(sample), value, sample)
  assert.ok(Number(samples.get('clusterdeck_master_resident_memory_bytes{}')) > 0)
  const bounds = [...samples].filter(([name]) => name.startsWith('clusterdeck_http_request_duration_seconds_bucket'))
    .map(([, count]) => count)
  assert.deepEqual(bounds, bounds.toSorted((a, b) => a - b), 'cumulative')
})

test('has no more samples after many workers than after the first of each slot', async (t) => {
  const admin = await startAdmin(t)
  live(admin, 1)
  const names = async () =>
    [...parsePrometheus((await admin.api('get', '/metrics')).text).keys()].filter((name) =>
      name.startsWith('clusterdeck_')
    )
  const before = await names()
  for (let worker = 3; worker < 200; worker++) {
    admin.deck.vitals.accept(worker, 1, report())
    admin.deck.vitals.left(worker)
    admin.deck.events.publish({ type: 'worker.exited', slot: 1, worker, cause: `cause-${worker}` })
  }
  assert.deepEqual(await names(), before)
})
