import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import fc from '../../support/fast-check.ts'
import { openHistory } from '../../../db/history.ts'
import { decodeStep, encodeStep } from '../../../server/vitals/codec.ts'
import { COLUMNS } from '../../../server/vitals/columns.ts'
import { createSeries } from '../../../server/vitals/series.ts'
import { createVitals } from '../../../server/vitals/vitals.ts'
import { report } from '../../support/vitals.ts'
import { fake } from '../../support/fake.ts'

const START_S = Date.parse('2026-01-01T00:00:00Z') / 1000
const MIB = 1024 * 1024

/** Vitals over a real database in memory, whose seconds pass when the test says so. */
function setUp (t: TestContext) {
  let second = START_S
  const now = () => second * 1000
  const history = openHistory({ file: ':memory:', now })
  t.after(() => history.close())
  const failures = [] as unknown[]
  const store = { ...history.vitals }
  const vitals = createVitals({ store: { read: (query) => store.read(query), write: (steps) => store.write(steps) },
    onFailure: (error) => failures.push(error), now })
  return {
    vitals,
    store,
    history,
    failures,
    now,
    /** Lets a second pass in which these workers report. `reports`: by worker. */
    pass (reports: Record<number, ReturnType<typeof report> & { slot?: number }> = {}) {
      for (const [worker, { slot = Number(worker), ...body }] of Object.entries(reports))
        vitals.accept(Number(worker), slot, body)
      vitals.turn(second++)
    },
    series: (stepMs: number) => vitals.series({ sinceMs: START_S * 1000, stepMs })
  }
}

const pick = (columns: Record<string, (number | null)[]>, ...names: string[]) => names.map((name) => columns[name])

test('reports of memory that grows for hours are told once for a release, and again where it is deployed again', () => {
  let second = START_S
  const told: unknown[] = []
  const vitals = createVitals({ onGrowing: (growing) => told.push([growing.release, growing.workers]),
    now: () => second * 1000 })
  for (const [worker, release] of [[1, 'r1'], [2, 'r1'], [3, 'r2'], [4, 'r1']] as const) {
    for (const born = second; second < born + 4 * 3600; second += 60) {
      vitals.accept(worker, 1, report({ rssBytes: 64 * MIB + (second - born) * 20_000, latenciesMs: [1] }), release)
      vitals.left(worker - 1)
    }
  }
  assert.deepEqual(told, [['r1', [1]], ['r2', [3]], ['r1', [4]]])
})

test('a worker that hangs is seen from outside: its CPU and memory, no latency, and its last minute ends so', () => {
  let second = START_S
  let cpuMs = 5000
  const vitals = createVitals({ now: () => second * 1000,
    usageOf: (worker) =>
      worker === 3 ? { rssBytes: MIB, cpuMs: 7 } : worker === 1 ? { rssBytes: 70 * MIB, cpuMs: cpuMs += 980 } : null })
  vitals.began(3, 3)
  for (const worker of [1, 2])
    vitals.accept(worker, worker, report({ rssBytes: 50 * MIB, cpuPercent: 1, inFlight: 3, latenciesMs: [0.3] }))
  for (let n = 0; n < 4; n++) vitals.turn(second++)
  const seen = vitals.latest(1)
  assert.deepEqual([seen?.cpuPercent, seen?.rssBytes, seen?.inFlight, seen?.requestsPerSecond, seen?.latencyP99Ms,
    seen?.loopDelayP99Ms], [98, 70 * MIB, 3, null, null, null])
  assert.deepEqual(vitals.lastMinute(1).map(({ cpuPercent }) => cpuPercent), [1, 98, 98])
  assert.equal(vitals.latest(2)?.cpuPercent, 1, 'nobody tells of the other')
  assert.deepEqual([vitals.latest(3)?.cpuPercent, vitals.latest(3)?.rssBytes, vitals.latest(3)?.inFlight], [0, MIB,
    null], 'it has never reported')

  vitals.accept(1, 1, report({ cpuPercent: 2, latenciesMs: [0.3] }))
  vitals.turn(second++)
  assert.equal(vitals.latest(1)?.cpuPercent, 2)
})

