import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawBytes, rawRequest, startAdmin, TOKEN, type Admin, type Answer } from '../support/admin.ts'

const BEARER = { Authorization: `Bearer ${TOKEN}` }
const WEBSOCKET = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }
const LIVE = '/socket.io/?EIO=4&transport=polling'
const LIVE_SOCKET = '/socket.io/?EIO=4&transport=websocket'

const HOSTS = [{ host: (port: number) => `127.0.0.1:${port}`, status: 200 }, {
  host: (port: number) => `localhost:${port}`,
  status: 200
}, { host: (port: number) => `LOCALHOST:${port}`, status: 200 }, { host: (port: number) => `[::1]:${port}`,
  status: 200 }, { host: () => 'deck.example.com', status: 200 }, { host: (port: number) => `deck.example.com:${port}`,
  status: 200 }, { host: () => 'proxied.example.com:8443', status: 200 }, { host: () => 'proxied.example.com',
  status: 403 }, { host: (port: number) => `proxied.example.com:${port}`, status: 403 }, { host: () => 'localhost',
  status: 403 }, { host: (port: number) => `localhost:${port + 1}`, status: 403 }, {
  host: (port: number) => `localhost.:${port}`,
  status: 403
}, { host: (port: number) => `evil.example:${port}`, status: 403 }, {
  host: (port: number) => `127.0.0.1.evil.example:${port}`,
  status: 403
}, { host: (port: number) => `evil.example@localhost:${port}`, status: 403 }, {
  host: (port: number) => `0.0.0.0:${port}`,
  status: 403
}, { host: () => '', status: 403 }]

test('answers to its own names and to no other', async (t) => {
  const admin = await startAdmin(t, { allowedHosts: ['deck.example.com', 'proxied.example.com:8443'] })
  for (const { host, status } of HOSTS) {
    const Host = host(admin.port)
    const answer = await rawRequest(admin, { path: '/sign-in', headers: { Host } })
    assert.equal(answer.status, status, Host)
    if (status === 403) assertForbidden(answer)
  }
})

test('does not answer to the wildcard address that it is bound to', async (t) => {
  const admin = await startAdmin(t, { host: '0.0.0.0' })
  assert.equal((await rawRequest(admin, { path: '/sign-in', headers: { Host: `0.0.0.0:${admin.port}` } })).status, 403)
  assert.equal((await rawRequest(admin, { path: '/sign-in', headers: { Host: `localhost:${admin.port}` } })).status,
    200)
  assert.match(admin.url, /^http:\/\/127\.0\.0\.1:/)
})

test('refuses requests whose Host is missing, doubled or contradicted by the target', async (t) => {
  const admin = await startAdmin(t)
  const own = `127.0.0.1:${admin.port}`
  for (const [bytes, status] of [['GET /sign-in HTTP/1.0\r\n\r\n', 403], [
    'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n',
    400
  ], [`GET /sign-in HTTP/1.1\r\nHost: ${own}\r\nHost: evil.example\r\nConnection: close\r\n\r\n`, 403], [
    // node keeps the first 1000 headers unless it is told otherwise.
    `GET /sign-in HTTP/1.1\r\nHost: ${own}\r\n${'a:\r\n'.repeat(1500)}Host: evil.example\r\nConnection: close\r\n\r\n`,
    403
  ], [`GET /sign-in HTTP/1.1\r\nHost: evil.example\r\nHost: ${own}\r\nConnection: close\r\n\r\n`, 403], [
    `GET http://evil.example/healthz HTTP/1.1\r\nHost: ${own}\r\nConnection: close\r\n\r\n`,
    400
  ], [`OPTIONS * HTTP/1.1\r\nHost: ${own}\r\nConnection: close\r\n\r\n`, 400]] as [string, number][]) {
    assert.match(await rawBytes(admin, bytes), new RegExp(`^HTTP/1.1 ${status} `), bytes)
  }
})

