import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { rawRequest, startAdmin } from '../support/admin.ts'
import { createFakeFleet } from '../support/fake-fleet.ts'

async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  const { body: { token } } = await admin.api('post', '/api/v1/tokens').send({ name: 'bob', role: 'admin' }).expect(201)
  const headers = { Cookie: await admin.signIn(), Accept: 'application/problem+json',
    'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Site': 'same-origin' }
  return {
    admin,
    /** As bob does, by the API. */
    asBob: <M extends 'post' | 'put' | 'patch', P extends string>(method: M, path: P) =>
      admin.stranger()[method](`/api/v1${path}`).set('authorization', `Bearer ${token}`),
    /** `fields`: what a dialog sends */
    send: (name: string, fields: Record<string, string>) =>
      rawRequest(admin, { method: 'POST', path: `/actions/${name}`, headers,
        body: String(new URLSearchParams(fields)) })
  }
}

test('a form that has shown what somebody else has changed meanwhile says who, does nothing, and does it once that is confirmed', async (t) => {
  const { admin, asBob, send } = await setUp(t)
  const { desiredWorkers } = admin.deck.snapshot()
  await asBob('put', '/scale').send({ workers: 6 }).expect(200)
  const refused = await send('setScale', { workers: '5', seen: String(desiredWorkers) })
  assert.deepEqual([refused.status, refused.json().change, refused.json().now], [412,
    'bob has set it to 6 workers since you opened this', '6'])
  assert.equal(admin.deck.snapshot().desiredWorkers, 6)
  assert.equal((await send('setScale', { workers: '5', seen: String(refused.json().now) })).status, 204)
  assert.equal(admin.deck.snapshot().desiredWorkers, 5)
  assert.equal((await send('setScale', { workers: '4' })).status, 204, 'a form that has shown nothing')
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
  const [scale, rollouts] = await Promise.all(
    ['/scale', '/rollouts'].map(async (path) =>
      String((await admin.api('get', `/api/v1${path}`).expect(200)).headers.etag)
    )
  )
  await asBob('put', '/scale').send({ workers: 6 }).expect(200)
  await asBob('post', '/rollouts').send({ kind: 'restart' }).expect(202)
  const late = await admin.api('put', '/api/v1/scale').set('if-match', scale).send({ workers: 3 }).expect(412)
  assert.equal(late.body.detail,
    `bob has set it to 6 workers since you opened this. If-Match: expected "6", received ${
      JSON.stringify(scale)
    }; read the current state first`)
  const second = await admin.api('post', '/api/v1/rollouts').set('if-match', rollouts).send({ kind: 'restart' }).expect(
    409
  )
  assert.equal(second.body.detail, 'bob has started a restart (rollout 1) since you opened this')
})

test('an alert is not changed over what somebody else has changed meanwhile', async (t) => {
  const { admin, asBob, send } = await setUp(t)
  const { body: alert, headers: { etag } } = await admin.api('get',
    `/api/v1/alerts/${
      (await asBob('post', '/alerts').send({ kind: 'slack', url: 'https://hooks.example.com/x' }).expect(201)).body.id
    }`).expect(200)
  const seen = admin.deck.alerts.digest(alert.id)
  assert.equal(etag, `"${seen}"`)
  await asBob('patch', `/alerts/${alert.id}`).set('if-match', etag).send({ name: 'ops' }).expect(200)
  const why = 'bob has changed this alert since you opened this'
  for (const name of ['changeAlert', 'deleteAlert']) {
    const refused = await send(name, { alert: alert.id, name: 'mine', seen })
    assert.deepEqual([refused.status, refused.json().change, refused.json().now], [412, why,
      admin.deck.alerts.digest(alert.id)], name)
  }
  for (const method of ['patch', 'delete'] as const) {
    const late = await admin.api(method, `/api/v1/alerts/${alert.id}`).set('if-match', etag).send(
      method === 'patch' ? { name: 'mine' } : undefined
    ).expect(412)
    assert.ok(late.body.detail.startsWith(`${why}. If-Match: expected "`), late.body.detail)
  }
  assert.equal(admin.deck.alerts.list().find(({ id }) => id === alert.id)?.name, 'ops')
  assert.equal((await send('deleteAlert', { alert: alert.id, seen: admin.deck.alerts.digest(alert.id) })).status, 204)
})

test('a member of the fleet is not scaled over what somebody has set there meanwhile', async (t) => {
  const { admin, send } = await setUp(t)
  const why = 'bob has set it to 6 workers since you opened this'
  const tags: unknown[] = []
  admin.deck.fleet = createFakeFleet({ answer: (_member, { headers }) => {
    tags.push(headers?.['if-match'])
    return headers?.['if-match'] === '"6"'
      ? { status: 200, body: {} }
      : { status: 412,
        body: { code: 'precondition-failed', detail: `${why}. If-Match: expected "6", received "4"`, now: '6',
          change: why } }
  } })
  const refused = await send('setScale', { member: 'web-2', workers: '3', seen: '4' })
  assert.deepEqual([refused.status, refused.json().change, refused.json().now], [412, why, '6'])
  assert.equal((await send('setScale', { member: 'web-2', workers: '3', seen: '6' })).status, 204)
  assert.deepEqual(tags, ['"4"', '"6"'])
})