test('the cluster is the sum of its workers where that means something, the worst of them for delays, their mean for utilization', (t) => {
  const { pass, series } = setUp(t)
  pass({
    1: report({ rssBytes: 10 * MIB, cpuPercent: 90, eventLoopUtilization: 0.9, loopDelayP99Ms: 30, inFlight: 4,
      openConnections: 5 }),
    2: report({ rssBytes: 20 * MIB, cpuPercent: 10, eventLoopUtilization: 0.1, loopDelayP99Ms: 2, inFlight: 1,
      openConnections: 2 })
  })
  const { time, cluster, slots } = series(1000)
  assert.deepEqual(time, [START_S])
  assert.deepEqual(
    pick(cluster, 'rssBytes', 'cpuPercent', 'eventLoopUtilization', 'loopDelayP99Ms', 'inFlight', 'openConnections'),
    [[30 * MIB], [100], [0.5], [30], [5], [7]]
  )
  assert.deepEqual(slots.map(({ slot, columns }) => [slot, columns.rssBytes]), [[1, [10 * MIB]], [2, [20 * MIB]]])
})

test('the p99 of the cluster is that of all requests, not the mean of those of its workers', (t) => {
  const { pass, series } = setUp(t)
  pass({ 1: report({ latenciesMs: Array(900).fill(5) }),
    2: report({ latenciesMs: [...Array(80).fill(5), ...Array(20).fill(500)] }) })
  for (let n = 0; n < 70; n++) pass()
  for (const stepMs of [1000, 10_000, 60_000]) {
    const { cluster, slots } = series(stepMs)
    assert.equal(cluster.requests[0], 1000)
    assert.ok(Math.abs(Number(cluster.latencyP50Ms[0]) / 5 - 1) < 0.036)
    assert.ok(Math.abs(Number(cluster.latencyP90Ms[0]) / 5 - 1) < 0.036)
    assert.ok(Math.abs(Number(cluster.latencyP99Ms[0]) / 500 - 1) < 0.036)
    assert.ok(Math.abs(Number(slots[0].columns.latencyP99Ms[0]) / 5 - 1) < 0.036)
  }
})

test('longer steps add up the counts and keep the peaks', (t) => {
  const { pass, series, vitals } = setUp(t)
  for (let n = 0; n < 20; n++) {
    pass({
      1: report({ latenciesMs: [n < 10 ? 1 : 100], cpuPercent: n < 10 ? n * 10 : 0,
        rssBytes: (n === 15 ? 100 : 10) * MIB, statuses: [1, 0, 2, 0, 0, 0] })
    })
  }
  vitals.stop()
  const tens = series(10_000)
  assert.deepEqual(tens.time, [START_S, START_S + 10])
  assert.deepEqual(
    pick(tens.cluster, 'requests', 'requestsPerSecond', 'requests2xx', 'requests4xx', 'cpuPercent', 'rssBytes'),
    [[30, 30], [3, 3], [10, 10], [20, 20], [45, 0], [10 * MIB, 100 * MIB]]
  )
  assert.deepEqual(tens.slots.map(({ columns }) => columns), [tens.cluster])
  const minute = series(60_000)
  assert.deepEqual(pick(minute.cluster, 'requests', 'cpuPercent', 'rssBytes'), [[60], [22.5], [100 * MIB]])
})

test('where nothing is known there is null, and every column is as long as time', (t) => {
  const { pass, series } = setUp(t)
  pass({ 1: report() })
  pass({ 2: report({ latenciesMs: [5] }) })
  pass()
  const { time, cluster, slots } = series(1000)
  assert.deepEqual(time, [START_S, START_S + 1, START_S + 2])
  for (const { columns } of [...slots, { columns: cluster }]) {
    assert.deepEqual(Object.keys(columns), ['requests', 'requestsPerSecond', 'requests5xxPerSecond',
      ...COLUMNS.map(({ name }) => name)])
    for (const [name, column] of Object.entries(columns)) assert.equal(column.length, 3, name)
  }
  assert.deepEqual(cluster.latencyP99Ms, [null, 4.873, null])
  // What does not report is still there, and holds its memory; how it feels is not known.
  assert.deepEqual(pick(slots[1].columns, 'rssBytes', 'cpuPercent'), [[null, 64 * MIB, 64 * MIB], [null, 50, null]])
})

