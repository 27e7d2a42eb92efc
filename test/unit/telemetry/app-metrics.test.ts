import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createAppMetrics, type AppMetrics } from '../../../server/telemetry/app-metrics.ts'
import { joinMetrics, type Metric } from '../../../server/telemetry/metric.ts'
import { createKeptMetrics } from '../../../server/telemetry/summed-metrics.ts'
import { toPrometheusText } from '../../../server/telemetry/prometheus-text.ts'
import { parsePrometheus } from '../../support/prometheus.ts'

const ALIVE = Object.freeze({ isAlive: true })
const LAST_WORDS_MS = 2000

test('counters, histograms and summaries are the sums over all workers, also of those that have ended', async () => {
  const { appMetrics, tick } = startMetrics()
  appMetrics.accept(1, told(counter('orders_total', 3), histogram(2), summary()), ALIVE)
  appMetrics.accept(2, told(counter('orders_total', 4), histogram(1), summary()), ALIVE)
  const before = await samplesOf(appMetrics)
  assert.equal(before.get('orders_total{kind="a"}'), 7)
  assert.equal(before.get('seconds_bucket{le="1"}'), 3)
  assert.equal(before.get('seconds_bucket{le="+Inf"}'), 6)
  assert.deepEqual([before.get('bytes_sum{}'), before.get('bytes_count{}')], [20, 4])

  appMetrics.left(1)
  appMetrics.accept(1, told(counter('orders_total', 5)), { isAlive: false })
  tick(LAST_WORDS_MS)
  appMetrics.accept(3, told(counter('orders_total', 1)), ALIVE)
  const after = await samplesOf(appMetrics)
  assert.equal(after.get('orders_total{kind="a"}'), 5 + 4 + 1, 'with what it has said at its end')
  assert.equal(after.get('seconds_bucket{le="+Inf"}'), 6)
})

test('no counter ever falls, and each is exact, whatever workers do', async () => {
  const step = fc.record({ worker: fc.integer({ min: 1, max: 4 }),
    does: fc.constantFrom('count', 'count', 'reset', 'remove', 'die', 'wait'), by: fc.integer({ min: 0, max: 5 }) })
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const { appMetrics, tick } = startMetrics()
    const workers: Map<number, { id: number, value: number }> = new Map()
    let lastId = 0
    let counted = 0
    let shown = 0
    for (const { worker, does, by } of steps) {
      const one = workers.get(worker) ?? { id: ++lastId, value: 0 }
      workers.set(worker, one)
      if (does === 'wait') tick(LAST_WORDS_MS)
      else if (does === 'die') {
        workers.delete(worker)
        appMetrics.left(one.id)
      } else if (does === 'count') {
        counted += by
        one.value += by
        appMetrics.accept(one.id, told(counter('orders_total', one.value)), ALIVE)
      } else {
        one.value = 0
        appMetrics.accept(one.id,
          does === 'reset' ? told(counter('orders_total', 0)) : { ...told(), gone: ['orders_total'] }, ALIVE)
      }
      const now = (await samplesOf(appMetrics)).get('orders_total{kind="a"}') ?? 0
      assert.equal(now, counted)
      assert.ok(now >= shown)
      shown = now
    }
  }), { numRuns: 40 })
})

test('gauges are of living workers, and become one as their aggregator says', async () => {
  const { appMetrics } = startMetrics()
  const gauges = (value: number) =>
    told(
      ...['sum', 'first', 'min', 'max', 'average', 'omit', 'constructor'].map((aggregator) => ({
        name: `of_${aggregator}`,
        help: '',
        type: 'gauge',
        aggregator,
        rows: [[{}, value]]
      }))
    )
  for (const [worker, value] of [[1, 100], [2, 2], [3, 6]]) appMetrics.accept(worker, gauges(value), ALIVE)
  appMetrics.left(1)
  const samples = await samplesOf(appMetrics)
  assert.deepEqual(
    ['sum', 'first', 'min', 'max', 'average', 'omit', 'constructor'].map((name) => samples.get(`of_${name}{}`)),
    [8, 6, 2, 6, 4, undefined, 8]
  )
})

test('histograms whose releases have other bounds are added up as far as that is certain', async () => {
  const { appMetrics } = startMetrics()
  appMetrics.accept(1,
    told({ name: 's', help: '', type: 'histogram', aggregator: 'sum', rows: [[{}, 9, 6, [[0.1, 2], [1, 5]]]] }), ALIVE)
  appMetrics.accept(2,
    told({ name: 's', help: '', type: 'histogram', aggregator: 'sum', rows: [[{}, 1, 3, [[0.5, 1], [1, 3]]]] }), ALIVE)
  const samples = await samplesOf(appMetrics)
  assert.deepEqual(['0.1', '0.5', '1', '+Inf'].map((le) => samples.get(`s_bucket{le="${le}"}`)), [2, 3, 8, 9])
})

test('a worker that does not answer counts as it was, and is waited for no longer than a moment', async () => {
  const { appMetrics, asked } = startMetrics({ patienceMs: 20, answers: false })
  appMetrics.accept(1, told(counter('orders_total', 3)), ALIVE)
  const [one, two] = await Promise.all([samplesOf(appMetrics), samplesOf(appMetrics)])
  assert.equal(one.get('orders_total{kind="a"}'), 3)
  assert.deepEqual(two, one)
  assert.deepEqual(asked, [1], 'asked once for both')
})

