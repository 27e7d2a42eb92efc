import assert from 'node:assert/strict'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { io } from 'socket.io-client'
import { heard, rawBytes, rawRequest, startAdmin, startHostAdmin, TOKEN, type Admin } from '../support/admin.ts'
import type { ProxyAuth } from '../../server/admin/proxy-users.ts'

const SECRET = 'a-secret-of-the-proxy'
const OPTIONS: ProxyAuth = { from: ['127.0.0.1'], user: 'X-Forwarded-User', groups: 'X-Forwarded-Groups',
  roles: { ops: 'admin', dev: 'operator', guests: 'viewer' }, secret: SECRET }

/** What a proxy sends for ada, who is in this group. */
const adaIn = (group: string, more: Record<string, string | string[]> = {}) => ({ 'X-Proxy-Secret': SECRET,
  'X-Forwarded-User': 'ada', 'X-Forwarded-Groups': group, ...more })
const OWN_PAGE = { 'Sec-Fetch-Site': 'same-origin' }

function behindProxy (t: TestContext, options: Partial<ProxyAuth> = {}) {
  return startAdmin(t, { proxyAuth: { ...OPTIONS, ...options } })
}

async function status (admin: Pick<Admin, 'port'>, headers: Record<string, string | string[]>,
  path = '/api/v1/status')
{
  return (await rawRequest(admin, { path, headers })).status
}

/** From another address of this machine. */
function statusFrom (localAddress: string, { port }: Admin,
  headers: Record<string, string>): Promise<number | undefined>
{
  return new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port, localAddress, path: '/api/v1/status', agent: false, headers },
      (res) => resolve(res.resume().statusCode)).on('error', reject)
  })
}

test('whom the proxy has signed in has the role of their group, by each request anew', async (t) => {
  const admin = await behindProxy(t)
  for (const [group, expected] of [['guests', [200, 403, 403]], ['dev', [200, 403, 202]], ['ops', [200, 200,
    409]]] as const)
  {
    const headers = adaIn(group)
    const restart = await rawRequest(admin, { method: 'POST', path: '/api/v1/rollouts', body: '{"kind":"restart"}',
      headers: { ...headers, ...OWN_PAGE, 'Content-Type': 'application/json' } })
    assert.deepEqual([await status(admin, headers), await status(admin, headers, '/api/v1/tokens'), restart.status],
      expected, group)
  }
  const form = await rawRequest(admin, { method: 'POST', path: '/actions/startRollout', body: 'kind=restart',
    headers: adaIn('dev', { ...OWN_PAGE, Accept: 'application/problem+json',
      'Content-Type': 'application/x-www-form-urlencoded' }) })
  assert.equal(form.status, 409, 'a form of a page: a rollout is running')
  assert.equal(await status(admin, {}), 401, 'the proxy has let nobody in')
})

test('the headers do not count from another address, with another secret or without one', async (t) => {
  const admin = await behindProxy(t)
  assert.equal(await statusFrom('127.0.0.1', admin, adaIn('ops') as Record<string, string>), 200)
  assert.equal(
    await statusFrom('127.0.0.2', admin, adaIn('ops', { 'X-Forwarded-For': '127.0.0.1' }) as Record<string, string>),
    401
  )
  assert.equal(await status(admin, adaIn('ops', { 'X-Proxy-Secret': `${SECRET}x` })), 401)
  assert.equal(await status(admin, { 'X-Forwarded-User': 'ada', 'X-Forwarded-Groups': 'ops' }), 401)
  const without = await startAdmin(t)
  assert.equal(await status(without, adaIn('ops')), 401, 'no proxy is named')
})

test('a proxy of this machine is known by the user who runs it', async (t) => {
  const uid = Number(process.getuid?.())
  const { secret: _, ...options } = OPTIONS
  const [own, other] = await Promise.all(
    [uid, uid + 1].map((each) => startAdmin(t, { proxyAuth: { ...options, from: [`uid:${each}`] } }))
  )
  assert.equal(await status(own, adaIn('ops')), 200)
  assert.equal(await status(other, adaIn('ops')), 401)
})

test('a header that is there twice is refused, however many stand between', async (t) => {
  const admin = await behindProxy(t)
  assert.equal(await status(admin, adaIn('dev', { 'X-Forwarded-User': ['ada', 'mallory'] })), 400)
  assert.equal(await status(admin, adaIn('dev', { 'X-Forwarded-Groups': ['dev', 'ops'] })), 400)
  const bytes = ['GET /api/v1/status HTTP/1.1', `Host: 127.0.0.1:${admin.port}`, 'Connection: close',
    `X-Proxy-Secret: ${SECRET}`, 'X-Forwarded-Groups: ops', 'X-Forwarded-User: mallory', ...Array(1500).fill('a:'),
    'X-Forwarded-User: ada', '', ''].join('\r\n')
  assert.match(await rawBytes(admin, bytes), /^HTTP\/1.1 400 [^]*X-Forwarded-User: expected once, received 2 times/)
})

test('who has no role is told so by name, on pages and by the API, and a cookie does not help', async (t) => {
  const admin = await behindProxy(t)
  const cookie = await admin.signIn()
  for (const [path, accept] of [['/', 'text/html'], ['/api/v1/status', 'application/json'], ['/sign-in',
    'text/html']])
  {
    const answer = await rawRequest(admin, { path, headers: adaIn('sales', { accept, cookie }) })
    assert.equal(answer.status, 403, path)
    assert.match(answer.text, /\\"ada\\" has no role/)
  }
})

