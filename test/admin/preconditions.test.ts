import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startAdmin } from '../support/admin.ts'

async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  const { headers } = await admin.tokenFor('bob', 'admin')
  return {
    admin,
    send: admin.post,
    /** As bob does, by the API. */
    asBob: <M extends 'post' | 'put' | 'patch', P extends string>(method: M, path: P) =>
      admin.stranger()[method](`/api/v1${path}`).set(headers)
  }
}

test('a form that has shown no state does what it says, whatever has changed meanwhile', async (t) => {
  const { admin, asBob, send } = await setUp(t)
  await asBob('put', '/scale').send({ workers: 6 }).expect(200)
  assert.equal((await send('setScale', { workers: '4' })).status, 204)
  assert.equal(admin.deck.snapshot().desiredWorkers, 4)
})

test('a deploy or a restart that was opened before another rollout began says whose that is', async (t) => {
  const { admin, asBob, send } = await setUp(t)
  await asBob('post', '/rollouts').send({ kind: 'deploy' }).expect(202)
  const [id, count] = [admin.deck.snapshot().rollout?.id, admin.deck.dispatched.length]
  const why = `bob has started a deploy (rollout ${id}) since you opened this`
  for (const kind of ['deploy', 'restart']) {
    const refused = await send('startRollout', { kind, seen: '0' })
    assert.deepEqual([refused.status, refused.json().code, refused.json().detail], [409, 'rollout-running', why],
      'nobody can overrule it')
  }
  const { rollout } = admin.deck.snapshot()
  admin.deck.set({ rollout: null })
  admin.deck.events.publish({ type: 'rollout.succeeded', rollout: id,
    detail: { ...rollout, state: 'succeeded', done: true, finishedAt: '2026-01-01T00:00:01.000Z' } })
  const refused = await send('startRollout', { kind: 'restart', seen: '0' })
  assert.deepEqual([refused.status, refused.json().change, refused.json().now], [412, why, String(id)])
  assert.equal(admin.deck.dispatched.length, count)
  admin.history.rollouts = () => {
    throw new Error('the disk is full')
  }
  assert.equal((await send('startRollout', { kind: 'restart', seen: '0' })).status, 204, 'while the history is away')
})

test('a setting that somebody has changed meanwhile is not set over theirs, and another one is no reason to ask', async (t) => {
  const { admin, asBob, send } = await setUp(t)
  const tag = admin.deck.settings.digest()
  const valueOf = (option: string) => String(admin.deck.settings.list().find(({ name }) => name === option)?.value)
  const seen = valueOf('drain.deadlineMs')
  await asBob('patch', '/config').set('if-match', `"${tag}"`).send({ 'drain.deadlineMs': 20_000 }).expect(200)
  const order = { name: 'drain.deadlineMs', value: '30000', seen: `drain.deadlineMs=${seen}` }
  const refused = await send('changeConfig', order)
  assert.deepEqual([refused.status, refused.json().change, refused.json().now], [412,
    'bob has set it to 20000 since you opened this', 'drain.deadlineMs=20000'])
  assert.equal((await send('changeConfig', { ...order, seen: 'drain.deadlineMs=20000' })).status, 204)
  assert.equal(
    (await send('changeConfig', { name: 'rollout.surge', value: '2',
      seen: `rollout.surge=${valueOf('rollout.surge')}` })).status,
    204
  )
})

test('a call of the API is refused in the same words, by the ETag of what it has read', async (t) => {
  const { admin, asBob } = await setUp(t)
  const { headers: { etag } } = await admin.api('get', '/api/v1/rollouts').expect(200)
  await asBob('post', '/rollouts').send({ kind: 'restart' }).expect(202)
  const { body } = await admin.api('post', '/api/v1/rollouts').set('if-match', etag).send({ kind: 'restart' }).expect(
    409
  )
  assert.equal(body.detail, 'bob has started a restart (rollout 1) since you opened this')
})
