import assert from 'node:assert/strict'
import { test } from 'node:test'
import { io } from 'socket.io-client'
import { heard, rawRequest, startHostAdmin, type HostAdmin } from '../support/admin.ts'
import type { AnswerOrProblem } from '../support/answers.ts'

const NAMES = ['mail', 'search', 'shop']

function callWith (host: HostAdmin, token: string) {
  return async <M extends string, P extends string>(method: M, path: P, body: object | undefined = undefined,
    headers: Record<string, string> = {}) =>
  {
    const { status, text } = await rawRequest(host, { method, path,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
      body: body && JSON.stringify(body) })
    return { status, text, body: (text.startsWith('{') ? JSON.parse(text) : null) as AnswerOrProblem<M, P> }
  }
}

test('a token for some apps works there, and all others are as if they did not exist', async (t) => {
  const host = await startHostAdmin(t, { names: NAMES })
  const made = await host.tokenFor('ci', 'operator', { apps: ['shop', 'mail'] })
  assert.deepEqual(made.apps, ['shop', 'mail'])
  const call = callWith(host, made.token)
  assert.equal((await call('GET', '/api/v1/apps/shop/status')).status, 200)
  assert.equal((await call('POST', '/api/v1/apps/mail/rollouts', { kind: 'restart' })).status, 202)
  const { items } = (await call('GET', '/api/v1/apps')).body
  assert.deepEqual(items.map(({ name }) => name), ['mail', 'shop'])

  for (const [method, rest] of [['GET', ''], ['GET', '/status'], ['GET', '/metrics'], ['POST', '/stop'], ['POST',
    '/start'], ['POST', '/rollouts'], ['DELETE', ''], ['GET', '/tokens'], ['GET', '/openapi.json']] as [string,
      string][])
  {
    const [hidden, missing] = await Promise.all(
      ['search', 'nothing'].map((name) => call(method, `/api/v1/apps/${name}${rest}`))
    )
    assert.equal(hidden.status, method === 'DELETE' ? 403 : 404, `${method} ${rest}: ${hidden.text}`)
    assert.equal(hidden.text.replaceAll('search', 'nothing'), missing.text)
  }
  for (const path of ['/apps/search/', '/apps/search/logs', '/apps/search/api/v1/status', '/apps/search/logs.txt',
    '/apps/search/socket.io/?EIO=4&transport=polling'])
  {
    assert.equal((await call('GET', path, undefined, { accept: 'text/html' })).status, 404, path)
  }
  const { body } = await call('GET', '/api/v1/apps/searc/status')
  assert.equal(body.detail, 'There is no app "searc" on this host', 'nor is it named')
  const { text } = await call('GET', '/metrics')
  assert.ok(text.includes('app="shop"') && !text.includes('search'))
  assert.deepEqual(host.apps.orders, [])
})

test('a role for one app sees a host with one app', async (t) => {
  const host = await startHostAdmin(t, { names: NAMES })
  const call = callWith(host, (await host.tokenFor('ci', 'viewer', { apps: ['shop'] })).token)
  assert.equal((await call('GET', '/api/v1/status')).body.app.name, 'shop')
})