test('probes are answered by whatever Host, and by none, on GET and HEAD alone; nothing else is, under no spelling', async (t) => {
  const admin = await startAdmin(t)
  const Host = '10.1.2.3:9777'
  for (const path of ['/healthz', '/readyz']) {
    for (const method of ['GET', 'HEAD'])
      assert.ok([200, 503].includes((await rawRequest(admin, { method, path, headers: { Host } })).status),
        `${method} ${path}`)
    for (const method of ['POST', 'PUT', 'OPTIONS'])
      assert.equal((await rawRequest(admin, { method, path, headers: { Host } })).status, 403, `${method} ${path}`)
    assert.equal((await rawRequest(admin, { path, headers: { Host, Origin: 'https://evil.example' } })).status, 403)
  }
  assert.match(await rawBytes(admin, 'GET /healthz HTTP/1.0\r\n\r\n'), /^HTTP\/1.1 200 /)
  for (const path of ['/metrics', '/', '/sign-in', '/healthz/', '/healthz/../metrics', '/healthz%2f..', '//healthz',
    '/HEALTHZ', '/api/v1/status', '/socket.io/?EIO=4&transport=polling'])
  {
    assert.equal((await rawRequest(admin, { path, headers: { Host, ...BEARER } })).status, 403, path)
  }
})

test('refuses every Origin but its own, whoever asks', async (t) => {
  const admin = await startAdmin(t, { allowedHosts: ['deck.example.com'] })
  const Cookie = await admin.signIn()
  for (const [Origin, status] of [[admin.origin, 200], [`http://localhost:${admin.port}`, 200], [
    'https://deck.example.com',
    200
  ], ['null', 403], ['', 403], [`https://127.0.0.1:${admin.port}`, 403], [`http://127.0.0.1:${admin.port + 1}`, 403], [
    'http://127.0.0.1',
    403
  ], [`${admin.origin}/`, 403], [`${admin.origin}.evil.example`, 403], [`http://evil.example:${admin.port}`, 403]] as [
    string,
    number
  ][]) {
    for (const credentials of [BEARER, { Cookie }]) {
      const answer = await rawRequest(admin, { path: '/api/v1/status', headers: { ...credentials, Origin } })
      assert.equal(answer.status, status, `${Origin} with ${Object.keys(credentials)}`)
      if (status === 403) assertForbidden(answer)
    }
  }
})

test('lets a session write only for a page of the dashboard', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const { origin } = admin
  for (const [headers, status] of [[{}, 403], [{ 'Sec-Fetch-Site': 'same-site' }, 403], [{
    'Sec-Fetch-Site': 'cross-site'
  }, 403], [{ 'Sec-Fetch-Site': 'none' }, 403], [{ 'Sec-Fetch-Site': 'same-site', Origin: origin }, 403], [{
    'Sec-Fetch-Site': 'same-site',
    'Sec-Fetch-Mode': 'navigate'
  }, 403], [{ 'Sec-Fetch-Site': 'same-origin' }, 200], [{ Origin: origin }, 200], [{ 'Sec-Fetch-Site': 'same-origin',
    Origin: origin }, 200]] as [Record<string, string>, number][])
  {
    const before = admin.deck.dispatched.length
    const answer = await rawRequest(admin, { method: 'PUT', path: '/api/v1/scale',
      headers: { Cookie, 'Content-Type': 'application/json', 'Content-Length': '13', ...headers },
      body: '{"workers":3}' })
    assert.equal(answer.status, status, JSON.stringify(headers))
    assert.equal(admin.deck.dispatched.length - before, status === 200 ? 1 : 0, 'only an admitted request acts')
  }
})

test('lets a script with the token write without Origin and Sec-Fetch-Site', async (t) => {
  const admin = await startAdmin(t)
  await admin.api('put', '/api/v1/scale').send({ workers: 3 }).expect(200)
  assert.equal(admin.deck.dispatched[0].actor, 'the owner\'s token')
})

