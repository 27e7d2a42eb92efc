import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.js'
import { until } from '../support/until.js'

test('webhooks are listed without what is secret in their addresses', async (t) => {
  const { api } = await startAdmin(t)
  const { body, text } = await api('get', '/api/v1/webhooks').expect(200)
  assert.deepEqual(body.items.map((/** @type {any} */ { id, url }) => [id, url]), [[1, 'https://example.com/hook?token=…'], [2, 'https://example.com/…/…']])
  assert.doesNotMatch(text, /known to the receiver|hidden|T0A/)
})

test('a test and a retry answer with their delivery, and name who has asked in the history', async (t) => {
  const { api, deck } = await startAdmin(t)
  deck.webhooks.status = 410
  const { body: tested } = await api('post', '/api/v1/webhooks/2/test').expect(202)
  assert.deepEqual([tested.id, tested.event.type, tested.state], [1, 'webhook.test', 'pending'])
  await until(() => deck.webhooks.list()[1].deliveries[0].state === 'failed', 'the failure')
  assert.deepEqual((await api('get', '/api/v1/webhooks')).body.items[0].deliveries, [])

  deck.webhooks.status = 200
  const { body: retried } = await api('post', '/api/v1/webhooks/2/deliveries/1/retry').expect(202)
  assert.deepEqual([retried.id, retried.state, retried.error], [1, 'pending', 'answered 410'])
  await until(() => deck.webhooks.list()[1].deliveries[0].state === 'delivered', 'the delivery')
  const { body: problem } = await api('post', '/api/v1/webhooks/2/deliveries/1/retry').expect(409)
  assert.equal(problem.code, 'delivery-not-failed')
  const { body: { items } } = await api('get', '/api/v1/events?type=webhook.*')
  assert.deepEqual(items.map((/** @type {any} */ { type, actor }) => [type, actor]), [['webhook.retried', 'api'], ['webhook.test', 'api']])
})

for (const [path, status] of /** @type {[string, number][]} */ ([
  ['/webhooks/3/test', 404], ['/webhooks/0/test', 400], ['/webhooks/__proto__/test', 400], ['/webhooks/1/deliveries/1/retry', 404], ['/webhooks/1/deliveries/-1/retry', 400], ['/webhooks/3/deliveries/1/retry', 404]
])) {
  test(`POST ${path} is refused with ${status}, and sends nothing`, async (t) => {
    const { api, deck } = await startAdmin(t)
    await api('post', `/api/v1${path}`).expect(status)
    assert.deepEqual(deck.webhooks.list().flatMap(({ deliveries }) => deliveries), [])
    assert.equal(deck.events.lastId, 0)
  })
}

test('nothing but a test can be sent: a body is refused', async (t) => {
  const { api, deck } = await startAdmin(t)
  await api('post', '/api/v1/webhooks/1/test').send({ url: 'http://127.0.0.1:1', type: 'rollout.failed' }).expect(422)
  assert.equal(deck.events.lastId, 0)
})