test('what concerns the whole host is not for an admin of some apps, who makes and sees tokens for these alone', async (t) => {
  const host = await startHostAdmin(t, { names: NAMES })
  const made = await host.tokenFor('lead', 'admin', { apps: ['shop', 'mail'] })
  const other = await host.tokenFor('other', 'viewer', { apps: ['search'] })
  const call = callWith(host, made.token)
  for (const [method, path, body] of [['POST', '/api/v1/apps', { cwd: '/srv/x' }], ['DELETE', '/api/v1/apps/shop'], [
    'POST',
    '/api/v1/host/stop'
  ], ['POST', '/api/v1/host/upgrade', {}], ['POST', '/api/v1/apps/shop/upgrade', {}]] as [string, string, object?][])
    assert.equal((await call(method, path, body)).status, 403, `${method} ${path}`)

  for (const apps of [undefined, ['shop']]) {
    const { status, body } = await call('POST', '/api/v1/tokens', { name: apps ? 'ci' : 'bot', role: 'operator',
      ...(apps && { apps }) })
    assert.deepEqual([status, body.apps], [201, apps ?? ['shop', 'mail']])
  }
  assert.equal(
    (await call('POST', '/api/v1/apps/shop/tokens', { name: 'ci', role: 'viewer', apps: ['search'] })).status,
    403
  )
  assert.equal((await call('POST', '/api/v1/sign-in-links', { apps: ['search'] })).status, 403)
  assert.deepEqual((await call('GET', '/api/v1/tokens')).body.items.map(({ name }) => name), ['ci', 'bot', 'lead'])
  assert.equal((await call('DELETE', `/api/v1/tokens/${other.id}`)).status, 404)
  const page = await call('GET', '/access', undefined, { accept: 'text/html' })
  assert.ok(page.text.includes('admin of shop, mail') && !page.text.includes('other'))
  const offered = (
    text: string
  ) => [...new Set(Array.from(text.matchAll(/name="app" value="([^"]+)"/g), ([, name]) => name))]
  assert.deepEqual(offered(page.text), ['mail', 'shop'], 'apps to choose from')
  assert.deepEqual(offered((await host.api('get', '/access').set('accept', 'text/html')).text), NAMES)

  const unknown = await host.api('post', '/api/v1/tokens').send({ name: 'ci', role: 'viewer', apps: ['shp'] }).expect(
    422
  )
  assert.equal(unknown.body.detail, 'apps: expected apps of this host, received "shp" (did you mean "shop"?)')
})

test('a session has the apps of its link or its token, also after the next start, and its page shows no others', async (t) => {
  const host = await startHostAdmin(t, { names: NAMES })
  const { body: { url } } = await host.api('post', '/api/v1/sign-in-links').send({ role: 'operator', apps: ['shop'] })
    .expect(201)
  const cookie = await host.signIn(url)
  const get = (path: string) => host.visit(path, { cookie })
  const list = await get('/')
  assert.ok(list.text.includes('app-shop') && !list.text.includes('app-mail'))
  for (const path of ['/palette', '/switch', '/apps/shop/palette'])
    assert.ok(!(await get(path)).text.includes('/apps/mail'), path)
  assert.equal((await get('/apps/mail/')).status, 404)
  const post = (body: string) => host.post('apps', body, { cookie, 'hx-request': 'true' })
  assert.equal((await post('app=shop&app=mail&action=restart')).status, 404)
  assert.deepEqual(host.apps.deck('shop').dispatched, [], 'none is touched where one is not theirs')
  assert.equal((await post('app=shop&action=restart')).status, 204)

  const socket = io(host.url, { path: '/socket.io/', transports: ['websocket'], reconnection: false, forceNew: true,
    extraHeaders: { cookie, origin: host.origin } })
  t.after(() => socket.close())
  await heard(socket, 'connect')
  const first = heard(socket, 'fragments')
  await socket.emitWithAck('watch', '/', {})
  assert.ok(!JSON.stringify(await first).includes('mail'))
  const event = host.history.page({ type: ['access.signed-in'], limit: 1 }).items[0]
  assert.match(String(event.message), /^the owner's token \(operator of shop\) from /)

  const next = await startHostAdmin(t, { names: NAMES, history: host.history, port: 0 })
  const again = await next.visit('/', { cookie: cookie.replace(host.cookieName, next.cookieName) })
  assert.ok(again.text.includes('app-shop') && !again.text.includes('app-mail'))
})

test('a role for an app ends with that app, also in sessions and links: the next one of its name is another', async (t) => {
  const host = await startHostAdmin(t, { names: NAMES })
  const { token } = await host.tokenFor('ci', 'operator', { apps: ['mail', 'shop'] })
  const { token: lead } = await host.tokenFor('lead', 'admin', { apps: ['mail'] })
  const makeLink = async () => {
    const { body } = await host.api('post', '/api/v1/sign-in-links').send({ role: 'operator', apps: ['mail'] }).expect(
      201
    )
    return () => host.signIn(body.url)
  }
  const [open, openLater] = [await makeLink(), await makeLink()]
  const cookie = await open()
  const statuses = async (...cookies: string[]) =>
    await Promise.all(
      [...[token, lead].map((each) => callWith(host, each)('GET', '/api/v1/apps/mail/status')), ...cookies.map((each) =>
        rawRequest(host, { path: '/api/v1/apps/mail/status', headers: { cookie: each } })
      )].map(async (answer) => (await answer).status)
    )
  assert.deepEqual(await statuses(cookie), [200, 200, 200])
  await host.api('delete', '/api/v1/apps/mail').expect(202)
  host.apps.open('mail')
  assert.deepEqual(await statuses(cookie, await openLater()), [404, 404, 404, 404])
  assert.equal((await callWith(host, token)('GET', '/api/v1/apps/shop/status')).status, 200)
  assert.deepEqual((await host.tokenFor('new', 'viewer', { apps: ['mail'] })).apps, ['mail'])
  const { items } = (await host.api('get', '/api/v1/tokens').expect(200)).body
  assert.deepEqual(items.map(({ name, apps }) => [name, apps]), [['new', ['mail']], ['lead', ['mail (deleted)']], ['ci',
    ['mail (deleted)', 'shop']]])
  // A token that is for an app no more makes none for the next one.
  assert.equal(
    (await callWith(host, lead)('POST', '/api/v1/tokens', { name: 'x', role: 'viewer', apps: ['mail'] })).status,
    403
  )
})

test('whether an app is ready is told to those with a role for it; for others each name is as one that no app has', async (t) => {
  const host = await startHostAdmin(t, { names: NAMES })
  const { token } = await host.tokenFor('probe', 'viewer', { apps: ['shop'] })
  const paths = ['/apps/shop/readyz', '/apps/mail/readyz', '/apps/nothing/readyz', '/apps/nothing/healthz']
  const ask = async (headers: Record<string, string>) =>
    await Promise.all(paths.map(async (path) => (await rawRequest(host, { path, headers })).status))
  assert.deepEqual(await ask({}), [401, 401, 401, 200])
  assert.deepEqual(await ask({ authorization: `Bearer ${token}` }), [200, 404, 404, 200])
  host.apps.deck('shop').set({ readyWorkers: 1 })
  assert.deepEqual((await ask({ authorization: `Bearer ${token}` }))[0], 503)
})
