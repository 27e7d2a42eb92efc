import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import os from 'node:os'
import { test } from 'node:test'
import { createEventStream, type DeckEvent } from '../../../server/events/stream.ts'
import { createDelivery } from '../../../server/telemetry/delivery.ts'
import { eventRecord, lineRecord } from '../../../server/telemetry/log-record.ts'
import { sendLogs, sendMetrics } from '../../../server/telemetry/otlp.ts'
import { postOtlp } from '../../../server/telemetry/otlp-post.ts'
import { logsRequest, metricsRequest } from '../../../server/telemetry/otlp-json.ts'
import { toProtobuf } from '../../../server/telemetry/otlp-protobuf.ts'
import { readOtlpSettings } from '../../../server/telemetry/otlp-settings.ts'
import { createSyslog, localMessage } from '../../../server/telemetry/syslog.ts'
import { createJournal, followWorkerLines, startTelemetry, type Options } from '../../../server/telemetry/telemetry.ts'
import { serveHttp } from '../../support/http-server.ts'
import { attributesOf, decode, startCollector } from '../../support/otlp-receiver.ts'
import { fake } from '../../support/fake.ts'
import { assertRetold } from '../../support/golden.ts'
import type { Metric } from '../../../server/telemetry/metric.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN_ID = '00f067aa0ba902b7'
const OPTIONS: Options = Object.freeze({ otlp: 'on', journald: 'off', workerOutput: 'off' })
const RECORD = Object.freeze({ at: Date.parse('2026-01-02T03:04:05.678Z'), level: 'error' as const,
  text: 'Worker 7 crashed', event: 'worker.exited', attributes: { 'clusterdeck.slot': 2, 'process.pid': 4711 },
  trace: { traceId: TRACE_ID, spanId: null } })

const EVERY_TYPE: Metric[] = [{ name: 'a_total', help: 'h', type: 'counter',
  series: [{ labels: { kind: 'é' }, value: 0.5 }, { labels: {}, value: 0 }] }, { name: 'b', help: '', type: 'gauge',
  series: [{ labels: {}, value: -1 }] }, { name: 'c_seconds', help: 'h', type: 'histogram',
  series: [{ labels: { x: 'y' }, sum: 9, count: 300, buckets: [[0.1, 2], [1, 5]] }] }, { name: 'd', help: 'h',
  type: 'summary', series: [{ labels: {}, sum: 9, count: 6, buckets: [] }] }]