test('what an app tells is bounded, and never in the place of ours', async () => {
  const { appMetrics, tick } = startMetrics()
  const many = (label: string) => ({ name: `many_${label}`, help: '', type: 'counter', aggregator: 'sum',
    rows: Array.from({ length: 6000 }, (_, n) => [{ [label]: n }, 1]) })
  appMetrics.accept(1, told(many('a'), many('b'), counter('clusterdeck_workers_ready', 9)), ALIVE)
  const { metrics, leftOut } = await appMetrics.read()
  assert.deepEqual([metrics.map(({ name }) => name), leftOut], [['many_a'], 6000])
  for (let worker = 2; worker < 30; worker++) {
    appMetrics.accept(worker,
      told({ name: 'by_pid', help: '', type: 'counter', aggregator: 'sum',
        rows: Array.from({ length: 1000 }, (_, n) => [{ pid: `${worker}-${n}` }, 1]) }), ALIVE)
    appMetrics.left(worker)
    tick(LAST_WORDS_MS)
  }
  appMetrics.left(1)
  tick(LAST_WORDS_MS)
  assert.equal((await appMetrics.read()).metrics.reduce((sum, { series }) => sum + series.length, 0), 10_000)
})

test('the bound is one of lines, as Prometheus reads them: each bucket of a histogram is one', async () => {
  const { appMetrics, tick } = startMetrics()
  const seconds = (name: string, sets: number) => ({ name, help: '', type: 'histogram', aggregator: 'sum',
    rows: Array.from({ length: sets },
      (_, n) => [{ route: `/${n}` }, 1, 1, Array.from({ length: 9 }, (_, le) => [le, 1])]) })
  appMetrics.accept(1, told(seconds('fits', 800), seconds('too_many', 900)), ALIVE)
  const lines = async () =>
    toPrometheusText((await appMetrics.read()).metrics).split('\n').filter((line) => /^(fits|too_many)/.test(line))
      .length
  assert.deepEqual([await lines(), (await appMetrics.read()).leftOut], [800 * 12, 900 * 12])
  appMetrics.left(1)
  tick(LAST_WORDS_MS)
  assert.equal(await lines(), 833 * 12, 'of those that have ended as many as fit')
})

test('of workers that have ended no more names are kept than series, so that names with a pid do not pile up', () => {
  const kept = createKeptMetrics(2)
  for (let pid = 1; pid < 10; pid++)
    kept.add({ name: `pid_${pid}`, help: '', type: 'counter', aggregator: 'sum',
      series: new Map([['[]', { labels: {}, value: 1 }]]) })
  assert.deepEqual(kept.names(), ['pid_1', 'pid_2'])
})

test('nonsense and hostile names are left out, and what is told can be read by Prometheus', async () => {
  const { appMetrics } = startMetrics()
  const hostile = [null, 7, {}, { name: 'a b', type: 'counter', rows: [] }, { name: 'x\n# TYPE y gauge', type: 'gauge',
    rows: [[{}, 1]] }, { name: 'ok', help: 'a\\b\n"c"', type: 'nothing',
    rows: [[{ 'a-b': 1, le: 2, good: 'q"\\\n' }, 1], [{}, null], 'x'] }]
  for (const metrics of [undefined, 'x', hostile])
    appMetrics.accept(1, { metrics, gone: 7, leftOut: 'x' } as object as Told, ALIVE)
  assert.deepEqual(await samplesOf(appMetrics), new Map([['ok{good="q\\"\\\\\\n"}', 1]]))
})

test('apps of a host keep their own labels beside the name of the app', () => {
  const metric: Metric = { name: 'm', help: '', type: 'counter', series: [{ labels: { app: 'x' }, value: 1 }] }
  const joined = joinMetrics([{ labels: { app: 'shop' }, metrics: [metric] }, { labels: { app: 'mail' },
    metrics: [{ ...metric, type: 'gauge' }] }])
  assert.equal(toPrometheusText(joined), '# HELP m \n# TYPE m counter\nm{app="shop",exported_app="x"} 1\n')
  const [{ series: [{ labels }] }] = joinMetrics([{ labels: { app: 'shop' },
    metrics: [{ ...metric, series: [{ labels: { constructor: 'x' }, value: 1 }] }] }])
  assert.deepEqual(Object.keys(labels), ['app', 'constructor'])
})

function startMetrics ({ patienceMs, answers = true }: { patienceMs?: number, answers?: boolean } = {}) {
  let now = 0
  /** workers, in order */
  const asked: number[] = []
  const appMetrics = createAppMetrics({ patienceMs, now: () => now, tell (worker, message) {
    asked.push(worker)
    if (answers && message.type === 'read-app-metrics') appMetrics.accept(worker, { ...told(), id: message.id }, ALIVE)
  } })
  return { appMetrics, asked, tick (ms: number) {
    now += ms
  } }
}

type Told = Parameters<AppMetrics['accept']>[1]

async function samplesOf (appMetrics: AppMetrics) {
  const text = toPrometheusText((await appMetrics.read()).metrics)
  return text === '' ? new Map() : parsePrometheus(text)
}

function told (...metrics: unknown[]) {
  return { type: 'app-metrics', id: null, metrics, gone: [], leftOut: 0 } as object as Told
}

function counter (name: string, value: number) {
  return { name, help: 'h', type: 'counter', aggregator: 'sum', rows: [[{ kind: 'a' }, value]] }
}

function histogram (below1: number) {
  return { name: 'seconds', help: 'h', type: 'histogram', aggregator: 'sum',
    rows: [[{}, 1.5, 3, [[1, below1], [2, 3]]]] }
}

function summary () {
  return { name: 'bytes', help: 'h', type: 'summary', aggregator: 'sum', rows: [[{}, 10, 2, []]] }
}