test('a second without any worker is a gap', (t) => {
  const { pass, series, vitals } = setUp(t)
  pass({ 1: report() })
  vitals.left(1)
  pass()
  pass({ 2: report() })
  assert.deepEqual(series(1000).time, [START_S, START_S + 2])
})

test('two workers of one slot, as when one replaces the other, are added up', (t) => {
  const { pass, series } = setUp(t)
  pass({ 1: { ...report({ rssBytes: 10 * MIB }), slot: 1 }, 5: { ...report({ rssBytes: 20 * MIB }), slot: 1 } })
  assert.deepEqual(series(1000).slots.map(({ slot, columns }) => [slot, columns.rssBytes]), [[1, [30 * MIB]]])
})

test('the last minute of a worker is known after its death, its last report included, and only for the newest of the dead', (t) => {
  const { pass, vitals } = setUp(t)
  for (let n = 0; n < 70; n++) pass({ 1: report({ cpuPercent: n }) })
  vitals.accept(1, 1, report({ cpuPercent: 99 }))
  vitals.left(1)
  const minute = vitals.lastMinute(1)
  assert.deepEqual(minute.map(({ cpuPercent }) => cpuPercent), [...Array.from({ length: 60 }, (_, n) => n + 10), 99])
  assert.equal(minute[0].at, new Date((START_S + 10) * 1000).toISOString())
  pass()
  assert.equal(vitals.lastMinute(1).at(-1)?.cpuPercent, 99)
  assert.deepEqual(vitals.lastMinute(2), [])
  for (let worker = 2; worker < 600; worker++) {
    vitals.accept(worker, 1, report())
    vitals.left(worker)
  }
  assert.deepEqual([vitals.lastMinute(1).length, vitals.lastMinute(599).length], [0, 1])
})

test('what a worker does now is the last second of its slot, also once more has been reported', (t) => {
  const { vitals, now, pass, series } = setUp(t)
  const at = new Date(now()).toISOString()
  assert.equal(vitals.latest(1), null)
  pass({ 1: report({ latenciesMs: [5, 5], rssBytes: 30 * MIB }) })
  vitals.accept(1, 1, report({ latenciesMs: [400], rssBytes: 90 * MIB }))
  const latest = vitals.latest(1)!
  assert.deepEqual([latest.at, latest.rssBytes, latest.requestsPerSecond, latest.latencyP99Ms], [at, 30 * MIB, 2,
    4.873])
  const [{ columns }] = series(1000).slots
  for (const [name, value] of Object.entries(latest).filter(([name]) => name !== 'at'))
    assert.equal(columns[name].at(-1), value, name)
})

test('memory holds a quarter of an hour, and no slot that has long been gone', (t) => {
  const { pass, series, vitals } = setUp(t)
  pass({ 1: report(), 2: report() })
  vitals.left(2)
  for (let n = 0; n < 1000; n++) pass({ 1: report() })
  const { time, slots } = series(1000)
  assert.deepEqual([time.length, time[0], time.at(-1)], [900, START_S + 101, START_S + 1000])
  assert.deepEqual(slots.map(({ slot }) => slot), [1])
})

test('of a program that is no Node program there is what the system knows, and nothing is 0 that nobody has measured', (t) => {
  const { vitals, pass, series } = setUp(t)
  const program = { intervalMs: 1000, rssBytes: 10 * MIB, cpuPercent: 25, openConnections: 3, processes: 2, threads: 9,
    descriptors: 20 }
  vitals.accept(1, 1, program)
  pass()
  const { requestsPerSecond, inFlight, latencyP99Ms, threads } = vitals.latest(1)!
  assert.deepEqual([requestsPerSecond, inFlight, latencyP99Ms, threads], [null, null, null, 9])
  assert.deepEqual(
    pick(series(1000).cluster, 'requests', 'openConnections', 'heapUsedBytes', 'processes', 'descriptors'),
    [[null], [3], [null], [2], [20]]
  )
  const { requests, duration, cpuSeconds } = vitals.metrics()
  assert.deepEqual([requests, duration, cpuSeconds], [[], null, [{ slot: 1, value: 0.25 }]])
  assert.throws(() => vitals.accept(2, 2, { ...program, rssBytes: undefined }), /rssBytes/)
})