test('the proxy counts more than a cookie, and a token more than the proxy', async (t) => {
  const admin = await behindProxy(t)
  const cookie = await admin.signIn()
  assert.equal(await status(admin, { cookie }, '/api/v1/tokens'), 200)
  assert.equal(await status(admin, adaIn('guests', { cookie }), '/api/v1/tokens'), 403)
  assert.equal(await status(admin, adaIn('guests', { Authorization: `Bearer ${TOKEN}` }), '/api/v1/tokens'), 200)
  assert.equal(await status(admin, adaIn('ops', { Authorization: 'Bearer wrong' })), 401)
})

test('no foreign page can change anything or open a live socket for them, and they get no token, no link and no other deck', async (t) => {
  const admin = await behindProxy(t)
  const post = async (path: string, more: Record<string, string>, body = '{}') =>
    (await rawRequest(admin, { method: 'POST', path, body,
      headers: adaIn('ops', { 'Content-Type': 'application/json', ...more }) })).status
  for (const foreign of [{}, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }, {
    Origin: 'https://evil.example'
  }, { 'Sec-Fetch-Site': 'none' }] as Record<string, string>[]) {
    assert.equal(await post('/api/v1/messages', foreign, '{"type":"a"}'), 403, JSON.stringify(foreign))
    assert.equal(await post('/actions/startRollout', foreign), 403, JSON.stringify(foreign))
    assert.equal(
      await status(admin,
        adaIn('ops', { ...foreign, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
          'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }), '/socket.io/?EIO=4&transport=websocket'),
      403
    )
  }
  assert.equal(await post('/api/v1/tokens', OWN_PAGE, '{"name":"eve","role":"viewer"}'), 403)
  for (const body of ['{}', '{"name":"eve","role":"viewer"}'])
    assert.equal(await post('/api/v1/sign-in-links', OWN_PAGE, body), 403)
  assert.equal(await status(admin, adaIn('ops', OWN_PAGE), '/decks'), 403)
})

test('the live page comes to them, and asks the proxy again after a quarter of an hour', async (t) => {
  const admin = await behindProxy(t)
  const connect = (extraHeaders: Record<string, string>) => {
    const socket = io(admin.url, { transports: ['websocket'], forceNew: true, reconnection: false,
      extraHeaders: { ...extraHeaders, Origin: admin.origin } })
    t.after(() => socket.close())
    return socket
  }
  const socket = connect(adaIn('guests', { cookie: await admin.signIn() }) as Record<string, string>)
  const updates = heard(socket, 'fragments')
  await heard(socket, 'connect')
  socket.emit('watch', '/', {}, () => {})
  await updates
  await heard(connect({}), 'connect_error')
  const [signedOut, left] = [[] as unknown[], heard(socket, 'disconnect')]
  socket.on('signed-out', () => signedOut.push(true))
  admin.clock.advance(15 * 60_000)
  // Not "io server disconnect", after which a browser does not come back.
  assert.deepEqual([(await left)[0], signedOut], ['transport close', []])
})

test('the history tells them from whoever has a token of that name', async (t) => {
  const admin = await behindProxy(t)
  const { headers } = await admin.tokenFor('ada', 'operator')
  const send = (more: Record<string, string | string[]>) =>
    rawRequest(admin, { method: 'POST', path: '/api/v1/messages', body: '{"type":"a"}',
      headers: { 'Content-Type': 'application/json', ...more } })
  for (const each of [headers, adaIn('dev', OWN_PAGE)]) assert.equal((await send(each)).status, 202)
  const used = admin.history.page({ type: ['access.used'], limit: 2 }).items
  assert.deepEqual(used.map(({ actor, message, detail }) => [actor, message, detail?.via, detail?.token]), [[
    'ada (proxy)',
    'ada (proxy) (operator, dashboard) from 127.0.0.1: POST /api/v1/messages',
    'proxy',
    null
  ], ['ada', 'ada (operator, API) from 127.0.0.1: POST /api/v1/messages', 'token', 1]])
})

test('a page says who they are, as text, and signs out by the proxy alone', async (t) => {
  const [without, host] = [await behindProxy(t),
    await startHostAdmin(t, { proxyAuth: { ...OPTIONS, signOutUrl: '/oauth2/sign_out?rd=/' }, basePath: '/deck' })]
  const page = async (admin: Pick<Admin, 'port'>, path = '/') =>
    (await rawRequest(admin, { path, headers: adaIn('dev', { Accept: 'text/html', 'X-Forwarded-User': '<b>ada' }) }))
      .text
  assert.match(await page(without),
    /<bdi class="viewer" title="&lt;b&gt;ada \(proxy\), operator">&lt;b&gt;ada \(proxy\)<\/bdi>/)
  assert.doesNotMatch(await page(without), /sign-out/)
  assert.doesNotMatch(await page(without, '/palette'), /sign-out/)
  assert.match(await page(host), /<a class="button-icon" href='\/oauth2\/sign_out\?rd=\/' id="top-sign-out"/)
  assert.match(await page(host, '/palette'), /sign-out/)
})

test('each of them has a limit of requests of their own', async (t) => {
  const admin = await startAdmin(t, { proxyAuth: OPTIONS, limits: { requests: 1 } })
  const statusOf = (name: string) => status(admin, adaIn('dev', { 'X-Forwarded-User': name }))
  assert.deepEqual([await statusOf('ada'), await statusOf('ada'), await statusOf('grace')], [200, 429, 200])
})

test('an app that does not run can be started by them from its page, as by a session', async (t) => {
  const host = await startHostAdmin(t, { proxyAuth: OPTIONS })
  host.apps.closeApp('shop', { state: 'stopped' })
  const headers = (group: string) => adaIn(group, { Accept: 'text/html' })
  for (const [group, can] of [['dev', true], ['guests', false]] as const) {
    const { text } = await rawRequest(host, { path: '/apps/shop/', headers: headers(group) })
    assert.equal(text.includes('Start shop'), can, group)
  }
})
