import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { startAdmin, TOKEN, type Admin } from '../support/admin.ts'
import { present } from '../support/present.ts'

/** Of a rollout of which nothing more was kept. */
const NO_STORY = Object.freeze({ timeline: null, comparisons: null, usual: null })

test('tells probes without a token that the master lives, and whether every worker is ready', async (t) => {
  const admin = await startAdmin(t)
  await admin.stranger().get('/healthz').expect(200, 'ok\n')
  await admin.stranger().get('/readyz').expect(200, 'ready\n')
  for (const change of [{ readyWorkers: 1 }, { readyWorkers: 2, state: 'starting' }, { state: 'stopping' }] as const) {
    admin.deck.set(change)
    await admin.stranger().get('/readyz').expect(503, 'not ready\n')
    await admin.stranger().get('/healthz').expect(200)
  }
})

test('serves the whole snapshot as JSON, and nothing of it to HEAD', async (t) => {
  const { api, deck } = await startAdmin(t)
  const { body, headers } = await api('get', '/api/v1/status').expect(200)
  assert.deepEqual([body, headers['content-type']], [deck.status(), 'application/json; charset=utf-8'])
  assert.equal((await api('head', '/api/v1/status').expect(200)).text, undefined)
})

test('names the rollout that runs to whoever starts another', async (t) => {
  const admin = await startAdmin(t)
  await admin.api('post', '/api/v1/rollouts').send({ kind: 'restart' }).expect(202)
  for (const request of [admin.api('post', '/api/v1/rollouts').send({ kind: 'restart' }),
    admin.api('post', '/api/v1/workers/1/restart')])
  {
    const { body } = await request.expect(409)
    assert.deepEqual(body, { type: 'urn:clusterdeck:problem:rollout-running', title: 'A rollout is running',
      status: 409, detail: 'rollout 1 (restart) is running', code: 'rollout-running', rollout: 1 })
  }
})

test('returns a waiting call when the rollout is done', async (t) => {
  const admin = await startAdmin(t)
  const waiting = await startWaiting(admin)
  const done = { ...waiting.rollout, state: 'succeeded', done: true }
  admin.deck.events.publish({ type: 'rollout.step', rollout: 1, detail: waiting.rollout })
  admin.deck.events.publish({ type: 'rollout.succeeded', rollout: 2, detail: { ...done, id: 2 } })
  assert.equal(admin.clock.pending(), 1, 'neither a step nor another rollout ends the wait')
  admin.deck.set({ rollout: null })
  admin.deck.events.publish({ type: 'rollout.succeeded', rollout: 1, detail: done })
  assert.deepEqual(await waiting.body, { ...done, ...NO_STORY })
  assert.equal(admin.clock.pending(), 0)
})

test('returns a waiting call with what there is when the time is up', async (t) => {
  const admin = await startAdmin(t)
  const waiting = await startWaiting(admin)
  admin.clock.advance(29_999)
  assert.equal(admin.clock.pending(), 1)
  admin.clock.advance(1)
  assert.deepEqual(await waiting.body, { ...waiting.rollout, ...NO_STORY })
})

test('tells what happened in a rollout, and how long the last ones took, to whoever asks for that one alone', async (t) => {
  const admin = await startAdmin(t)
  const story = { timeline: [{ at: '2026-01-01T00:00:00.000Z', type: 'rollout.started', actor: 'ada', message: null }],
    comparisons: [] }
  const tell = (id: number, seconds: number) => {
    const detail = { id, kind: 'deploy' as const, state: 'succeeded' as const, startedAt: '2026-01-01T00:00:00.000Z',
      finishedAt: `2026-01-01T00:00:${seconds}.000Z`, progress: { total: 0, replaced: 0 }, steps: [], ...story }
    admin.deck.events.publish({ type: 'rollout.succeeded', rollout: id, detail })
    return detail
  }
  for (const [index, seconds] of [12, 40, 10, 14].entries()) tell(index + 1, seconds)
  const last = tell(5, 50)
  const { timeline, comparisons, ...summary } = last
  const ask = async <P extends string>(path: P) => (await admin.api('get', `/api/v1${path}`).expect(200)).body
  assert.deepEqual(await ask('/rollouts/5'), { ...last, usual: { tookMs: 13_000, count: 4 } })
  assert.equal((await ask('/rollouts/3')).usual, null, 'two before it are too few')
  assert.deepEqual((await ask('/rollouts?limit=1')).items, [summary])
  admin.deck.set({ rollout: last })
  assert.deepEqual((await ask('/status')).rollout, summary)
})

test('does not wait for a rollout that does not run', async (t) => {
  const admin = await startAdmin(t)
  const { body } = await admin.api('post', '/api/v1/rollouts').send({ kind: 'restart' })
  admin.deck.set({ rollout: null })
  await admin.api('get', `/api/v1/rollouts/${body.id}?wait=5m`).expect(200)
  await admin.api('get', '/api/v1/rollouts/7?wait=5m').expect(404)
  assert.equal(admin.clock.pending(), 0)
})

test('lets go of a wait whose caller has gone', async (t) => {
  const admin = await startAdmin(t)
  const waiting = await startWaiting(admin)
  const gone = subscriberGone(admin)
  waiting.req.destroy()
  await gone
  assert.equal(admin.clock.pending(), 0)
})

