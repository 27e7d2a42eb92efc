import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.ts'

test('a message goes to all workers or to one, with whoever has sent it', async (t) => {
  const admin = await startAdmin(t)
  assert.deepEqual((await admin.api('post', '/api/v1/messages').send({ type: 'reload', data: null }).expect(202)).body,
    { workers: [1, 2] })
  assert.deepEqual(
    (await admin.api('post', '/api/v1/messages').set('X-Clusterdeck-Client', 'cli').send({ worker: 2,
      type: 'prüfe <b>' }).expect(202)).body,
    { workers: [2] }
  )
  assert.equal(
    (await admin.api('post', '/api/v1/messages').send({ worker: 9, type: 'reload' }).expect(404)).body.detail,
    'No worker 9 is alive'
  )
  assert.deepEqual(admin.deck.dispatched.map(({ order }) => order), [{ type: 'reload', data: null,
    actor: 'the owner\'s token' }, { type: 'prüfe <b>', worker: 2, actor: 'the owner\'s token' }])
})

test('a message without a type, with a reserved one, or with too much to say is refused', async (t) => {
  const admin = await startAdmin(t)
  for (const type of [undefined, 7, '', 'x'.repeat(101), 'a\nb', 'a\u007f', 'a\u2028b', 'shutdown', 'NODE_CLUSTER']) {
    const { body } = await admin.api('post', '/api/v1/messages').send({ type }).expect(422)
    assert.match(body.detail, /^type: expected 1 to 100 characters .* shutdown, NODE_…, received /)
  }
  assert.match(
    (await admin.api('post', '/api/v1/messages').send({ type: 'a', from: 'master' }).expect(422)).body.detail,
    /^from: expected one of type, data/
  )
  await admin.api('post', '/api/v1/messages').send({ type: 'a', data: 'x'.repeat(65_536) }).expect(413)
  const deep = `{"type": "a", "data": ${'['.repeat(30_000)}${']'.repeat(30_000)}}`
  await admin.api('post', '/api/v1/messages').set('Content-Type', 'application/json').send(deep).expect(({ status }) =>
    assert.ok([202, 422].includes(status), String(status))
  )
  for (const type of ['shutdowns', ' shutdown', 'NODE', 'x'.repeat(100)])
    await admin.api('post', '/api/v1/messages').send({ type }).expect(202)
})
