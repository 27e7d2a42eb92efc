import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeckError } from '../../server/errors.ts'
import { startAdmin, type Admin, type Call } from '../support/admin.ts'
import { fake } from '../support/fake.ts'
import type { RolloutView } from '../../server/lifecycle/rollout/record.ts'

const HOUR_MS = 60 * 60 * 1000
type Answer = { id: number, token?: string, code?: string, detail?: string }

function deploy ({ api }: Admin, key: string, body: object = { kind: 'deploy' }, path: string = '/api/v1/rollouts') {
  return api('post', path).set('Idempotency-Key', key).send(body) as Call<Answer>
}

function rolloutsOf ({ deck }: Admin) {
  return deck.dispatched.filter(({ type, kind }) => type === 'rollout' || kind === 'deploy').length
}

test('a request that comes again with its key is done once, and answered as the first time', async (t) => {
  const admin = await startAdmin(t)
  const first = await deploy(admin, 'a')
  admin.deck.set({ rollout: null })
  const second = await deploy(admin, 'a')
  assert.deepEqual([second.status, second.headers.location], [first.status, first.headers.location])
  assert.equal(rolloutsOf(admin), 1)
  await deploy(admin, 'b')
  assert.equal(rolloutsOf(admin), 2)
})

test('the key of another request is refused, and nothing is done', async (t) => {
  const admin = await startAdmin(t)
  await deploy(admin, 'a')
  for (const other of [deploy(admin, 'a', { kind: 'restart' }), deploy(admin, 'a', {}, '/api/v1/crashes/1/mute'),
    deploy(admin, 'a', { kind: 'deploy', note: 'another' })])
  {
    const { status, body } = await other
    assert.deepEqual([status, body.code], [422, 'idempotency-key-reused'])
  }
  assert.equal(rolloutsOf(admin), 1)
})

test('while the first one still runs, the second one is told so', async (t) => {
  const admin = await startAdmin(t)
  const begun: PromiseWithResolvers<void> = Promise.withResolvers()
  const answer: PromiseWithResolvers<RolloutView> = Promise.withResolvers()
  admin.deck.deploy = () => {
    begun.resolve()
    return answer.promise
  }
  const first = deploy(admin, 'a').then((answer) => answer)
  await begun.promise
  const second = await deploy(admin, 'a')
  assert.deepEqual([second.status, second.body.code], [409, 'idempotency-key-in-use'])
  answer.resolve(fake({ id: 7 }))
  assert.equal((await first).status, 202)
  assert.equal((await deploy(admin, 'a')).body.id, 7)
})

test('a refusal is an answer too, and what cannot be done at the moment is not', async (t) => {
  const admin = await startAdmin(t)
  admin.deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cli' })
  const refused = await deploy(admin, 'a')
  assert.deepEqual([refused.status, refused.body.code], [409, 'rollout-running'])
  admin.deck.set({ rollout: null })
  assert.deepEqual((await deploy(admin, 'a')).body, refused.body)
  assert.equal((await deploy(admin, 'wrong', { kind: 'nonsense' })).status, 422)
  assert.equal((await deploy(admin, 'wrong')).status, 202, 'what was wrong was never begun')

  const { crashes } = admin.history
  const { find } = crashes
  crashes.find = () => {
    throw new DeckError('history-unavailable', 'locked')
  }
  const away = await deploy(admin, 'later', {}, '/api/v1/crashes/1/mute')
  assert.deepEqual([away.status, away.headers['retry-after']], [503, '5'])
  crashes.find = find
  assert.equal((await deploy(admin, 'later', {}, '/api/v1/crashes/1/mute')).status, 404)
})

test('an answer is kept for the next master and for a day, but for nobody else, and no secret is written', async (t) => {
  const admin = await startAdmin(t)
  const first = await deploy(admin, 'a')
  const made = await deploy(admin, 'token', { name: 'ada', role: 'operator' }, '/api/v1/tokens')
  assert.deepEqual((await deploy(admin, 'token', { name: 'ada', role: 'operator' }, '/api/v1/tokens')).body, made.body)
  const next = await startAdmin(t, { history: admin.history })
  assert.deepEqual((await deploy(next, 'a')).body, first.body)
  const again = await deploy(next, 'token', { name: 'ada', role: 'operator' }, '/api/v1/tokens')
  assert.notEqual(again.body.token, made.body.token)

  next.deck.set({ rollout: null })
  const ada = await next.api('post', '/api/v1/rollouts').set('Authorization', `Bearer ${made.body.token}`).set(
    'Idempotency-Key',
    'a'
  ).send({ kind: 'restart' })
  assert.deepEqual([ada.status, ada.headers['idempotency-replayed']], [202, undefined])

  next.deck.set({ rollout: null })
  next.clock.advance(24 * HOUR_MS + 1)
  assert.equal((await deploy(next, 'a')).headers['idempotency-replayed'], undefined)
})

test('a key that is none is refused', async (t) => {
  const admin = await startAdmin(t)
  for (const key of ['', 'two words', 'x'.repeat(256), 'é']) {
    const { status, body } = await deploy(admin, key)
    assert.deepEqual([status, body.code], [400, 'bad-request'], JSON.stringify(key))
    assert.match(String(body.detail),
      /^Idempotency-Key: expected 1 to 255 visible characters without spaces, received "/)
  }
  assert.equal(rolloutsOf(admin), 0)
  assert.equal((await admin.api('get', '/api/v1/status').set('Idempotency-Key', 'two words')).status, 200,
    'a GET may be sent again anyway')
})