test('a collector gets metrics and events as the definition of OTLP has them, from the variables that everybody sets', async (t) => {
  const collector = await startCollector(t)
  const { events, telemetry } = start({ OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20c2VjcmV0,x-tenant=a', OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json', OTEL_SERVICE_NAME: 'shop',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod,service.name=other' })
  const { at } = events.publish({ type: 'worker.exited', worker: 7, slot: 2, pid: 4711, release: 'r1', cause: 'crash',
    signal: 'SIGKILL', uptimeMs: 1500, detail: { crash: 12, crashGroup: 3, errorName: 'TypeError', other: {} } })
  await telemetry.close()
  assert.deepEqual(collector.faults, [])

  const [{ headers, body }] = collector.requests
  assert.deepEqual([headers.authorization, headers['x-tenant'], headers['content-encoding']], ['Basic c2VjcmV0', 'a',
    'gzip'])
  const resource = attributesOf((body.resourceLogs ?? body.resourceMetrics)[0].resource.attributes)
  assert.deepEqual([resource['service.name'], resource['deployment.environment.name']], ['shop', 'prod'])
  const [record] = collector.logs()
  assert.deepEqual([record.eventName, record.timeUnixNano, record.body.stringValue.includes('Worker 7')], [
    'clusterdeck.worker.exited',
    `${Date.parse(at)}000000`,
    true
  ])
  assert.deepEqual(attributesOf(record.attributes), { 'clusterdeck.event.id': 1, 'clusterdeck.cause': 'crash',
    'clusterdeck.slot': 2, 'clusterdeck.worker': 7, 'clusterdeck.release': 'r1', 'clusterdeck.signal': 'SIGKILL',
    'clusterdeck.uptime_ms': 1500, 'process.pid': 4711, 'clusterdeck.crash': 12, 'clusterdeck.crash_group': 3,
    'exception.type': 'TypeError' })
  assert.deepEqual(new Set(collector.requests.map(({ path, headers }) => `${path} ${headers['content-type']}`)),
    new Set(['/v1/metrics application/json', '/v1/logs application/x-protobuf']))
  const metrics = collector.metrics()
  const orders = metrics.find(({ name }) => name === 'orders_total')
  assert.deepEqual([orders?.sum.isMonotonic, orders?.sum.dataPoints[0].asDouble], [true, 7])
  assert.ok(
    metrics.some(({ name, gauge }) => name === 'clusterdeck_workers_ready' && gauge.dataPoints[0].asDouble === 2)
  )
})

test('buckets of a histogram are those of OTLP: no longer cumulative, one more than there are bounds', () => {
  const [told] =
    metricsRequest([{ name: 's_seconds', help: 'h', type: 'histogram',
      series: [{ labels: { a: 'b' }, sum: 9, count: 6, buckets: [[0.1, 2], [1, 5]] }] }], { startMs: 1, nowMs: 2.5 }, {
      version: '1',
      attributes: {}
    }).resourceMetrics[0].scopeMetrics[0].metrics
  assert.deepEqual(told, { name: 's_seconds', description: 'h', unit: 's',
    histogram: { aggregationTemporality: 2,
      dataPoints: [{ attributes: [{ key: 'a', value: { stringValue: 'b' } }], startTimeUnixNano: '1000000',
        timeUnixNano: '2000000', count: '6', sum: 9, explicitBounds: [0.1, 1], bucketCounts: ['2', '3', '1'] }] } })
})

test('a request as protobuf says the same as JSON', () => {
  const span = { startMs: 1, nowMs: Date.now() }
  const sender = { version: '1', attributes: { 'service.name': 'shöp', 'a.number': 2 ** 40 } }
  const metrics = metricsRequest(EVERY_TYPE, span, sender)
  assert.deepEqual(decode('ExportMetricsServiceRequest', toProtobuf(metrics)), withoutEmptyLists(metrics))
  const logs = logsRequest([RECORD, { ...RECORD, text: '', event: null, level: 'none',
    trace: { traceId: TRACE_ID, spanId: SPAN_ID } }], span, sender)
  assert.deepEqual(decode('ExportLogsServiceRequest', toProtobuf(logs)), withoutEmptyLists(logs))
})

test('a count that an app has made up stops no other metric', () => {
  const absurd = [1e300, Infinity, NaN, -1].map((count, index) => ({ name: `absurd_${index}`, help: '',
    type: 'histogram' as const, series: [{ labels: {}, sum: 1, count, buckets: [[1, count]] as [number, number][] }] })
  )
  const request = metricsRequest([...absurd, ...EVERY_TYPE], { startMs: 1, nowMs: 2 }, { version: '1', attributes: {} })
  const [{ metrics }] = decode('ExportMetricsServiceRequest', toProtobuf(request)).resourceMetrics[0].scopeMetrics
  assert.deepEqual(metrics.map(({ histogram }) => histogram?.dataPoints[0].count), [String(Number.MAX_SAFE_INTEGER),
    String(Number.MAX_SAFE_INTEGER), '0', '0', undefined, undefined, '300', undefined])
})

test('a line of a logger has its level, and the trace that it names', () => {
  assert.deepEqual(
    lineRecord({ slot: 1, stream: 'stdout', at: 5,
      text: `{"level":50,"msg":"failed","trace_id":"${TRACE_ID}","span_id":"${SPAN_ID}"}` }),
    { at: 5, level: 'error', event: null, attributes: { 'clusterdeck.slot': 1, 'log.iostream': 'stdout' },
      trace: { traceId: TRACE_ID, spanId: SPAN_ID },
      text: `{"level":50,"msg":"failed","trace_id":"${TRACE_ID}","span_id":"${SPAN_ID}"}` }
  )
  for (const text of [`{"trace_id":["${TRACE_ID}"]}`, '{"trace_id":"x"}', '{"trace_id":7}',
    `{"trace_id":"${'0'.repeat(32)}"}`, '{trace', '[]', 'null'])
    assert.equal(lineRecord({ slot: 1, stream: 'stderr', at: 5, text }).trace, null, text)
})

test('variables that name no collector, switch it off or are wrong send nothing, and say why', async () => {
  await assertRetold(import.meta, 'otlp-settings', (given) => {
    const { metrics, logs, problems } = readOtlpSettings(
      Object.fromEntries(given.split(' ').map((each) => each.split('=', 2)))
    )
    const shown = [metrics, logs].map((each) => each ? `${each.url} within ${each.timeoutMs} ms` : 'off')
    return [`metrics ${shown[0]}`, `logs ${shown[1]}`, ...problems].join('; ')
  })
})

test('what a collector does not take is tried again, and the history says since when and how much was lost', async (t) => {
  const collector = await startCollector(t)
  collector.answers.push({ status: 503, headers: { 'retry-after': '0.01' } })
  const { events, telemetry, told, recovered } = start({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${collector.url}/v1/logs` })
  events.publish({ type: 'worker.ready', worker: 1 })
  await recovered
  await telemetry.close()
  assert.deepEqual([collector.logs().length, collector.faults], [1, []])
  assert.deepEqual(told().map(({ type, message }) => [type, message]), [['telemetry.failed',
    'The collector does not take logs: answered 503'], ['telemetry.recovered', 'The collector takes logs again']])
})

test('while a collector is away the newest records are kept, and an end waits for it no longer than it may', async () => {
  const sent: number[][] = []
  let isAway = true
  const delivery = createDelivery(async (batch: number[]) => {
    if (!isAway) sent.push(batch)
    return { error: isAway ? 'ECONNREFUSED' : null, canRetry: true, retryAfterMs: null, rejected: 0 }
  }, { batchMs: 0, firstDelayMs: 5, maxWaiting: 3 })
  for (let n = 1; n <= 5; n++) delivery.push(n)
  assert.equal(delivery.room, 0)
  isAway = false
  await delivery.close(1000)
  assert.deepEqual(sent, [[3, 4, 5]])

  const stuck = createDelivery((_batch: number[], signal) =>
    new Promise((resolve) => {
      signal.addEventListener('abort',
        () => resolve({ error: 'aborted', canRetry: true, retryAfterMs: null, rejected: 0 }))
    }), { batchMs: 0 })
  stuck.push(1)
  await stuck.close(5)
})

test('what is too large for a collector goes in halves, until it fits or is one record, of logs and of metrics', async (t) => {
  // The pause before a batch keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const sizes: number[] = []
  const taken: string[] = []
  const { url } = await serveHttp(t, async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    sizes.push(body.length)
    if (body.length > 20_000) return response.writeHead(413).end()
    taken.push(...String(body).match(/(line|kind)-\d+/g) ?? [])
    response.end('{}')
  })
  const target = { url, headers: {}, timeoutMs: 10_000, isCompressed: false, isJson: true }
  const sender = { attributes: {}, version: '1' }
  let lost = 0
  const counted = { onOutcome: ({ dropped }: { dropped: number }) => {
    lost += dropped
  }, sender }
  const logs = sendLogs(target, counted)
  for (let n = 0; n < 400; n++) logs.push({ ...RECORD, text: `line-${n} ${'y'.repeat(n === 200 ? 30_000 : 5000)}` })
  await logs.close(20_000)
  assert.deepEqual(taken, Array.from({ length: 400 }, (_, n) => `line-${n}`).filter((_, n) => n !== 200))
  assert.equal(lost, 1, 'one that alone is too large')
  assert.ok(sizes.filter((size) => size > 20_000).length < 12, `what was refused once is not tried again: ${sizes}`)
  assert.ok(Math.max(...sizes) < 1_000_000, 'a vendor that takes 1 MB refuses nothing')

  taken.length = 0
  const series = Array.from({ length: 1000 }, (_, n) => ({ labels: { kind: `kind-${n}` }, value: n }))
  await sendMetrics(target, { ...counted, intervalMs: 60_000,
    read: async () => [...EVERY_TYPE, { name: 'orders', help: '', type: 'gauge', series }] }).close(20_000)
  assert.deepEqual(taken, series.map(({ labels: { kind } }) => kind))
  assert.equal(lost, 1)
})

test('a batch that is being sent is not dropped, nor counted as lost', async (t) => {
  // The pause before a batch keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  const sent: number[][] = []
  const lost: number[] = []
  const first: PromiseWithResolvers<void> = Promise.withResolvers()
  const begun: PromiseWithResolvers<void> = Promise.withResolvers()
  const delivery = createDelivery(async (batch: number[]) => {
    sent.push(batch)
    begun.resolve()
    await first.promise
    return { error: null, canRetry: false, retryAfterMs: null, rejected: 0 }
  }, { batchMs: 0, maxWaiting: 4, onOutcome: ({ dropped }) => lost.push(dropped) })
  for (const n of [1, 2]) delivery.push(n)
  await begun.promise
  for (const n of [3, 4, 5, 6]) delivery.push(n)
  first.resolve()
  await delivery.close(1000)
  assert.deepEqual([sent, lost], [[[1, 2], [5, 6]], [2, 0]])
})

test('an end does not wait for what cannot be aborted, such as the look-up of a name', { timeout: 5000 }, async () => {
  const delivery = createDelivery(() => new Promise(() => {}), { batchMs: 0 })
  delivery.push(1)
  await delivery.close(5)
})

test('a collector that never ends its answer is waited for no longer than it may take', { timeout: 20_000 },
  async (t) => {
    const { url } = await serveHttp(t, (_request, response) => {
      response.writeHead(200)
      const dripping = setInterval(() => response.write(' '), 10)
      response.on('close', () => clearInterval(dripping))
    })
    const target = { url, headers: {}, timeoutMs: 1000, isCompressed: false, isJson: true }
    assert.deepEqual(await postOtlp(target, {}), { error: null, canRetry: false, retryAfterMs: null, rejected: 0 })
  })

test('lines of the workers wait in their files until there is room', async () => {
  const files = { stdout: ['a', 'b', '', 'c'], stderr: ['error: d'] }
  const taken: string[] = []
  let room = 33
  const follower = followWorkerLines({ slots: () => [1], begin: () => ({ stdout: 0, stderr: 0 }),
    cursor: (_slot, stream) => ({ lag: () => files[stream].length,
      read: async () => ({ lines: files[stream].splice(0, 1) }) }) }, { room: () => room, push (record) {
    room--
    taken.push(`${record.level} ${record.text}`)
  } })
  await follower.stop()
  assert.deepEqual([taken, files.stdout], [['none a', 'none b'], ['', 'c']])
  room = 40
  await follower.stop()
  assert.deepEqual(taken.slice(2), ['none c', 'error error: d'])
})

test('no more lines are read than there is room for, however short they are, and a log that cannot be read keeps none of the others waiting', async () => {
  const RECORDS = 2048
  let left = 64 * 1024
  let taken = 0
  const follower = followWorkerLines({ slots: () => [1, 2], begin (slot) {
    if (slot === 1) throw Object.assign(new Error(), { code: 'EACCES' })
    return { stdout: 0, stderr: 0 }
  }, cursor: (_slot, stream) => ({ lag: () => stream === 'stdout' ? left : 0, async read (maxBytes) {
    const bytes = Math.min(left, maxBytes)
    left -= bytes
    return { lines: Array(Math.floor(bytes / 2)).fill('x') }
  } }) }, { room: () => RECORDS - taken, push () {
    taken++
  } })
  await follower.stop()
  assert.equal(taken, RECORDS)
})

test('an event is a record as serious as it looks on the page', () => {
  const events = createEventStream()
  const levelOf = (type: string) => eventRecord(events.publish({ type })).level
  assert.deepEqual(['worker.ready', 'worker.restarted', 'worker.crash-looping', 'of-a-later-version'].map(levelOf), [
    'info',
    'warn',
    'error',
    'info'
  ])
})

test('journald gets the fields of an event, also those of several lines, and what has left is not sent twice', async () => {
  const taken: Buffer[] = []
  let isFull = false
  const send = createJournal({ identifier: 'shop',
    load: () => fake({ sendDatagram: (_path: string, content: Buffer) => !isFull && taken.push(content) > 0 }) })
  const many = { ...RECORD, text: 'a\nb' }
  assert.equal((await send([RECORD])).error, null)
  isFull = true
  assert.equal((await send([RECORD, many])).error, 'its socket takes nothing')
  isFull = false
  assert.equal((await send([RECORD, many])).error, null)
  assert.deepEqual(taken.map(String), [
    `MESSAGE=Worker 7 crashed\nPRIORITY=3\nSYSLOG_IDENTIFIER=shop\nSYSLOG_FACILITY=3\nCLUSTERDECK_EVENT=worker.exited\nCLUSTERDECK_SLOT=2\nPROCESS_PID=4711\nTRACE_ID=${TRACE_ID}\n`,
    `MESSAGE\n\x03\0\0\0\0\0\0\0a\nb\nPRIORITY=3\nSYSLOG_IDENTIFIER=shop\nSYSLOG_FACILITY=3\nCLUSTERDECK_EVENT=worker.exited\nCLUSTERDECK_SLOT=2\nPROCESS_PID=4711\nTRACE_ID=${TRACE_ID}\n`
  ])
  assert.match(String((await createJournal({ identifier: 'shop', load: () => null })([RECORD])).error), /koffi/)
})

test('syslog gets one line for an event: as RFC 5424 has it by UDP, and as the C library has it on this machine', async (t) => {
  const receiver = dgram.createSocket('udp4')
  t.after(() => receiver.close())
  receiver.bind(0, '127.0.0.1')
  await once(receiver, 'listening')
  const message = once(receiver, 'message')
  const syslog = createSyslog(`udp://127.0.0.1:${receiver.address().port}`, { app: 'my shop' })
  assert.equal((await syslog.send([{ ...RECORD, text: 'Worker 7\n<0>crashed' }])).error, null)
  syslog.close()
  assert.equal(String((await message)[0]),
    `<27>1 2026-01-02T03:04:05.678Z ${os.hostname()} my_shop 4711 worker.exited - Worker 7 <0>crashed`)
  assert.match(localMessage(RECORD, 'shop'), /^<27>Jan {2}\d \d\d:04:05 shop\[4711\]: Worker 7 crashed$/)
})

/** Protobuf does not tell an empty list from none. */
function withoutEmptyLists (request: object) {
  return JSON.parse(JSON.stringify(request),
    (_key, value) => Array.isArray(value) && value.length === 0 ? undefined : value)
}

function start (environment: Record<string, string>) {
  const events = createEventStream()
  const all: DeckEvent[] = []
  events.subscribe((event) => all.push(event))
  const recovered = new Promise((resolve) =>
    events.subscribe(({ type }) => {
      if (type === 'telemetry.recovered') resolve(undefined)
    })
  )
  const telemetry = startTelemetry({ options: OPTIONS, environment, app: { name: 'app' },
    master: { version: '1.0.0', nodeVersion: 'v22.0.0', isShared: false }, events,
    logs: { slots: () => [], begin: () => ({ stdout: 0, stderr: 0 }),
      cursor: () => ({ lag: () => 0, read: async () => ({ lines: [] }) }) },
    readApp:
      async () => [{ name: 'orders_total', help: 'h', type: 'counter',
        series: [{ labels: { kind: 'a' }, value: 7 }, { labels: { kind: 'b' }, value: NaN }] }],
    facts: () => ({ status: { desiredWorkers: 2, readyWorkers: 2, finishedWorkers: 0, rollout: null, workers: [] },
      vitals: { requests: [], cpuSeconds: [], exits: [], endedRequests: 0, endedConnections: 0, stalledRequests: 0,
        restarts: [], rollouts: [], duration: { buckets: [{ le: 1, count: 2 }], count: 3, sumSeconds: 4 }, slots: [] },
      jobs: [] }) })
  return { events, telemetry, recovered, told: () => all.filter(({ type }) => type.startsWith('telemetry.')) }
}
