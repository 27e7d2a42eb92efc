import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createAppMessages, excerpt } from '../../../server/cluster/app-messages.ts'
import { clusterOf } from '../../support/cluster.ts'
import { fake } from '../../support/fake.ts'
import { keptEvents } from '../../support/event-log.ts'
import type { PoolState } from '../../../server/lifecycle/state.ts'

/** The messages of two workers, and a clock. */
function setUp (t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const worker = (id: number) => ({ id, slot: id + 10, pid: id + 100, release: 'r1' })
  const workers = fake<PoolState['workers']>({ 1: worker(1), 2: worker(2) })
  const { events, publish } = keptEvents()
  const cluster = clusterOf({ state: { workers }, events: { publish } })
  const hear = createAppMessages(cluster)
  return {
    hear,
    left: (id: number) => cluster.emit('left', id),
    workers,
    /** What was told since it was last asked. */
    taken: () => events.splice(0),
    second: () => t.mock.timers.tick(1000),
    say (id: number, count: number) {
      for (let n = 0; n < count; n++) hear(id, { type: 'tick', data: n })
    }
  }
}

test('a message with a type is an event of its worker, without what would move a cursor', (t) => {
  const { hear, taken } = setUp(t)
  hear(1, { type: 'cache\u001b[2Jcleared', data: { keys: 3 }, more: 'nobody asks' })
  hear(2, { type: 'x'.repeat(101) })
  assert.deepEqual(taken(), [{ type: 'worker.message', worker: 1, slot: 11, pid: 101, release: 'r1',
    message: 'cachecleared', detail: { type: 'cache\u001b[2Jcleared', data: { keys: 3 } } }, { type: 'worker.message',
    worker: 2, slot: 12, pid: 102, release: 'r1', message: 'x'.repeat(100),
    detail: { type: 'x'.repeat(100), data: null } }])
})

test('a message of any other shape is nobody\'s business', (t) => {
  const { hear, taken } = setUp(t)
  for (const message of ['type', 7, null, true, [], [{ type: 'x' }], {}, { type: 7 }, { type: null }, { data: 1 }, {
    nextServerReady: true,
    port: 1
  }]) hear(1, message)
  assert.deepEqual(taken(), [])
})

test('what a library says to a primary of the app\'s own is told once for all workers, with what to set, and is no message of the app', (t) => {
  const { hear, taken } = setUp(t)
  const libraries: Record<string, [advice: RegExp, message: object]> = {
    log4js: [/^the library log4js sends "log4js:message" to a primary of the app's own, .*disableClustering: true/, {
      topic: 'log4js:message',
      data: '{}'
    }],
    'rate-limiter-flexible': [/RateLimiterRedis/, { channel: 'rate_limiter_flexible', keyPrefix: 'x',
      func: 'consume' }],
    '@express-rate-limit/cluster-memory-store': [/rate-limit-redis/, { command: 'increment', args: ['k'], requestId: 1,
      prefix: 'x', from: 'cluster-memory-store' }],
    '@socket.io/cluster-adapter': [/@socket.io\/redis-adapter/, { source: '_sio_adapter', type: 3, nsp: '/' }],
    '@socket.io/sticky': [/dispatch: sticky/, { type: 'sticky:connection', data: 'a' }],
    '@pm2/io, pmx or tx2': [/"axm:monitor".*PM2/, { type: 'axm:monitor', data: {} }]
  }
  for (const [library, [advice, message]] of Object.entries(libraries)) {
    for (const worker of [2, 1, 2]) hear(worker, message)
    const [told, ...more] = taken()
    assert.deepEqual([told.type, told.worker, told.slot, told.detail.library, more], ['worker.unanswered', 2, 12,
      library, []])
    assert.match(told.message, advice)
  }
  for (const type of ['axm:option:configuration', 'http:transaction', 'application:dependencies', 'profilings'])
    hear(1, { type, data: {} })
  assert.deepEqual(taken(), [])
})

test('what an app has a library of PM2 say for it is its message', (t) => {
  const { hear, taken } = setUp(t)
  hear(1, { type: 'human:event', data: { __name: 'order' } })
  hear(1, { type: 'process:exception', data: { message: 'no stock' } })
  assert.deepEqual(taken().map(({ type, message }) => [type, message]), [['worker.message', 'human:event'], [
    'worker.message',
    'process:exception'
  ]])
})

