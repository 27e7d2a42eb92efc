import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawRequest, startAdmin, TOKEN } from '../support/admin.js'
import { runCliHere } from '../support/cli-here.js'
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

/** A command line for this admin port. @param {import('../support/admin.js').Admin} admin */
function cliOf ({ url }) {
  return (/** @type {string[]} */ ...words) => runCliHere(['webhooks', ...words, '--url', url, '--token', TOKEN])
}

test('the command line tests one webhook or all, and fails where one fails', async (t) => {
  const admin = await startAdmin(t)
  const cli = cliOf(admin)
  assert.match((await cli()).stdout, /^WEBHOOK {2}WAITING {2}URL .*\n {6}1 {8}0 {2}https:\/\/example\.com\/hook\?token=… .*\n.*\n\nno deliveries yet\n$/)
  const one = await cli('test', '2')
  assert.deepEqual([one.code, one.stderr], [0, ''])
  assert.match(one.stdout, /^webhook 2: webhook\.test delivered in \d+ ms \(204\)\n$/)
  assert.deepEqual(admin.deck.webhooks.list().map(({ deliveries }) => deliveries.length), [0, 1])

  admin.deck.webhooks.status = 404
  assert.deepEqual(await cli('test'), { code: 1, stdout: '', stderr: 'clusterdeck: webhook 1 failed: answered 404; webhook 2 failed: answered 404\n' })
  const { code, stdout } = await cli('test', '1', '--json')
  assert.deepEqual([code, JSON.parse(stdout).items.map((/** @type {any} */ { webhook, delivery }) => [webhook, delivery.state])], [1, [[1, 'failed']]])
  assert.match((await cli()).stdout, / {6}2 {9}2 {2}\S+Z {2}webhook\.test {2}failed {9}1 {5}404 .* answered 404\n/)
})

test('the command line sends a failed delivery again, and says so where it has not failed', async (t) => {
  const admin = await startAdmin(t)
  const cli = cliOf(admin)
  admin.deck.webhooks.status = 404
  await cli('test', '1')
  assert.equal((await cli('retry', '1', '1')).code, 1)
  admin.deck.webhooks.status = 204
  const { code, stdout } = await cli('retry', '1', '1', '--json')
  assert.deepEqual([code, JSON.parse(stdout).state, JSON.parse(stdout).attempt], [0, 'delivered', 3])
  const again = await cli('retry', '1', '1')
  assert.deepEqual([again.code, again.stdout], [4, ''])
  assert.match(again.stderr, /expected state failed, received delivered/)
  assert.equal((await cli('retry', '1', '2')).code, 1)
})

for (const words of ['tset', 'test 0', 'test 1 2', 'test x', 'retry', 'retry 1', 'retry 1 x', 'retry 1 2 3']) {
  test(`"webhooks ${words}" is a usage error, and sends nothing`, async (t) => {
    const admin = await startAdmin(t)
    assert.equal((await cliOf(admin)(...words.split(' '))).code, 2)
    assert.equal(admin.deck.events.lastId, 0)
  })
}

test('the forms of the page send to what is there alone, and say what they expected', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const before = admin.deck.events.lastId
  for (const [action, body, status, detail] of /** @type {[string, string, number, string][]} */ ([
    ['test-webhook', 'webhook=x', 422, 'webhook: expected the id of a webhook, received "x"'],
    ['test-webhook', 'webhook=3', 404, 'Webhook 3 does not exist: expected 1 or 2'],
    ['retry-delivery', 'webhook=1', 422, 'delivery: expected the id of a delivery, received "undefined"'],
    ['retry-delivery', 'webhook=1&delivery=1', 404, 'Webhook 1 has no delivery 1, or it is no longer kept']
  ])) {
    const answer = await rawRequest(admin, { method: 'POST', path: `/actions/${action}`, headers: { Cookie, 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Length': String(body.length) }, body })
    assert.deepEqual([answer.status, answer.json().detail], [status, detail])
  }
  assert.equal(admin.deck.events.lastId, before)
})