test('lets strangers\' pages link to the dashboard but not load anything from it', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const read = (headers: Record<string, string>) =>
    rawRequest(admin, { path: '/api/v1/status', headers: { Cookie, ...headers } })
  assert.equal((await read({ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' })).status, 200)
  assert.equal((await read({ 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors' })).status, 403)
  assert.equal((await read({ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' })).status, 403)
  assert.equal((await read({ 'Sec-Fetch-Site': 'none' })).status, 200)
  assert.equal((await read({})).status, 200)
})

test('puts the security headers on every answer, refusals and the live path included', async (t) => {
  const admin = await startAdmin(t)
  for (const request of [{ path: '/healthz' }, { path: '/sign-in' }, { path: '/', headers: { Accept: 'text/html' } }, {
    path: '/api/v1/status'
  }, { path: '/api/v1/status', headers: BEARER }, { path: '/sign-in', headers: { Host: 'evil.example' } }, {
    path: LIVE
  }, { path: LIVE, headers: BEARER }, { path: '/api/v1/nothing', headers: BEARER }] as { path: string,
    headers?: Record<string, string> }[])
  {
    const { headers } = await rawRequest(admin, request)
    assert.equal(headers['content-security-policy'],
      'default-src \'none\';script-src \'self\';style-src \'self\';img-src \'self\';font-src \'self\';connect-src \'self\';form-action \'self\';base-uri \'none\';frame-ancestors \'none\'',
      request.path)
    assert.equal(headers['cache-control'], 'no-store', request.path)
    assert.equal(headers['x-content-type-options'], 'nosniff', request.path)
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin', request.path)
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin', request.path)
    assert.equal(headers['referrer-policy'], 'same-origin', request.path)
    assert.equal(headers['x-frame-options'], 'DENY', request.path)
    assert.match(String(headers.vary), /Authorization, Cookie/, request.path)
    assert.equal(headers['x-powered-by'], undefined, request.path)
    assert.equal(headers['strict-transport-security'], undefined, request.path)
    assert.equal(headers['access-control-allow-origin'], undefined, request.path)
  }
})

test('checks every request and upgrade of a live connection that has its session id already', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const sid = await openPolling(admin, { Cookie })
  const polling = `${LIVE}&sid=${sid}`
  const socket = `${LIVE_SOCKET}&sid=${sid}`
  const own = { Cookie, Origin: admin.origin }

  for (const headers of [{ Cookie, Origin: 'http://evil.example' }, { Cookie, Host: `evil.example:${admin.port}` }, {
    Cookie,
    'Sec-Fetch-Site': 'same-site'
  }] as Record<string, string>[]) {
    assertForbidden(await rawRequest(admin, { path: polling, headers }))
    assertForbidden(await rawRequest(admin, { method: 'POST', path: polling, headers, body: '40' }))
    assertForbidden(await rawRequest(admin, { path: socket, headers: { ...WEBSOCKET, ...headers } }))
  }
  assertForbidden(await rawRequest(admin, { method: 'POST', path: polling, headers: { Cookie }, body: '40' }))
  assertForbidden(await rawRequest(admin, { path: socket, headers: { ...WEBSOCKET, Cookie } }))
  assert.equal((await rawRequest(admin, { path: polling })).status, 401, 'without credentials')

  assert.equal(
    (await rawRequest(admin, { method: 'POST', path: polling, headers: { ...own, 'Content-Length': '2' }, body: '40' }))
      .status,
    200
  )
  assert.ok((await rawRequest(admin, { path: socket, headers: { ...WEBSOCKET, ...own } })).isUpgraded,
    'the dashboard itself gets through')
})

test('upgrades nothing but the live page', async (t) => {
  const admin = await startAdmin(t)
  for (const path of ['/', '/healthz', '/api/v1/events/stream', '/socket.io',
    '/SOCKET.IO/?EIO=4&transport=websocket'])
  {
    assert.equal((await rawRequest(admin, { path, headers: { ...WEBSOCKET, ...BEARER } })).status, 404, path)
  }
  assert.equal((await rawRequest(admin, { path: LIVE_SOCKET, headers: { ...WEBSOCKET, ...BEARER } })).status, 101)
})

function assertForbidden (answer: Answer) {
  assert.equal(answer.status, 403)
  assert.equal(answer.headers['content-type'], 'application/problem+json; charset=utf-8')
  assert.equal(answer.json().code, 'forbidden')
}

async function openPolling (admin: Admin, headers: Record<string, string>) {
  const { text } = await rawRequest(admin, { path: LIVE, headers })
  return JSON.parse(text.slice(1)).sid
}