const SLOWEST = { method: 'GET', path: '/', status: 200, ms: 5, at: 0 }
const WRONG_SLOWEST = [null, 5, {}, { ...SLOWEST, method: 'X'.repeat(201) }, { ...SLOWEST, path: 'x'.repeat(201) }, {
  ...SLOWEST,
  path: ['/']
}, { ...SLOWEST, status: -1 }, { ...SLOWEST, ms: Infinity }, { ...SLOWEST, ms: '5' }, { ...SLOWEST, at: 1e300 }]

test('a report that is none is refused, told once for each worker, and changes nothing', (t) => {
  const body = report()
  const wrong: Record<string, unknown> = { 'no object': 5, nothing: {},
    ...Object.fromEntries(
      [['rssBytes', '5'], ['inFlight', undefined], ['cpuPercent', -1], ['loopDelayP99Ms', NaN], ['heapUsedBytes',
        Infinity], ['externalBytes', null], ['eventLoopUtilization', 1.01], ['statuses', [1, 2, 3]], ['statuses',
        Array(7).fill(0)], ['statuses', { length: 6 }], ['statuses', [0.5, 0, 0, 0, 0, 0]], ['latency', [5]], [
        'latency',
        [9999, 1]
      ], ['latency', [-1, 1]], ['latency', [5, 1, 4, 1]], ['latency', [5, 1, 5, 1]], ['latency', [5, 1e300]], [
        'latency',
        Array(100_000).fill(1)
      ], ['latency', ['5', '1']], ['latency', '11'],
        ...WRONG_SLOWEST.map((slowest) => ['routes', [{ route: 'GET /', errors: 0, latency: [5, 1], slowest }]])].map((
          [name, value],
          at
        ) => [`${at}: ${name}`, { ...body, [String(name)]: value }])
    ) }
  for (const [what, report] of Object.entries(wrong)) {
    const { vitals, pass, series } = setUp(t)
    assert.throws(() => vitals.accept(1, 1, report), TypeError, what)
    assert.doesNotThrow(() => vitals.accept(1, 1, report))
    pass()
    assert.deepEqual([vitals.latest(1), series(1000).time], [null, []])
    pass({ 1: body })
    assert.ok(vitals.latest(1))
  }
})

test('however often a worker reports within a second, it is one row', (t) => {
  const { vitals, pass, series } = setUp(t)
  for (let n = 0; n < 1000; n++) vitals.accept(1, 1, report({ latenciesMs: [5], rssBytes: 10 * MIB, cpuPercent: 30 }))
  pass()
  const { time, cluster } = series(1000)
  assert.deepEqual([time.length, ...pick(cluster, 'requests', 'rssBytes', 'cpuPercent')], [1, [1000], [10 * MIB], [30]])
})

test('a step comes back from its bytes with the precision that is shown', () => {
  const value = fc.option(fc.double({ min: 0, max: 2 ** 31, noNaN: true }), { nil: NaN })
  const row = fc.array(value, { minLength: COLUMNS.length, maxLength: COLUMNS.length })
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 256 }), row), { selector: ([slot]) =>
      slot, maxLength: 5 }), (entries) => {
      const decoded: unknown[] = []
      decodeStep(encodeStep(entries), (slot, values) =>
        decoded.push([slot, Array.from(values)]))
      assert.deepEqual(decoded, entries.map(([slot, values]) => [slot, values.map((each, index) =>
        Math.round(each * COLUMNS[index].perUnit) / COLUMNS[index].perUnit
      )]))
    })
  )
})

