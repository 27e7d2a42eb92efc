import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import { describe, test, type TestContext } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { matchesPattern } from '../../../server/events/pattern.ts'
import { createAlerts } from '../../../server/alerts/alerts.ts'
import { until } from '../../support/until.ts'
import { shownUrl, type Delivery } from '../../../server/alerts/alert.ts'
import type { AddressInfo } from 'node:net'
import type { AlertRows } from '../../../db/alerts.ts'
import type { Alert } from '../../../server/config/alert.ts'
import type { SeenEvent } from '../../support/event-log.ts'

const SECRET = 'whsec_' + Buffer.from('the secret of this test').toString('base64')

/** Those that were added, as the database keeps them. */
function openStore (t: TestContext) {
  const history = openHistory({ file: ':memory:' })
  t.after(() => history.close())
  return history.alerts
}

/**
 * A real receiver that answers as it is told, and a notifier that talks to it.
 * @param how `answers`: in turn; then 204; `others`: targets besides
 */
async function setUp (t: TestContext,
  { answers = [], target = {}, others = [], options = {}, store }: { answers?: (number | 'hang' | 'cut')[],
    target?: Partial<Alert>, others?: Partial<Alert>[], options?: Parameters<typeof createAlerts>[1],
    store?: AlertRows } = {})
{
  const arrivals = new EventEmitter()
  const received: { url: string, headers: http.IncomingHttpHeaders, body: string }[] = []
  const server = http.createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    received.push({ url: String(request.url), headers: request.headers, body })
    const answer = answers.shift() ?? 204
    if (answer === 'cut') request.socket.destroy()
    else if (answer !== 'hang') response.writeHead(answer, answer === 302 ? { location: '/elsewhere' } : {}).end()
    arrivals.emit('request')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const events = createEventStream()
  const published: SeenEvent[] = []
  events.subscribe((event) => published.push(event as SeenEvent))
  const logged: unknown[][] = []
  const targets = [target, ...others].map((one): Alert => ({ kind: 'webhook',
    url: `http://127.0.0.1:${port}/hook?token=hidden-in-the-address`, events: ['worker.*'], secret: SECRET, ...one })
  )
  const notifier = createAlerts({ configured: targets, store: store ?? openStore(t), events,
    deck: () => ({ host: 'web-1', app: 'shop', url: 'https://deck.example.com', entry: '/srv/app.js', pid: 1,
      version: '0.1.0' }), log: { warn: (...args) => logged.push(args) } }, { firstDelayMs: 5, patienceMs: 40_000,
    random: () => 0.5, ...options })
  t.after(async () => {
    await notifier.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    events,
    targets,
    notifier,
    received,
    published,
    logged,
    async until (count: number) {
      while (received.length < count) await once(arrivals, 'request')
    },
    /** `isMeant`: the newest of the first target */
    async untilDelivery (isMeant: (delivery: Delivery) => boolean) {
      const newest = () => notifier.list()[0].deliveries[0]
      await until(() => notifier.list()[0].deliveries.length > 0 && isMeant(newest()), 'the delivery')
      return newest()
    },
    async untilPublished (type: string) {
      while (!published.some((event) => event.type === type)) await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

test('a star stands for any text, and many of them are no more work', () => {
  const table = { 'worker.*': ['worker.exited', 'worker.', '!worker', '!a worker.exited'],
    'worker.exited:*': ['worker.exited:hung', '!worker.exited'], '*.failed': ['rollout.failed', '!rollout.failed:x'],
    'a*a': ['aa', 'aba', '!a'], '*b*b': ['bb', 'abab', '!ab'], '*': ['', 'x'], x: ['x', '!xx'], 'a.c': ['a.c', '!abc'] }
  for (const [pattern, texts] of Object.entries(table)) {
    for (const text of texts)
      assert.equal(matchesPattern(pattern, text.replace('!', '')), !text.startsWith('!'), `${pattern} ${text}`)
  }
  assert.equal(matchesPattern(`${'*a'.repeat(5000)}*b`, 'a'.repeat(10_000)), false)
})

describe('alerts', () => {
  test('carry the event and who sends it, signed over id, time and body', async (t) => {
    const hook = await setUp(t)
    hook.events.publish({ type: 'worker.unresponsive', slot: 1, worker: 3, cause: 'hung', message: 'stuck' })
    await hook.until(1)
    const [{ headers, body }] = hook.received
    const { event, deck } = JSON.parse(body)
    assert.deepEqual([event.type, event.id, event.slot, event.worker, event.cause], ['worker.unresponsive', 1, 1, 3,
      'hung'])
    assert.deepEqual([deck.app, typeof deck.host], ['/srv/app.js', 'string'])
    assert.ok(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000) < 5)
    const signed = createHmac('sha256', 'the secret of this test').update(
      `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    ).digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${signed}`)
    assert.equal(headers['content-type'], 'application/json')
  })

  for (const [patterns, told] of [[['worker.*'], ['worker.exited', 'worker.crash-looping']], [['worker.exited:hung'],
    []], [['worker.exited:crash', 'rollout.failed'], ['worker.exited', 'rollout.failed']], [['*'], ['worker.exited',
    'worker.crash-looping', 'rollout.failed', 'master.stopped', 'scale.changed']], [undefined, ['worker.crash-looping',
    'rollout.failed', 'master.stopped']]] as [string[] | undefined, string[]][])
  {
    test(`${patterns ?? 'by default'}: ${told.join(', ') || 'nothing'} of what happens is told, in order, and nothing that another host tells`, async (t) => {
      const hook = await setUp(t, { target: { events: patterns } })
      for (const event of [{ type: 'worker.exited', cause: 'crash' }, { type: 'worker.crash-looping' }, {
        type: 'rollout.failed',
        cause: 'deploy'
      }, { type: 'master.stopped', cause: 'master-lost' }, { type: 'scale.changed' }, { type: 'fleet.host-silent',
        detail: { isReporter: false } }]) hook.events.publish(event)
      await hook.notifier.close()
      assert.deepEqual(hook.received.map(({ body }) => JSON.parse(body).event.type), told)
    })
  }

  test('are tried again, with the same id, after errors of the server, timeouts and broken connections', async (t) => {
    const hook = await setUp(t, { answers: [500, 'hang', 'cut', 429, 408, 200], options: { patienceMs: 1000 } })
    hook.events.publish({ type: 'worker.exited' })
    await hook.until(6)
    assert.equal(new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size, 1)
    await hook.notifier.close()
    assert.equal(hook.received.length, 6)
    assert.equal(hook.published.length, 1, 'no failure is told')
  })

  for (const status of [400, 401, 404, 410, 302]) {
    test(`are given up at ${status}, and nothing is asked anywhere else`, async (t) => {
      const hook = await setUp(t, { answers: [status] })
      hook.events.publish({ type: 'worker.exited' })
      await hook.untilPublished('alert.failed')
      assert.equal(hook.received.length, 1)
      assert.match(hook.published[1].message, new RegExp(`answered ${status}, given up after 1 try`))
    })
  }

  test('end after some tries, are told of once, and never show secret or address', async (t) => {
    const hook = await setUp(t, { answers: Array(16).fill(503), options: { firstDelayMs: 1 } })
    hook.events.publish({ type: 'worker.exited' })
    hook.events.publish({ type: 'worker.exited' })
    await hook.until(16)
    await hook.notifier.close()
    assert.equal(hook.received.length, 16)
    assert.deepEqual(hook.published.filter(({ type }) => type === 'alert.failed').length, 1)
    assert.equal(hook.logged.length, 2)
    assert.doesNotMatch(JSON.stringify([hook.notifier.list(), hook.published, hook.logged]),
      /whsec_|hidden-in-the-address|the secret/)
    assert.doesNotMatch(hook.received.map(({ body }) => body).join(), /whsec_|hidden-in-the-address/)
  })

  test('drop the oldest that waits when there are too many', async (t) => {
    const hook = await setUp(t, { answers: ['hang'], options: { maxQueued: 3, patienceMs: 1000 } })
    for (let slot = 1; slot <= 5; slot++) hook.events.publish({ type: 'worker.exited', slot })
    const slots = () => hook.received.map(({ body }) => JSON.parse(body).event.slot)
    await until(() => slots().includes(5), 'the newest')
    await hook.notifier.close()
    // On a busy machine an answer may come too late, and what it answers comes again.
    assert.deepEqual([slots().slice(0, 2), [...new Set(slots())]], [[1, 1], [1, 4, 5]])
    assert.match(hook.published.find(({ type }) => type === 'alert.failed')!.message, /dropped, 3 others wait/)
  })

  test('that are set anew tell the new address from then on; what waits for the old one is tried, and one that stays loses nothing', async (t) => {
    const [old, fresh] = [await setUp(t, { answers: [500, 204] }), await setUp(t)]
    old.events.publish({ type: 'worker.ready', slot: 1 })
    await old.until(1)
    old.notifier.configure([...old.targets, ...fresh.targets])
    old.events.publish({ type: 'worker.ready', slot: 2 })
    await Promise.all([old.until(3), fresh.until(1)])
    old.notifier.configure(fresh.targets)
    old.events.publish({ type: 'worker.ready', slot: 3 })
    await fresh.until(2)
    await old.notifier.close()
    const slots = (received: { body: string }[]) => received.map(({ body }) => JSON.parse(body).event.slot)
    assert.deepEqual([slots(old.received), slots(fresh.received)], [[1, 1, 2], [2, 3]])
  })

  test('wait for nobody at the end but for a last try', async (t) => {
    const hook = await setUp(t, { answers: Array(50).fill(500), options: { firstDelayMs: 60_000 } })
    hook.events.publish({ type: 'worker.exited' })
    await hook.until(1)
    await hook.notifier.close()
    assert.ok(hook.received.length <= 2)
  })
})

describe('deliveries of alerts', () => {
  test('tell of each try, of its answer, and of when the next one comes', async (t) => {
    const hook = await setUp(t, { answers: [503], options: { firstDelayMs: 60_000 } })
    assert.deepEqual(hook.notifier.list()[0].deliveries, [])
    hook.events.publish({ type: 'worker.exited' })
    hook.events.publish({ type: 'worker.exited' })
    const { at, durationMs, nextAttemptAt, ...tried } = await hook.untilDelivery(({ error }) => error !== null)
    assert.deepEqual(tried, { id: 1, event: { id: 1, type: 'worker.exited' }, attempt: 1, state: 'pending', status: 503,
      error: 'answered 503' })
    assert.ok(Number(durationMs) >= 0)
    assert.ok(Math.abs(Date.parse(String(nextAttemptAt)) - Date.parse(at) - 60_000) < 5000)
    assert.equal(hook.notifier.list()[0].waiting, 2)
    await hook.notifier.close()
    const [{ waiting, deliveries: [second, first] }] = hook.notifier.list()
    assert.deepEqual([waiting, second.event.id, second.attempt], [0, 2, 1])
    assert.deepEqual([first.state, first.attempt, first.status, first.error, first.nextAttemptAt], ['delivered', 2, 204,
      null, null])
  })

  test('are kept 20 of each target, newest first', async (t) => {
    const hook = await setUp(t, { others: [{ events: ['master.*'] }] })
    for (let slot = 1; slot <= 25; slot++) hook.events.publish({ type: 'worker.exited', slot })
    await hook.untilDelivery(({ id, state }) => id === 25 && state === 'delivered')
    const [first, second] = hook.notifier.list()
    assert.deepEqual(first.deliveries.map(({ id }) => id), Array.from({ length: 20 }, (_, index) => 25 - index))
    assert.deepEqual([second.id, second.events, second.deliveries], ['file-2', ['master.*'], []])
  })

  test('of what was dropped say why', async (t) => {
    const hook = await setUp(t, { answers: ['hang'], options: { maxQueued: 1 } })
    hook.events.publish({ type: 'worker.exited' })
    hook.events.publish({ type: 'worker.exited' })
    const { state, attempt, error } = await hook.untilDelivery(({ id }) => id === 2)
    assert.deepEqual([state, attempt, error], ['failed', 0, 'dropped, 1 others wait'])
  })

  test('are forgotten oldest first, but never one that is under way', async (t) => {
    const hook = await setUp(t, { answers: ['hang', ...Array(25).fill(404)] })
    hook.events.publish({ type: 'worker.exited' })
    await hook.until(1)
    for (let n = 2; n <= 25; n++) {
      hook.notifier.test({ id: 'file-1', actor: 'cli' })
      await hook.untilDelivery(({ id, state }) => id === n && state === 'failed')
    }
    const ids = hook.notifier.list()[0].deliveries.map(({ id }) => id)
    assert.deepEqual([ids.length, ids.at(-1), ids.at(-2)], [20, 1, 7])
    assert.throws(() => hook.notifier.retry({ id: 'file-1', delivery: 2, actor: 'cli' }), { code: 'not-found' })
  })
})

describe('a test of an alert', () => {
  test('goes to one target alone, whatever that wants, and says who has sent it', async (t) => {
    const hook = await setUp(t, { others: [{ events: ['*'] }] })
    const delivery = hook.notifier.test({ id: 'file-1', actor: 'cli' })
    assert.deepEqual([delivery.id, delivery.event, delivery.state], [1, { id: 1, type: 'alert.tested' }, 'pending'])
    await hook.untilDelivery(({ state }) => state === 'delivered')
    await hook.notifier.close()
    assert.equal(hook.received.length, 1)
    assert.deepEqual(JSON.parse(hook.received[0].body).event, hook.published[0])
    assert.deepEqual([hook.published.length, hook.published[0].actor, hook.published[0].detail], [1, 'cli', {
      alert: 'file-1',
      kind: 'webhook'
    }])
  })

  test('is tried once, beside what waits for a target that fails', async (t) => {
    const hook = await setUp(t, { answers: [503, 503], options: { firstDelayMs: 60_000 } })
    hook.events.publish({ type: 'worker.exited' })
    await hook.untilDelivery(({ error }) => error !== null)
    hook.notifier.test({ id: 'file-1', actor: 'cli' })
    const { attempt, error, nextAttemptAt } = await hook.untilDelivery(({ id, state }) =>
      id === 2 && state === 'failed'
    )
    assert.deepEqual([attempt, error, nextAttemptAt], [1, 'answered 503', null])
    assert.equal(hook.notifier.list()[0].deliveries[1].state, 'pending')
  })

  test('takes the place of no event, however many are sent', async (t) => {
    const hook = await setUp(t, { answers: ['hang', 'hang'], options: { patienceMs: 300, maxTries: 1 } })
    for (let slot = 1; slot <= 3; slot++) hook.events.publish({ type: 'worker.exited', slot })
    for (let n = 1; n <= 13; n++) hook.notifier.test({ id: 'file-1', actor: 'cli' })
    const dropped = hook.notifier.list()[0].deliveries.filter(({ error }) =>
      /dropped, 10 others wait/.test(String(error))
    )
    assert.equal(dropped.length, 3)
    await hook.notifier.close()
    const slots = hook.received.map(({ body }) => JSON.parse(body).event).filter(({ type }) => type === 'worker.exited')
      .map(({ slot }) => slot)
    assert.deepEqual(slots, [1, 2, 3])
  })

  test('is refused for an alert that is not there, and by a master that ends; then no event says otherwise', async (t) => {
    const hook = await setUp(t)
    assert.throws(() => hook.notifier.test({ id: 'file-2', actor: 'cli' }), { code: 'not-found',
      message: 'Alert file-2 does not exist: expected file-1' })
    await hook.notifier.close()
    assert.throws(() => hook.notifier.test({ id: 'file-1', actor: 'cli' }), { code: 'stopping' })
    assert.deepEqual(hook.published, [])
  })
})

describe('a retry', () => {
  test('sends the same message again, and is refused where nothing has failed', async (t) => {
    const hook = await setUp(t, { answers: [404, 404] })
    hook.events.publish({ type: 'worker.exited' })
    await hook.untilDelivery(({ state }) => state === 'failed')
    for (const state of ['failed', 'delivered']) {
      const delivery = hook.notifier.retry({ id: 'file-1', delivery: 1, actor: 'cli' })
      assert.deepEqual([delivery.id, delivery.state], [1, 'pending'])
      assert.throws(() => hook.notifier.retry({ id: 'file-1', delivery: 1, actor: 'cli' }), {
        code: 'delivery-not-failed',
        message: /expected state failed, received pending/
      })
      await hook.untilDelivery((newest) => newest.state === state)
    }
    assert.throws(() => hook.notifier.retry({ id: 'file-1', delivery: 1, actor: 'cli' }), {
      code: 'delivery-not-failed'
    })
    assert.throws(() => hook.notifier.retry({ id: 'file-1', delivery: 2, actor: 'cli' }), { code: 'not-found' })
    assert.equal(hook.received.length, 3)
    assert.equal(new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size, 1)
    assert.equal(new Set(hook.received.map(({ body }) => body)).size, 1)
    assert.equal(hook.notifier.list()[0].deliveries[0].attempt, 3)
    const told = hook.published.filter(({ type }) => type === 'alert.retried')
    assert.deepEqual(told.map(({ actor, detail }) => [actor, detail]),
      Array(2).fill(['cli', { alert: 'file-1', kind: 'webhook', delivery: 1 }]))
  })
})

for (const [url, shown] of [['https://example.com/hook', 'https://example.com/hook'], ['http://10.0.0.1:8080/',
  'http://10.0.0.1:8080/'], ['https://admin:pass@example.com/hook', 'https://…@example.com/hook'], [
  'https://example.com/hook?token=abc&room_id=7#part',
  'https://example.com/hook?token=…&room_id=…#…'
], ['https://example.com/hook?abcdef', 'https://example.com/hook?…'], ['https://example.com/hook?token=abc=def&=ghi',
  'https://example.com/hook?token=…&…'], ['https://hooks.slack.com/services/T0A/B0B/f4cAbc',
  'https://hooks.slack.com/services/…/…/…'], ['https://discord.com/api/v2/alerts/1234/a-b_c',
  'https://discord.com/api/v2/alerts/…/…']])
{
  test(`${url} is shown as ${shown}`, () => assert.equal(shownUrl(url), shown))
}

test('a stored alert that cannot be used stops neither the app nor the other alerts, and its address is in no log', async (t) => {
  const store = openStore(t)
  for (const settings of [{ kind: 'sentry', dsn: 'https://secret@example.com:99999/1' }, { kind: 'webhook',
    url: 'https://example.com/hook' }]) store.add({ settings, createdAt: 0, createdBy: 'ada' })
  const { notifier, logged } = await setUp(t, { store })
  assert.deepEqual(notifier.list().map(({ id }) => id), ['2', 'file-1'])
  assert.deepEqual(logged, [[{ reason: 'ERR_INVALID_URL' }, 'alerts could not be read from the database']])
})

test('alerts that were added are there for the next master, with what was changed; one that is paused is told nothing', async (t) => {
  const store = openStore(t)
  const first = await setUp(t, { store })
  const [{ url }] = first.targets
  first.notifier.add({ wanted: { kind: 'slack', url, events: ['job.*'] }, actor: 'ada' })
  first.notifier.add({ wanted: { kind: 'webhook', url, events: ['job.*'] }, actor: 'ada' })
  first.notifier.change({ id: '2', changes: { isPaused: true, name: 'night' }, actor: 'ada' })
  await first.notifier.close()

  const { notifier, events } = await setUp(t, { store })
  assert.deepEqual(notifier.list().map(({ id, name, isPaused, createdBy }) => [id, name, isPaused, createdBy]), [['1',
    null, false, 'ada'], ['2', 'night', true, 'ada'], ['file-1', null, false, null]])
  events.publish({ type: 'job.failed', message: 'nightly' })
  await until(() => notifier.list()[0].deliveries[0]?.state === 'delivered', 'the message')
  await first.until(1)
  assert.equal(JSON.parse(first.received[0].body).attachments[0].blocks[0].text.text, 'shop: Job failed')
  assert.deepEqual(notifier.list()[1].deliveries, [])
})