test('ends waiting calls with an answer when the port closes', async (t) => {
  const admin = await startAdmin(t)
  const waiting = await startWaiting(admin)
  const beganAt = performance.now()
  await Promise.all([admin.admin.close(), waiting.body])
  assert.deepEqual(await waiting.body, { ...waiting.rollout, ...NO_STORY })
  assert.ok(performance.now() - beganAt < 4500, 'a connection that became idle meanwhile does not delay the end')
})

test('slows down strangers without slowing down who is signed in', async (t) => {
  const admin = await startAdmin(t, { limits: { strangerRequests: 3, requests: 5 } })
  for (let call = 0; call < 3; call++) await admin.stranger().get('/api/v1/status').expect(401)
  const { body, headers } = await admin.stranger().get('/api/v1/status').expect(429)
  assert.equal(body.code, 'rate-limited')
  assert.ok(Number(headers['retry-after']) > 0)
  assert.equal(headers['x-frame-options'], 'DENY')
  await admin.stranger().get('/metrics').expect(429)
  await admin.stranger().get('/').set('Accept', 'text/html').expect(303)
  for (let call = 0; call < 5; call++) await admin.api('get', '/api/v1/status').expect(200)
  await admin.api('get', '/api/v1/status').expect(429)
  await admin.stranger().get('/healthz').expect(200)
  admin.clock.advance(60_000)
  await admin.stranger().get('/api/v1/status').expect(401)
})

test('says that the history is unavailable while the database fails, and serves the rest', async (t) => {
  const admin = await startAdmin(t)
  admin.history.close()
  for (const path of ['/api/v1/events', '/api/v1/events/1', '/api/v1/rollouts', '/api/v1/rollouts/1']) {
    const { body } = await admin.api('get', path).expect(503)
    assert.equal(body.code, 'history-unavailable')
  }
  const { body } = await admin.api('get', '/api/v1/events').set('Accept', 'text/csv').expect(503)
  assert.equal(body.code, 'history-unavailable')
  await admin.api('get', '/api/v1/status').expect(200)
  await admin.api('put', '/api/v1/scale').send({ workers: 3 })
  assert.equal(admin.deck.dispatched.length, 1)
})

test('shows nothing of an error that nobody foresaw, and logs it', async (t) => {
  const admin = await startAdmin(t)
  await admin.api('get', '/api/v1/status').expect(200)
  admin.deck.snapshot = () => {
    throw new Error('secret at /srv/app.js:3')
  }
  const { body, text } = await admin.api('get', '/api/v1/status').expect(500)
  assert.equal(body.code, 'internal')
  assert.ok(!text.includes('secret') && !text.includes('/srv'))
  assert.match(String((admin.logged[0][0] as { err: Error }).err.message), /secret/)
})

/** A call with ?wait=30s that has reached the point where it waits. */
async function startWaiting (admin: Admin) {
  const { body: rollout } = await admin.api('post', '/api/v1/rollouts').send({ kind: 'restart' })
  const subscribed = nextSubscription(admin)
  const req = http.get(`${admin.url}/api/v1/rollouts/${rollout.id}?wait=30s`, {
    headers: { Authorization: `Bearer ${TOKEN}` }
  })
  req.on('error', () => {})
  const body = once(req, 'response').then(async ([res]) => {
    let text = ''
    for await (const chunk of res) text += chunk
    return JSON.parse(text)
  })
  body.catch(() => {})
  await subscribed
  return { rollout, req, body }
}

function nextSubscription ({ deck }: Admin) {
  return new Promise((resolve) => {
    const { subscribe } = deck.events
    deck.events.subscribe = (subscriber) => {
      deck.events.subscribe = subscribe
      resolve(undefined)
      return subscribe(subscriber)
    }
  })
}

/** Resolves when the wait's timer is gone. */
function subscriberGone ({ clock }: Admin) {
  return new Promise((resolve) => {
    const { clearTimeout } = clock.timers
    clock.timers.clearTimeout = (id) => {
      clock.timers.clearTimeout = clearTimeout
      clearTimeout(id)
      resolve(undefined)
    }
  })
}

test('the document says which options can change, which ids there are, and what a probe with a query is answered', async (t) => {
  const admin = await startAdmin(t)
  const { body: { paths } } = await admin.api('get', '/api/v1/openapi.json').expect(200)
  const schema = paths['/api/v1/config'].patch.requestBody?.content['application/json'].schema
  assert.deepEqual(Object.keys(present(schema?.properties)),
    admin.deck.settings.list().filter(({ takesEffect }) => takesEffect === 'now').map(({ name }) => name))
  assert.deepEqual([schema?.additionalProperties, schema?.minProperties], [false, 1])
  const id = paths['/api/v1/events/{id}'].get.parameters[0].schema
  await admin.api('get', `/api/v1/events/${id.maximum}`).expect(404)
  await admin.api('get', `/api/v1/events/${Number(id.maximum) + 1}`).expect(400)
  const { status } = await admin.stranger().get('/healthz?x=1')
  assert.ok(paths['/healthz'].get.responses[status], String(status))
})