test('a message that has a type and also names who sends it, but no data, is for a primary', (t) => {
  const { hear, taken } = setUp(t)
  for (const type of ['store', 'read', 'size'])
    hear(1, { type, requestParams: { key: 'k' }, channel: 'memored', workerPid: 101, id: '101::1' })
  assert.deepEqual(taken().map(({ type, detail }) => [type, detail]), [['worker.unanswered', { library: null,
    name: 'memored' }]])
  hear(1, { type: 'process:msg', topic: 'orders', data: { success: true } })
  hear(1, { type: 'stored', key: 'k' })
  assert.deepEqual(taken().map(({ type, message }) => [type, message]), [['worker.message', 'process:msg'], [
    'worker.message',
    'stored'
  ]])
})

test('of messages that look like others to a primary each name is told once, and five names at the most', (t) => {
  const { hear, taken } = setUp(t)
  for (let n = 0; n < 3; n++) hear(1, { channel: 'mem\u001b[2Jored', cmd: 'read', key: 'x' })
  const [{ message, type }, ...more] = taken()
  assert.deepEqual([type, message, more], ['worker.unanswered',
    'the app sends "memored" to a primary of its own, which does not run under clusterdeck: nobody answers it or passes it on',
    []])
  for (let n = 0; n < 100; n++) hear(1, { topic: `${n}${'x'.repeat(100)}` })
  assert.deepEqual(taken().map(({ detail }) => String(detail.name).length), [60, 60, 60, 60])
})

test('a message to a primary that is wrapped is told by the name within', (t) => {
  const { hear, taken } = setUp(t)
  hear(1, { __meta__: { eventName: 'multiply', workerid: 1, id: 'a' }, data: { x: 2 } })
  hear(1, { id: null, cache: { cmd: 'get', key: 'k' } })
  hear(1, [{ cmd: 'in a list' }])
  assert.deepEqual(taken().map(({ type, detail }) => [type, detail]), [['worker.unanswered', { library: null,
    name: 'multiply' }], ['worker.unanswered', { library: null, name: 'get' }]])
})

test('of each worker ten are told in a second, and the others in one event once a second without has passed', (t) => {
  const { say, second, taken } = setUp(t)
  say(1, 5000)
  say(2, 10)
  assert.deepEqual(taken().map(({ worker }) => worker), Array(10).fill(1).concat(Array(10).fill(2)))
  second()
  say(1, 12)
  assert.equal(taken().length, 10)
  second()
  assert.deepEqual(taken(), [])
  second()
  assert.deepEqual(taken().map(({ worker, message, detail }) => [worker, message, detail]), [[1,
    '4,992 more messages were left out', { leftOut: 4992 }]])
  say(1, 11)
  second()
  second()
  assert.equal(taken().at(-1)?.message, '1 more message was left out')
  second()
  assert.deepEqual(taken(), [])
})

test('a flood without an end is told of once a minute', (t) => {
  const { say, second, taken } = setUp(t)
  for (let n = 0; n < 150; n++) {
    say(1, 11)
    second()
  }
  assert.deepEqual(taken().filter(({ detail }) => detail.leftOut).map(({ detail }) => detail.leftOut), [60, 60])
})

test('what a worker has left untold when it ends is told then, once', (t) => {
  const { say, left, second, taken } = setUp(t)
  say(1, 12)
  taken()
  left(1)
  left(2)
  second()
  second()
  assert.deepEqual(taken().map(({ slot, detail }) => [slot, detail]), [[11, { leftOut: 2 }]])
})

test('what is short is kept as it is', () => {
  for (const value of [null, true, 1.5, '', 'text', [], {}, [1, [2, { a: null, b: ['é'] }]],
    JSON.parse('{"__proto__": {"toString": 1}}')])
  {
    assert.deepEqual(excerpt(value), value)
  }
})

test('what is long is cut wherever it is so, and says so', () => {
  assert.deepEqual(excerpt('x'.repeat(1e6)), `${'x'.repeat(2000)}…`)
  const { first, text, ...others } = Object(excerpt({ first: 1, text: 'x'.repeat(1e6), last: 2 }))
  assert.deepEqual([first, others], [1, { '…': '…' }])
  assert.match(text, /^x{1900,2000}…$/)
  for (const value of [Array(1e6).fill(7), Object.fromEntries(Array(1e5).fill(0).map((_, n) => [`key ${n}`, n])),
    Array(1000).fill('x'.repeat(1000)), { ['k'.repeat(1e6)]: 1 }])
  {
    const text = JSON.stringify(excerpt(value))
    assert.ok(text.length < 4000, `${text.length} characters`)
    assert.match(text, /…/)
  }
})

test('what is deep ends, however deep it is', () => {
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
  assert.equal(JSON.stringify(excerpt(deep)), '[[[[[[[["…"]]]]]]]]')
})
