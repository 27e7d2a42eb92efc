import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import { describe, test } from 'node:test'
import { createEventStream } from '../../../server/events/stream.js'
import { createWebhooks } from '../../../server/webhooks/webhooks.js'

const SECRET = 'whsec_' + Buffer.from('the secret of this test').toString('base64')

/**
 * A real receiver that answers as it is told, and a notifier that talks to it.
 * @param {import('node:test').TestContext} t
 * @param {{ answers?: (number | 'hang' | 'cut')[], target?: any, options?: any }} [how] `answers`: in turn; then 204
 */
async function setUp (t, { answers = [], target = {}, options = {} } = {}) {
  const arrivals = new EventEmitter()
  /** @type {{ url: string, headers: http.IncomingHttpHeaders, body: string }[]} */
  const received = []
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
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const events = createEventStream()
  /** @type {any[]} */
  const published = []
  events.subscribe((event) => published.push(event))
  /** @type {any[]} */
  const logged = []
  const notifier = createWebhooks({
    targets: [{ url: `http://127.0.0.1:${port}/hook?token=hidden-in-the-address`, events: ['worker.*'], secret: SECRET, ...target }],
    events,
    deck: { app: '/srv/app.js', pid: 1, version: '0.1.0' },
    log: { warn: (...args) => logged.push(args) }
  }, { firstDelayMs: 5, patienceMs: 150, random: () => 0.5, ...options })
  t.after(async () => {
    await notifier.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    events,
    notifier,
    received,
    published,
    logged,
    /** @param {number} count */
    async until (count) { while (received.length < count) await once(arrivals, 'request') },
    /** @param {string} type */
    async untilPublished (type) { while (!published.some((event) => event.type === type)) await new Promise((resolve) => setImmediate(resolve)) }
  }
}

describe('webhooks', () => {
  test('carry the event and who sends it, signed over id, time and body', async (t) => {
    const hook = await setUp(t)
    hook.events.publish({ type: 'worker.unresponsive', slot: 1, worker: 3, cause: 'hung', message: 'stuck' })
    await hook.until(1)
    const [{ headers, body }] = hook.received
    const { event, deck } = JSON.parse(body)
    assert.deepEqual([event.type, event.id, event.slot, event.worker, event.cause], ['worker.unresponsive', 1, 1, 3, 'hung'])
    assert.deepEqual([deck.app, typeof deck.host], ['/srv/app.js', 'string'])
    assert.ok(Math.abs(Number(headers['webhook-timestamp']) - Date.now() / 1000) < 5)
    const signed = createHmac('sha256', 'the secret of this test').update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64')
    assert.equal(headers['webhook-signature'], `v1,${signed}`)
    assert.equal(headers['content-type'], 'application/json')
  })

  for (const [patterns, told] of /** @type {[string[] | undefined, string[]][]} */ ([
    [['worker.*'], ['worker.exited', 'worker.crash-looping']],
    [['worker.exited:hung'], []],
    [['worker.exited:crash', 'rollout.failed'], ['worker.exited', 'rollout.failed']],
    [['*'], ['worker.exited', 'worker.crash-looping', 'rollout.failed', 'master.stopped', 'scale.changed']],
    [undefined, ['worker.crash-looping', 'rollout.failed', 'master.stopped']]
  ])) {
    test(`${patterns ?? 'by default'}: ${told.join(', ') || 'nothing'} of what happens is told, in order`, async (t) => {
      const hook = await setUp(t, { target: { events: patterns } })
      for (const event of [{ type: 'worker.exited', cause: 'crash' }, { type: 'worker.crash-looping' }, { type: 'rollout.failed', cause: 'deploy' }, { type: 'master.stopped', cause: 'master-lost' }, { type: 'scale.changed' }]) hook.events.publish(event)
      await hook.notifier.close()
      assert.deepEqual(hook.received.map(({ body }) => JSON.parse(body).event.type), told)
    })
  }

  test('are tried again, with the same id, after errors of the server, timeouts and broken connections', async (t) => {
    const hook = await setUp(t, { answers: [500, 'hang', 'cut', 429, 408, 200] })
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
      await hook.untilPublished('notify.failed')
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
    assert.deepEqual(hook.published.filter(({ type }) => type === 'notify.failed').length, 1)
    assert.equal(hook.logged.length, 2)
    assert.doesNotMatch(JSON.stringify([hook.published, hook.logged]), /whsec_|hidden-in-the-address|the secret/)
    assert.doesNotMatch(hook.received.map(({ body }) => body).join(), /whsec_|hidden-in-the-address/)
  })

  test('drop the oldest that waits when there are too many', async (t) => {
    const hook = await setUp(t, { answers: ['hang'], options: { maxQueued: 3 } })
    for (let slot = 1; slot <= 5; slot++) hook.events.publish({ type: 'worker.exited', slot })
    await hook.until(4)
    await hook.notifier.close()
    assert.deepEqual(hook.received.map(({ body }) => JSON.parse(body).event.slot), [1, 1, 4, 5])
    assert.match(hook.published.find(({ type }) => type === 'notify.failed').message, /dropped, 3 others wait/)
  })

  test('wait for nobody at the end but for a last try', async (t) => {
    const hook = await setUp(t, { answers: Array(50).fill(500), options: { firstDelayMs: 60_000 } })
    hook.events.publish({ type: 'worker.exited' })
    await hook.until(1)
    await hook.notifier.close()
    assert.ok(hook.received.length <= 2)
  })
})
