import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createContract } from '../support/api-contract.ts'
import { rawRequest, startHostAdmin, TOKEN } from '../support/admin.ts'
import { aMember, createFakeHostFleet } from '../support/fake-fleet.ts'
import { until } from '../support/until.ts'
import type { AnswerTo, Problem } from '../support/answers.ts'

test('every operation of the host answers as its document says, when all goes well and when it does not', async (t) => {
  const members = ['shop', 'mail'].map((app) => aMember({ member: 'web-1', app }))
  const host = await startHostAdmin(t, { fleet: () => createFakeHostFleet(members) })
  const { body: document } = await host.api('get', '/api/v1/openapi.json').expect(200)
  const contract = createContract(document)
  const ask = askWith(host, contract)

  await ask('get', '/api/v1/openapi.json', 200)
  assert.equal((await ask('get', '/api/v1/host', 200)).apps, 2)
  host.events.publish({ type: 'app.added', actor: 'ada', detail: { app: 'shop' } })
  const [added] = (await ask('get', '/api/v1/host/events', 200)).items
  assert.equal((await ask('get', `/api/v1/host/events/${added.id}`, 200)).type, 'app.added')
  assert.equal((await ask('get', '/api/v1/host/events?own=true&limit=1', 200)).items[0].app, undefined)
  const lost = host.events.publish({ type: 'keeper.lost', message: 'the keeper is gone' })
  assert.equal((await ask('get', '/api/v1/host/notices', 200)).items[0].id, lost.id)
  await ask('post', `/api/v1/host/notices/${lost.id}/acknowledge`, 200)
  const at = '/api/v1/host/alerts'
  const alert = await ask('post', at, 201, { kind: 'webhook', url: 'https://example.com/gone', apps: ['shop'] })
  await ask('get', at, 200)
  await ask('get', `${at}/${alert.id}`, 200)
  await ask('patch', `${at}/${alert.id}`, 200, { isPaused: true, apps: null })
  const { id: delivery } = await ask('post', `${at}/${alert.id}/test`, 202)
  await until(() => host.apps.alerts.list()[0].deliveries[0].state === 'failed', 'the end of the test')
  await ask('post', `${at}/${alert.id}/deliveries/${delivery}/retry`, 202)
  await ask('delete', `${at}/${alert.id}`, 200)
  assert.deepEqual((await ask('get', '/api/v1/apps', 200)).items.map(({ name }) => name), ['mail', 'shop'])
  assert.equal((await ask('get', '/api/v1/apps/shop', 200)).path, '/apps/shop')
  await ask('get', '/api/v1/apps/shp', 404)
  assert.equal((await ask('post', '/api/v1/apps/shop/start', 200)).state, 'running')
  assert.equal((await ask('post', '/api/v1/apps/shop/stop', 202)).state, 'stopped')
  assert.equal((await ask('post', '/api/v1/apps/shop/stop', 200)).state, 'stopped')
  await ask('get', '/api/v1/apps/shop/status', 409)
  await ask('post', '/api/v1/apps/shop/rollouts', 409, { kind: 'restart' })
  assert.equal((await ask('post', '/api/v1/apps/shop/start', 202)).state, 'running')
  assert.equal(
    (await ask('post', '/api/v1/apps', 201, { name: 'queue', cwd: '/srv/queue',
      flags: { entry: 'queue.js', workers: '2', args: ['-v'], watch: true }, env: { A: '1' } })).name,
    'queue'
  )
  assert.equal((await ask<Problem>('post', '/api/v1/apps', 409, { name: 'queue', cwd: '/srv/other' })).code,
    'name-taken')
  for (const body of [{}, { cwd: 'srv' }, { cwd: '/srv', name: '../x' }, { cwd: '/srv', flags: { workers: 2 } }, {
    cwd: '/srv',
    env: { A: 1 }
  }, { cwd: '/srv', more: 1 }]) await ask('post', '/api/v1/apps', 422, body)
  await ask('delete', '/api/v1/apps/queue', 202)
  await ask('delete', '/api/v1/apps/queue', 404)
  await ask('delete', '/api/v1/apps/mail?purge=yes', 400)
  await ask('delete', '/api/v1/apps/mail?purge=true', 202)
  await ask('post', '/api/v1/apps/shop/messages', 202, { type: 'reload' })
  await ask('get', '/api/v1/apps/shop/events', 200)
  const { id } = await ask('post', '/api/v1/tokens', 201, { name: 'ada', role: 'viewer' })
  await ask('get', '/api/v1/tokens', 200)
  await ask('delete', `/api/v1/tokens/${id}`, 200)
  await ask('post', '/api/v1/sign-in-links', 201, {})
  for (const path of ['/healthz', '/readyz', '/metrics', '/apps/shop/healthz', '/apps/shop/readyz'])
    await ask('get', path, 200)
  await ask('get', '/apps/nothing/readyz', 404)
  assert.deepEqual(
    (await ask<{ result: object }>('post', '/mcp', 200, { jsonrpc: '2.0', id: 1, method: 'ping' })).result,
    {}
  )
  assert.deepEqual(await ask('post', '/api/v1/host/upgrade', 202, { note: 'autumn' }), {
    startedAt: '2026-01-01T00:00:00.000Z',
    actor: 'the owner\'s token',
    note: 'autumn'
  })
  await ask('post', '/api/v1/host/upgrade', 422, { execPath: 'node' })
  assert.equal((await ask('post', '/api/v1/host/adoptions', 201, { name: 'blog' })).secret, 'once')
  assert.equal((await ask('get', '/api/v1/host/adoptions/1', 200)).state, 'done')
  await ask('get', '/api/v1/host/adoptions/2', 404)
  assert.deepEqual((await ask('get', '/api/v1/host/fleet', 200)).members[0].apps.map(({ app }) => app), ['mail',
    'shop'])
  assert.deepEqual(await ask('delete', '/api/v1/host/fleet/members/web-9', 200), { member: 'web-9' })
  assert.equal((await ask('post', '/api/v1/host/stop', 202)).state, 'stopping')

  assert.deepEqual(host.apps.orders.map(({ type, name, actor }) => [type, name, actor]), [['stop', 'shop',
    'the owner\'s token'], ['start', 'shop', 'the owner\'s token'], ['add', 'queue', 'the owner\'s token'], ['add',
    'queue', 'the owner\'s token'], ['remove', 'queue', 'the owner\'s token'], ['remove', 'mail', 'the owner\'s token'],
    ['upgrade-host', '', 'the owner\'s token'], ['adopt', 'blog', 'the owner\'s token'], ['stop-host', '',
    'the owner\'s token']])
  assert.deepEqual(host.apps.orders.filter(({ type }) => type === 'remove').map(({ more }) => more), [{ purge: false },
    { purge: true }])
  const own = Object.entries<Record<string, { operationId: string }>>(document.paths).filter(([path]) =>
    !path.startsWith('/api/v1/apps/{app}/')
  ).flatMap(([, item]) => Object.values(item).map(({ operationId }) => operationId))
  assert.deepEqual(own.filter((name) => !contract.seen.has(name)), [])
  assert.equal(new Set(contract.names).size, contract.names.length)
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

test('who may what: a viewer looks, an operator starts and stops, an admin adds by a token, removes, upgrades and ends the host', async (t) => {
  const host = await startHostAdmin(t)
  const calls = [['viewer', 'GET', '/api/v1/host'], ['viewer', 'GET', '/api/v1/apps'], ['viewer', 'GET',
    '/api/v1/apps/shop'], ['operator', 'POST', '/api/v1/apps/shop/stop'], ['operator', 'POST',
    '/api/v1/apps/shop/start'], ['operator', 'POST', '/apps/shop/api/v1/stop'], ['operator', 'POST',
    '/apps/shop/api/v1/start'], ['admin', 'POST', '/api/v1/apps', { name: 'x', cwd: '/srv/x' }], ['admin', 'DELETE',
    '/api/v1/apps/mail'], ['admin', 'POST', '/api/v1/host/upgrade', {}], ['admin', 'POST', '/api/v1/host/stop']] as [
      string,
      string,
      string,
      object?
    ][]
  const roles = ['viewer', 'operator', 'admin']
  for (const role of roles) {
    const { body: { token } } = await host.api('post', '/api/v1/tokens').send({ name: `a-${role}`, role }).expect(201)
    for (const [needed, method, path, body] of calls) {
      const { status } = await rawRequest(host, { method, path,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body) })
      assert.equal(status === 403, roles.indexOf(role) < roles.indexOf(needed), `${role}: ${method} ${path}: ${status}`)
    }
  }
  const cookie = await host.signIn()
  for (const [path, body, detail] of [['/api/v1/apps', '{"cwd":"/srv/y"}', 'A new app requires a token, not a session'],
    ['/api/v1/host/upgrade', '{}', 'An upgrade requires a token, not a session']])
  {
    const { status, text } = await rawRequest(host, { method: 'POST', path,
      headers: { cookie, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }, body })
    assert.deepEqual([status, JSON.parse(text).detail], [403, detail])
  }
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

test('the metrics of all apps have the name of theirs, and say of each whether it runs', async (t) => {
  const host = await startHostAdmin(t)
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
  const { text } = await rawRequest(host, { path: '/',
    headers: { accept: 'text/html', authorization: `Bearer ${TOKEN}` } })
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

function askWith (host: Awaited<ReturnType<typeof startHostAdmin>>, contract: ReturnType<typeof createContract>) {
  return async <T = never, P extends string = string,
    M extends 'get' | 'post' | 'patch' | 'delete' = 'get' | 'post' | 'patch' | 'delete'>(method: M, url: P,
    expected: number, body: object | undefined = undefined): Promise<AnswerTo<M, P, T>> =>
  {
    const { status, headers, text } = await rawRequest(host, { method: method.toUpperCase(), path: url,
      headers: { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body) })
    assert.equal(status, expected, `${method} ${url}: ${text}`)
    const answer = String(headers['content-type']).includes('json') ? JSON.parse(text) : text
    contract.check({ method: method.toUpperCase(), path: url.split('?')[0], status, headers, body: answer })
    return answer
  }
}
