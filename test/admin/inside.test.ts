import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInProcessTransport } from '../../server/admin/in-process-transport.ts'
import { startAdmin } from '../support/admin.ts'
import type { Auth } from '../../server/api/roles.ts'

const limits = () => ({ maxBytes: 900_000, signal: AbortSignal.timeout(10_000) })

/** @returns somebody who asks by another deck */
function asker (changes?: Partial<Auth>): Auth {
  return { name: 'ada@web-1', actor: 'ada@web-1', role: 'operator', token: null, until: null, via: 'fleet',
    client: 'cli', from: 'web-1', bound: 'fleet.accept', ...changes }
}

test('a long answer is whole for whoever asks by another deck', async (t) => {
  const { admin, api } = await startAdmin(t)
  const { body: document } = await api('get', '/api/v1/openapi.json')
  const { body } = await admin.ask({ method: 'GET', path: '/openapi.json', headers: {} }, asker(), limits())
  assert.deepEqual(JSON.parse(body), document)
})

test('all who ask by another deck have one limit of requests together, whatever they call themselves', async (t) => {
  const { admin, api } = await startAdmin(t, { limits: { requests: 3 } })
  const statuses = []
  for (const name of ['a', 'b', 'c', 'd'])
    statuses.push(
      (await admin.ask({ method: 'GET', path: '/status', headers: {} }, asker({ name, actor: name }), limits())).status
    )
  assert.deepEqual(statuses, [200, 200, 200, 429])
  await api('get', '/api/v1/status').expect(200)
})

test('a request that comes again is done once, for each of those who ask', async (t) => {
  const { admin, deck, api, stranger, signIn, origin } = await startAdmin(t)
  const send = (name: string) =>
    admin.ask({ method: 'POST', path: '/messages', headers: { 'idempotency-key': 'k' }, body: { type: 'reload' } },
      asker({ name, actor: name }), limits())
  const answers = [await send('ada@web-1'), await send('ada@web-1'), await send('eve@web-1')]
  assert.deepEqual(answers.map(({ status, headers }) => [status, headers['idempotency-replayed']]), [[202, undefined], [
    202,
    'true'
  ], [202, undefined]])
  assert.deepEqual(deck.dispatched.map(({ order }) => order?.actor), ['ada@web-1', 'eve@web-1'])

  const { body: link } = await api('post', '/api/v1/sign-in-links').send({ name: 'ada@web-1', role: 'operator' })
    .expect(201)
  const namesake = await stranger().post('/api/v1/messages').set({ cookie: await signIn(link.url), origin,
    'idempotency-key': 'k' }).send({ type: 'reload' }).expect(202)
  assert.equal(namesake.headers['idempotency-replayed'], undefined)
})

test('an answer that is too large or too late is cut, and the port ends while one is waited for', async (t) => {
  const { admin, api } = await startAdmin(t)
  await assert.rejects(
    admin.ask({ method: 'GET', path: '/openapi.json', headers: {} }, asker(), { ...limits(), maxBytes: 1000 }),
    { code: 'payload-too-large', message: /use a smaller limit/ }
  )
  await api('post', '/api/v1/rollouts').send({ kind: 'restart' }).expect(202)
  const late = new AbortController()
  const waiting = admin.ask({ method: 'GET', path: '/rollouts/1?wait=5m', headers: {} }, asker(), { maxBytes: 1e6,
    signal: late.signal })
  late.abort(new Error('too late'))
  await assert.rejects(waiting, { message: 'too late' })
  const ended = admin.ask({ method: 'GET', path: '/rollouts/1?wait=5m', headers: {} }, asker(), limits())
  await admin.close()
  assert.equal(await ended.then(({ status }) => status, ({ code }) => code === 'stopping' && 200), 200)
  await assert.rejects(admin.ask({ method: 'GET', path: '/status', headers: {} }, asker(), limits()), {
    code: 'stopping'
  })
})

test('what nobody answers ends with the port', async () => {
  const inside = createInProcessTransport(() => {})
  const asked = inside.ask({ method: 'GET', path: '/status', headers: {} }, asker(), limits())
  inside.close()
  await assert.rejects(asked, { code: 'stopping' })
})

test('an answer that is cut off on its way is none', async () => {
  const inside = createInProcessTransport((_auth, _req, res) => {
    res.setHeader('content-length', 10)
    res.write('half', () => res.destroy())
  })
  await assert.rejects(inside.ask({ method: 'GET', path: '/status', headers: {} }, asker(), limits()))
})

test('revoking a token ends no call of somebody who is signed in elsewhere', async (t) => {
  const { admin, api, deck } = await startAdmin(t)
  const { body: { id } } = await api('post', '/api/v1/tokens').send({ name: 'eve', role: 'viewer' }).expect(201)
  await api('post', '/api/v1/rollouts').send({ kind: 'restart' }).expect(202)
  const waiting = admin.ask({ method: 'GET', path: '/rollouts/1?wait=5m', headers: {} }, asker(), limits())
  await api('delete', `/api/v1/tokens/${id}`).expect(200)
  deck.events.publish({ type: 'rollout.succeeded', rollout: 1, detail: { ...deck.snapshot().rollout, done: true } })
  assert.equal((await waiting).status, 200)
})
