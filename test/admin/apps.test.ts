import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadSite } from '../../server/admin/site-code.ts'
import { rawRequest, startHostAdmin } from '../support/admin.ts'
import { until } from '../support/until.ts'

test('what an app does already is answered with 200, a stopped one with a conflict, and a name is given once', async (t) => {
  const { api, apps } = await startHostAdmin(t)
  const start = () => api('post', '/api/v1/apps/shop/start')
  const stop = () => api('post', '/api/v1/apps/shop/stop')
  assert.equal((await start().expect(200)).body.state, 'running')
  await stop().expect(202)
  assert.equal((await stop().expect(200)).body.state, 'stopped')
  await api('get', '/api/v1/apps/shop/status').expect(409)
  await api('post', '/api/v1/apps/shop/rollouts').send({ kind: 'restart' }).expect(409)
  await start().expect(202)
  for (const body of [{}, { cwd: '/srv', name: '../x' }, { cwd: '/srv', flags: { workers: 2 } }, { cwd: '/srv',
    env: { A: 1 } }, { cwd: '/srv', more: 1 }]) await api('post', '/api/v1/apps').send(body).expect(422)
  assert.deepEqual(apps.orders.map(({ type }) => type), ['stop', 'start'])
  const { body } = await api('post', '/api/v1/apps').send({ name: 'shop', cwd: '/srv/other' }).expect(409)
  assert.equal(body.code, 'name-taken')
  await api('delete', '/api/v1/apps/mail').expect(202)
  await api('delete', '/api/v1/apps/mail').expect(404)
  assert.deepEqual(apps.orders.at(-1)?.more, { purge: false })
})

test('the document of the host has what an app answers, below the path of the app', async (t) => {
  const host = await startHostAdmin(t)
  const [{ body: whole }, { body: alone }] = await Promise.all([host.api('get', '/api/v1/openapi.json'),
    host.api('get', '/apps/shop/api/v1/openapi.json')])
  const below = Object.keys(alone.paths).filter((path) =>
    path.startsWith('/api/v1/') && !/^\/api\/v1\/(tokens|sign-in-links|openapi)/.test(path)
  )
  for (const path of below) assert.ok(whole.paths[path.replace('/api/v1', '/api/v1/apps/{app}')], path)
  const { parameters, responses } = whole.paths['/api/v1/apps/{app}/workers/{id}/restart'].post
  assert.deepEqual(parameters.map(({ name }) => name), ['id', 'app', 'Idempotency-Key'])
  assert.match(JSON.stringify(responses), /app-not-running/)
})

test('a repeated order is done once, and an environment of many variables fits in', async (t) => {
  const host = await startHostAdmin(t)
  const order = { name: 'queue', cwd: '/srv/queue',
    env: Object.fromEntries(Array.from({ length: 2000 }, (_, n) => [`VARIABLE_${n}`, 'x'.repeat(100)])) }
  const send = () => host.api('post', '/api/v1/apps').set('Idempotency-Key', 'k').send(order)
  const [first, second] = [await send(), await send()]
  assert.deepEqual([first.status, second.status, second.headers['idempotency-replayed']], [201, 201, 'true'])
  assert.equal(first.headers.location, '/api/v1/apps/queue')
  assert.equal(host.apps.orders.length, 1)
  await host.api('post', '/api/v1/apps').send({ ...order, env: { A: 'x'.repeat(1100 * 1024) } }).expect(413)
  assert.ok(!JSON.stringify(host.history.page({ limit: 50 })).includes('VARIABLE_1'), 'the history has no environment')
})

test('the metrics of all apps have the name of theirs, and say of each whether it runs, and load no page', async (t) => {
  const load = t.mock.fn(loadSite)
  const host = await startHostAdmin(t, { load })
  host.apps.closeApp('mail')
  const { text } = await host.api('get', '/metrics').expect(200)
  assert.match(text, /^clusterdeck_workers_ready\{app="shop"\} 2$/m)
  assert.match(text, /^clusterdeck_worker_up\{app="shop",slot="1"\} 1$/m)
  assert.match(text, /^clusterdeck_app_running\{app="mail"\} 0\nclusterdeck_app_running\{app="shop"\} 1$/m)
  assert.ok(!text.includes('clusterdeck_workers_ready{app="mail"}'))
  assert.equal(text.match(/^clusterdeck_info\{/gm)?.length, 1)
  assert.equal(text.match(/^clusterdeck_master_resident_memory_bytes /gm)?.length, 1)
  const one = await host.api('get', '/apps/shop/metrics').expect(200)
  assert.match(one.text, /^clusterdeck_workers_ready 2$/m)
  assert.ok(!one.text.includes('clusterdeck_master_resident_memory_bytes'),
    'the figures of the process are the host\'s')
  assert.equal(load.mock.callCount(), 0)
  await host.api('get', '/apps/mail/metrics').expect(409)
})

test('a host is ready when each app that should run is ready or has finished', async (t) => {
  const host = await startHostAdmin(t)
  const isReady = async () => (await rawRequest(host, { path: '/readyz' })).status === 200
  assert.equal(await isReady(), true)
  host.apps.deck('shop').set({ readyWorkers: 1 })
  assert.equal(await isReady(), false)
  host.apps.deck('shop').set({ readyWorkers: 0, finishedWorkers: 2 })
  assert.equal(await isReady(), true)
  host.apps.closeApp('shop', { state: 'failed', reason: 'its configuration is wrong' })
  assert.equal(await isReady(), false)
  host.apps.closeApp('shop', { state: 'stopped' })
  assert.equal(await isReady(), true)
})

test('who asks for one app, or whether all are ready, has the history of no other app read', async (t) => {
  const host = await startHostAdmin(t)
  const { view } = host.apps
  const viewed: string[] = []
  Object.assign(host.apps, { list: () => assert.fail('all of them are read'), view: (name: string) => {
    viewed.push(name)
    return view(name)
  } })
  for (const path of ['/api/v1/apps/shop', '/api/v1/apps/shop/status', '/readyz', '/metrics'])
    await host.api('get', path).expect(200)
  await host.api('post', '/api/v1/apps/shop/start').expect(200)
  assert.deepEqual(viewed, ['shop', 'shop'])
})

test('a visit of the list has the apps listed once', async (t) => {
  const host = await startHostAdmin(t)
  const { list } = host.apps
  let count = 0
  host.apps.list = () => {
    count++
    return list()
  }
  const { text } = await host.visit('/')
  assert.match(text, /All 2 apps are well/)
  assert.equal(count, 1)
})

test('who starts, stops or adds an app is in the history of the host', async (t) => {
  const host = await startHostAdmin(t)
  await host.api('post', '/apps/shop/api/v1/stop').expect(202)
  const used = () => host.history.page({ type: ['access.used'], limit: 5 }).items.map(({ detail }) => detail?.path)
  await until(() => used().length > 0, 'the event')
  assert.deepEqual(used(), ['/api/v1/apps/shop/stop'])
})