test('bytes that are cut off, or none of ours, harm nobody', () => {
  const whole = encodeStep([[0, new Float64Array(COLUMNS.length).fill(1000)]])
  for (let length = 0; length <= whole.length; length++)
    assert.doesNotThrow(() => decodeStep(whole.subarray(0, length), () => {}))
  decodeStep(Buffer.from([99, 1, 2, 3]), () => assert.fail('another version is not read'))
})

test('a database that fails stops nothing: steps wait in bounded memory, are written once it is back, and it is told once', (t) => {
  const { pass, series, store, failures, history } = setUp(t)
  store.write = () => {
    throw new Error('database is locked')
  }
  for (let n = 0; n < 61; n++) pass({ 1: report({ latenciesMs: [5] }) })
  assert.deepEqual([series(10_000).time.length, series(1000).time.length, failures.length], [0, 61, 1])
  store.write = history.vitals.write
  for (let n = 0; n < 60; n++) pass({ 1: report({ latenciesMs: [5] }) })
  assert.equal(series(10_000).cluster.requests.reduce((sum, count) => Number(sum) + Number(count), 0), 120)
  store.write = () => {
    throw new Error('disk full')
  }
  for (let n = 0; n < 6000; n++) pass({ 1: report() })
  store.write = history.vitals.write
  for (let n = 0; n < 300; n++) pass({ 1: report() })
  const kept = series(10_000).time.map((time) => (time - START_S) / 10)
  assert.deepEqual([failures.length, kept.slice(0, 12), kept.at(-1)], [2, Array.from({ length: 12 }, (_, n) => n), 641])
  assert.ok(kept.length > 380 && kept.length < 420,
    `the oldest of what waited are lost: ${kept.length} of 642 are kept`)
})

test('of a step that two masters have each seen a part of, the longer part is kept', (t) => {
  const { history, pass, vitals, series, now } = setUp(t)
  for (let n = 0; n < 6; n++) pass({ 1: report({ latenciesMs: [5] }) })
  vitals.stop()
  const next = createVitals({ store: history.vitals, now })
  for (let n = 6; n < 9; n++) {
    next.accept(2, 1, report({ latenciesMs: [5] }))
    next.turn(START_S + n)
  }
  next.stop()
  pass()
  assert.deepEqual(series(10_000).cluster.requests, [6])
})

test('an answer that would be too long says from where to go on, and nothing is missing or twice', (t) => {
  const { pass, history, vitals, now } = setUp(t)
  for (let n = 0; n < 400; n++) pass({ 1: report({ latenciesMs: [5] }), 2: report() })
  vitals.stop()
  const ring = { newest: -1, values: new Float32Array(0), find: () => -1 }
  const series = createSeries({ now, memoryS: 900, cluster: ring, slots: new Map(), read: history.vitals.read,
    maxValues: 500 })
  const times = []
  let sinceMs: number | null = START_S * 1000
  let answers = 0
  while (sinceMs !== null) {
    const answer = series({ sinceMs, stepMs: 10_000 })
    times.push(...answer.time)
    assert.ok(answer.time.length > 0 && answer.time.length < 10)
    sinceMs = answer.nextMs
    answers++
  }
  assert.deepEqual(times, Array.from({ length: 40 }, (_, n) => START_S + n * 10))
  assert.ok(answers > 4)
})

test('a range holds what begins in it, and a step that is not kept is refused', (t) => {
  const { pass, vitals } = setUp(t)
  for (let n = 0; n < 35; n++) pass({ 1: report() })
  vitals.stop()
  const times = (since: number, until: number, stepMs = 1000) =>
    vitals.series({ sinceMs: (START_S + since) * 1000, untilMs: (START_S + until) * 1000, stepMs }).time.map((time) =>
      time - START_S
    )
  assert.deepEqual([times(3, 6), times(2.5, 3.5), times(50, 60), times(-50, 2), times(5, 30, 10_000)], [[3, 4, 5], [3],
    [], [0, 1], [10, 20]])
  assert.throws(() => vitals.series({ sinceMs: 0, stepMs: 5000 }),
    /stepMs: expected 1000, 10000 or 60000, received 5000/)
})

