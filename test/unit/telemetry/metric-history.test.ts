import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetricHistory } from '../../../server/telemetry/metric-history.ts'
import type { Metric, MetricType, Series } from '../../../server/telemetry/metric.ts'

const STEP_MS = 15_000
const one = (type: MetricType, ...series: Series[]): Metric => ({ name: type, help: '', type, series })
const number = (value: number, labels = {}): Series => ({ labels, value })

test('a counter is how fast it grows, a histogram how long it took, a gauge what it says', async () => {
  const { history, step } = start()
  await step('r1', one('counter', number(10)), one('gauge', number(5)), one('histogram', measured(0, 0, 0)))
  await step('r1', one('counter', number(40)), one('gauge', number(-2)), one('histogram', measured(99, 1, 0)))
  await step('r2', one('counter', number(4)), one('gauge', number(7)), one('histogram', measured(99, 1, 20)))
  const { releases, metrics } = history.list()
  assert.deepEqual(releases, ['r1', 'r1', 'r2'])
  assert.deepEqual(Object.fromEntries(metrics.map(({ name, series: [{ lines }] }) => [name, lines])), {
    counter: [{ label: 'rate', values: [null, 2, null] }],
    gauge: [{ label: '', values: [5, -2, 7] }],
    histogram: [{ label: 'rate', values: [null, 100 / 15, 20 / 15] }, { label: 'mean', values: [null, 0.1, 0.1] }, {
      label: 'p99',
      values: [null, 0.1, null]
    }]
  })
})

test('each series has a value for each time: what comes late or goes is unknown, and what is long gone is forgotten', async () => {
  const { history, step } = start()
  await step('r1', one('gauge', number(1, { a: 'x' })))
  await step('r1', one('gauge', number(2, { a: 'y' })))
  assert.deepEqual(history.list().metrics[0].series.map(({ labels, lines: [{ values }] }) => [labels.a, values]), [['x',
    [1, null]], ['y', [null, 2]]])
  for (let n = 0; n < 240; n++) await step('r1', one('gauge', number(n, { a: 'y' })))
  const [{ series }] = history.list().metrics
  assert.deepEqual([series.map(({ labels }) => labels.a), series[0].lines[0].values.length,
    history.list().times.length], [['y'], 240, 240])
})

test('labels without end take no more memory than some hundred series, and an app without metrics is not asked', async () => {
  const { history, step } = start()
  await step('r1', one('gauge', ...Array.from({ length: 1000 }, (_, n) => number(n, { id: String(n) }))))
  assert.equal(history.list().metrics[0].series.length, 300)
  const quiet = createMetricHistory({ release: () => null, appMetrics: { isEmpty: () => true, read () {
    throw new Error('asked')
  } } })
  await quiet.look()
  quiet.stop()
})

/** `fast`, `slow`: how many took up to 0.1 s and 1 s; `slower`: more, each of which counts 0.1 s all the same */
function measured (fast: number, slow: number, slower: number): Series {
  const count = fast + slow + slower
  return { labels: {}, sum: count * 0.1, count, buckets: [[0.1, fast], [1, fast + slow]] }
}

function start () {
  let [at, release, metrics] = [0, null as string | null, [] as Metric[]]
  const history = createMetricHistory({ now: () => at, release: () => release,
    appMetrics: { isEmpty: () => false, read: async () => ({ metrics, leftOut: 0 }) } })
  history.stop()
  return { history, async step (runs: string, ...told: Metric[]) {
    ;[at, release, metrics] = [at + STEP_MS, runs, told]
    await history.look()
  } }
}