test('steps are forgotten when their time is over, each kind after its own', (t) => {
  let nowMs = START_S * 1000
  const history = openHistory({ file: ':memory:', now: () => nowMs, clock: () => 0 })
  t.after(() => history.close())
  const hour = 3600
  for (const stepS of [10, 60]) {
    history.vitals.write(
      Array.from({ length: 300 },
        (_, n) => ({ stepS, at: START_S + n * 60, seconds: stepS, body: Buffer.from([1, 0]) }))
    )
  }
  const count = (stepS: number) => history.vitals.read({ stepS, sinceS: 0, untilS: START_S * 2, limit: 1000 }).length
  const sweep = () => {
    while (history.sweep({ sliceRows: 40 }).more);
  }
  const vitals = createVitals({ store: history.vitals, now: () => nowMs + 10 * hour * 1000 })
  assert.deepEqual(vitals.series({ sinceMs: 0, stepMs: 60_000 }).time,
    Array.from({ length: 300 }, (_, n) => START_S + n * 60), 'read page by page')
  nowMs += (24 * hour + 60 * 100) * 1000
  sweep()
  assert.deepEqual([count(10), count(60)], [200, 300])
  nowMs += 29 * 24 * hour * 1000
  sweep()
  assert.deepEqual([count(10), count(60)], [0, 200])
})

test('totals never go down, whatever becomes of the workers', (t) => {
  const { vitals } = setUp(t)
  for (let worker = 1; worker <= 20; worker++) {
    vitals.accept(worker, 1 + worker % 2,
      report({ latenciesMs: [5, 5.2, 200], statuses: [1, 0, 0, 1, 0, 2], cpuPercent: 50 }))
    vitals.left(worker)
  }
  for (const event of [{ type: 'worker.exited', cause: 'crash' }, { type: 'worker.exited', cause: '<script>' }, {
    type: 'worker.exited',
    cause: 'crash'
  }, { type: 'worker.restarted', slot: 2 }, { type: 'rollout.failed' }]) vitals.count(fake({ slot: null, ...event }))
  const { requests, duration, cpuSeconds, exits, restarts, rollouts, slots } = vitals.metrics()
  assert.deepEqual(requests.filter(({ value }) => value > 0),
    [1, 2].flatMap((
      slot
    ) => [{ slot, class: '2xx', value: 10 }, { slot, class: '5xx', value: 10 }, { slot, class: 'aborted', value: 20 }]))
  assert.deepEqual(cpuSeconds, [{ slot: 1, value: 5 }, { slot: 2, value: 5 }])
  assert.ok(duration)
  assert.deepEqual([duration.count, Math.round(duration.sumSeconds * 1000) / 1000,
    duration.buckets.find(({ le }) => le === 0.005)?.count, duration.buckets.find(({ le }) => le === 0.1)?.count,
    duration.buckets.find(({ le }) => le === 0.25)?.count], [60, 4.204, 20, 40, 60])
  assert.deepEqual(exits.filter(({ value }) => value > 0), [{ cause: 'crash', value: 2 }, { cause: 'other', value: 1 }])
  assert.deepEqual([restarts, rollouts.filter(({ value }) => value > 0), slots], [[{ slot: 2, value: 1 }], [{
    result: 'failed',
    value: 1
  }], []])
})

test('each second is put together once, halfway between two reports, by a timer that is early or late too', () => {
  let nowMs = START_S * 1000 + 123
  const timers: { work: () => void, ms: number }[] = []
  const vitals = createVitals({ now: () => nowMs, setTimer: (work, ms) => timers.push({ work, ms }), clearTimer () {} })
  vitals.start()
  for (const [wait, lateMs] of [[377, 3], [997, -1], [1001, 200], [800, 0], [1000, 0]]) {
    const timer = timers.shift()!
    assert.equal(timer.ms, wait)
    nowMs += wait + lateMs
    vitals.accept(1, 1, report())
    timer.work()
  }
  assert.deepEqual(vitals.series({ sinceMs: 0, untilMs: nowMs, stepMs: 1000 }).time.map((time) => time - START_S), [-1,
    0, 1, 2, 3])
})
