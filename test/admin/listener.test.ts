import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { io, type Socket } from 'socket.io-client'
import { roomWithin } from '../../server/admin/connections.ts'
import { createAdmin } from '../../server/admin/listener.ts'
import { loadSite } from '../../server/admin/site-code.ts'
import { behindPort } from '../support/fake-apps.ts'
import { rawBytes, rawRequest, startAdmin, TOKEN, type Admin } from '../support/admin.ts'
import { fake } from '../support/fake.ts'
import { freePort } from '../support/ports.ts'
import type { AppFleet } from '../../server/fleet/app-fleet.ts'

const HOUR_MS = 60 * 60_000
const QUICK = { headersTimeout: 60, requestTimeout: 120, connectionsCheckingInterval: 20, keepAliveTimeout: 60 }

test('takes the next free port where it may, and says which is in use where it has tried all', async (t) => {
  // Beside those of outgoing connections, which come and go.
  const { deck, history, port } = await startAdmin(t, { port: await freePort() })
  const next = net.createServer().listen(port + 1, '127.0.0.1')
  t.after(() => next.close())
  // Somebody else's listener would do as well.
  await once(next, 'listening').catch(() => {})
  const second = createAdmin({ ...behindPort(deck, history), token: TOKEN, port, portsToTry: 20 })
  t.after(() => second.close())
  const { port: taken } = await second.listen()
  assert.ok(taken > port + 1 && taken < port + 20, `${taken} after ${port}`)
  await assert.rejects(createAdmin({ ...behindPort(deck, history), token: TOKEN, port, portsToTry: 2 }).listen(), {
    code: 'port-in-use',
    message: new RegExp(`127\\.0\\.0\\.1, but ${port + 1} is in use`)
  })
})

test('says which port is in use', async (t) => {
  const { deck, history, port } = await startAdmin(t)
  const second = createAdmin({ ...behindPort(deck, history), token: TOKEN, port })
  await assert.rejects(second.listen(), { code: 'port-in-use', exitCode: 1,
    message: new RegExp(`127\\.0\\.0\\.1, but ${port} is in use`) })
  await second.close()
})

test('says which address cannot be listened on', async (t) => {
  const { deck, history } = await startAdmin(t)
  for (const host of ['203.0.113.7', 'no.such.host.invalid']) {
    const admin = createAdmin({ ...behindPort(deck, history), token: TOKEN, host })
    await assert.rejects(admin.listen(), { code: 'listen-failed', message: new RegExp(`received ${host}`) })
  }
})

test('hands out no link before it listens', async (t) => {
  const { deck, history } = await startAdmin(t)
  assert.throws(() => createAdmin({ ...behindPort(deck, history), token: TOKEN }).signInLink(), {
    code: 'listen-failed'
  })
})

test('listens on IPv6, under a name that can be visited', async (t) => {
  const admin = await startAdmin(t, { host: '::1' })
  assert.equal(admin.url, `http://[::1]:${admin.port}`)
  await admin.stranger().get('/healthz').expect(200)
  await admin.api('get', '/api/v1/status').expect(200)
})

test('what is behind the port comes with the first request that is no probe and no scrape, and goes an hour after the last one of a browser', async (t) => {
  const heard: string[] = []
  const { url, clock } = await startAdmin(t, { async load () {
    heard.push('load')
    return await loadSite()
  }, drop: () => heard.push('drop'), keptMs: HOUR_MS })
  const get = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(url + path, { headers: { ...headers, Connection: 'close' } })).status
  const signedIn = { Authorization: `Bearer ${TOKEN}` }
  assert.deepEqual([await get('/healthz'), await get('/readyz'), await get('/metrics', signedIn)], [200, 200, 200])
  assert.deepEqual(heard, [])
  // The guard comes first all the same.
  const upgrade = http.get(`${url}/socket.io/?EIO=4&transport=websocket`, {
    headers: { Connection: 'Upgrade', Upgrade: 'websocket' }
  })
  const [[refused], ...answers] = await Promise.all([once(upgrade, 'response'), get('/api/v1/status'),
    get('/api/v1/status', signedIn), get('/healthz', { Origin: 'http://shop.example' })])
  assert.deepEqual([refused.statusCode, ...answers], [401, 401, 200, 403])
  assert.deepEqual(heard, ['load'])
  const MINUTE_MS = 60_000
  clock.advance(MINUTE_MS - 1)
  assert.deepEqual(heard, ['load'])
  clock.advance(1)
  assert.deepEqual(heard, ['load', 'drop'], 'it has answered scripts alone')
  heard.length = 0
  const ofBrowser = { ...signedIn, Cookie: 'theme=dark' }
  const page = io(url, { transports: ['websocket'], extraHeaders: ofBrowser, reconnection: false })
  await new Promise((resolve) => page.once('connect', () => resolve(undefined)))
  clock.advance(3 * HOUR_MS)
  assert.deepEqual(heard, ['load'])
  page.disconnect()
  // Its end is heard in a later turn than that of this request.
  await get('/api/v1/status', ofBrowser)
  clock.advance(HOUR_MS - 1)
  assert.deepEqual([await get('/healthz'), await get('/api/v1/status', signedIn)], [200, 200])
  assert.deepEqual(heard, ['load'])
  clock.advance(MINUTE_MS)
  assert.deepEqual(heard, ['load', 'drop'])
  assert.equal(await get('/api/v1/status', signedIn), 200)
  assert.deepEqual(heard, ['load', 'drop', 'load'])
})

test('what could not be loaded is tried again with the next request', async (t) => {
  let attempts = 0
  const admin = await startAdmin(t, { async load () {
    attempts++
    if (attempts === 1) throw new Error('EMFILE: too many open files')
    return await loadSite()
  } })
  await admin.api('get', '/api/v1/status').expect(503)
  await admin.api('get', '/api/v1/status').expect(200)
  assert.deepEqual(admin.logged.map(([, text]) => text), ['the admin page could not be loaded'])
})

test('a token that was revoked while the database failed stays so when what is behind the port has gone and come', async (t) => {
  const admin = await startAdmin(t, { keptMs: HOUR_MS })
  const { body: { id, token } } = await admin.api('post', '/api/v1/tokens').send({ name: 'ci', role: 'viewer' }).expect(
    201
  )
  const ask = async () =>
    (await rawRequest(admin, { path: '/api/v1/status', headers: { Authorization: `Bearer ${token}` } })).status
  assert.equal(await ask(), 200)
  t.mock.method(admin.history.tokens, 'remove', () => {
    throw new Error('the disk is full')
  })
  await admin.api('delete', `/api/v1/tokens/${id}` as '/api/v1/tokens/{id}')
  assert.equal(await ask(), 401)
  admin.clock.advance(HOUR_MS)
  assert.equal(await ask(), 401)
})

test('whoever has asked while the site is loading is not cut as silent', async (t) => {
  const { deck, history } = await startAdmin(t)
  const gate = new EventEmitter()
  const load = async () => {
    await once(gate, 'open')
    return await loadSite()
  }
  const admin = createAdmin({ ...behindPort(deck, history), token: TOKEN,
    maxConnections: { maxKnown: 2, maxStrangers: 2 }, load })
  t.after(() => admin.close())
  const { port } = await admin.listen()
  const asking = net.connect(port, '127.0.0.1').setEncoding('utf8')
  await once(asking, 'connect')
  asking.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
  // Client and server share a loop: what was written is read a few turns later.
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  const silent = Array.from({ length: 40 }, () => net.connect(port, '127.0.0.1').resume())
  // The oldest of them is cut, and not the one that has asked before.
  await Promise.race(silent.map((socket) => once(socket, 'close')))
  gate.emit('open')
  assert.match(String((await once(asking, 'data'))[0]), /^HTTP\/1\.1 200 /)
  for (const socket of [asking, ...silent]) socket.destroy()
})

test('closes at once, and without a fault, while the site is still loading', async (t) => {
  const { deck, history } = await startAdmin(t)
  const admin = createAdmin({ ...behindPort(deck, history), token: TOKEN })
  await admin.listen()
  await admin.close()
})

test('closes at once with idle connections open, and twice', async (t) => {
  const admin = await startAdmin(t)
  const socket = net.connect(admin.port, '127.0.0.1')
  socket.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\n\r\n`)
  await once(socket, 'data')
  await Promise.all([admin.admin.close(), once(socket, 'close')])
  await admin.admin.close()
})

test('cuts what does not end by itself once the port has been closing for a second', async (t) => {
  const admin = await startAdmin(t)
  const silent = net.connect(admin.port, '127.0.0.1').resume()
  const upgraded = net.connect(admin.port, '127.0.0.1')
  upgraded.write(
    `GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nAuthorization: Bearer ${TOKEN}\r\n` +
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  )
  await Promise.all([once(silent, 'connect'), once(upgraded.on('data', () => {}), 'data')])
  const closed = admin.admin.close()
  admin.clock.advance(999)
  assert.equal(silent.destroyed || upgraded.destroyed, false)
  admin.clock.advance(1)
  await Promise.all([closed, once(silent, 'close'), once(upgraded, 'close')])
})

test('closes with live connections open, which come back to the next master', async (t) => {
  const admin = await startAdmin(t)
  const viewer = await connectViewer(t, admin, ['websocket'])
  const [reason] = await Promise.all([disconnection(viewer), admin.admin.close()])
  assert.ok(['transport close', 'transport error'].includes(reason), `${reason} makes the client try again`)
})

test('cuts whoever sends a request slowly, or nothing at all', async (t) => {
  const admin = await startAdmin(t, { serverOptions: QUICK })
  const head = `Host: 127.0.0.1:${admin.port}\r\n`
  assert.match(await rawBytes(admin, ''), /^(HTTP\/1\.1 408 |$)/)
  assert.match(await rawBytes(admin, `GET /healthz HTTP/1.1\r\n${head}X-Slow: `), /^HTTP\/1\.1 408 /)
  assert.match(
    await rawBytes(admin,
      `POST /sign-in HTTP/1.1\r\n${head}Origin: ${admin.origin}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\nto`),
    /^(HTTP\/1\.1 408 |$)/
  )
  await admin.stranger().get('/healthz').expect(200)
})

test('answers one request of a connection after the other, and cuts whoever asks for more before that', async (t) => {
  const admin = await startAdmin(t)
  const request = `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\n\r\n`
  const socket = net.connect(admin.port, '127.0.0.1').setEncoding('utf8')
  for (let n = 0; n < 3; n++) {
    socket.write(request)
    assert.match((await once(socket, 'data'))[0], /^HTTP\/1\.1 200 /)
  }
  socket.destroy()
  assert.ok((await rawBytes(admin, request.repeat(50))).split('HTTP/1.1 200').length <= 2)
})

test('cuts whoever sends a body without an end, before and after the answer, whoever it is', async (t) => {
  const admin = await startAdmin(t)
  const own = `Host: 127.0.0.1:${admin.port}\r\nOrigin: ${admin.origin}\r\n`
  const lengths = ['Transfer-Encoding: chunked', `Content-Length: ${2 ** 30}`]
  for (const [path, header] of [['/api/v1/rollouts', 'Content-Type: application/json'], ['/api/v1/rollouts',
    `Content-Type: application/json\r\nAuthorization: Bearer ${TOKEN}`], ['/sign-in',
    'Content-Type: application/x-www-form-urlencoded'], ['/healthz', 'X: y']])
  {
    for (const length of lengths) {
      const socket = net.connect(admin.port, '127.0.0.1').on('error', () => {}).resume()
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(`POST ${path} HTTP/1.1\r\n${own}${header}\r\n${length}\r\n\r\n`)
      const chunk = Buffer.alloc(64 * 1024, ' ')
      const part = length.startsWith('T')
        ? Buffer.concat([Buffer.from('10000\r\n'), chunk, Buffer.from('\r\n')])
        : chunk
      while (!socket.closed && socket.bytesWritten < 2 ** 28)
        if (!socket.write(part)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
      assert.ok(socket.closed, `${path} with ${header}, ${length}`)
    }
  }
})

test('has room for strangers by closing those who have been silent longest, and leaves those alone who are signed in', async (t) => {
  const admin = await startAdmin(t, { maxConnections: { maxKnown: 2, maxStrangers: 2 } })
  const connect = async () => {
    const socket = net.connect(admin.port, '127.0.0.1').resume()
    await once(socket, 'connect')
    return socket
  }
  const viewer = await connect()
  viewer.write(`GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
  await once(viewer, 'data')
  const [first, second] = [await connect(), await connect()]
  assert.match(
    await rawBytes(admin, `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nConnection: close\r\n\r\n`),
    /^HTTP\/1\.1 200 /
  )
  for (let n = 0; n < 20; n++) await connect()
  if (!first.closed) await once(first, 'close')
  if (!second.closed) await once(second, 'close')
  viewer.write(`GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
  await once(viewer, 'data')
  viewer.destroy()
})

test('a viewer with ever more connections takes those of nobody else', async (t) => {
  const admin = await startAdmin(t, { maxConnections: { maxKnown: 4, maxStrangers: 4 } })
  const { token: viewer } = await admin.tokenFor('screen', 'viewer')
  const connect = async (token: string) => {
    const socket = net.connect(admin.port, '127.0.0.1').resume()
    await ask(socket, token)
    return socket
  }
  const ask = async (socket: net.Socket, token: string) => {
    assert.ok(!socket.closed)
    socket.write(
      `GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nAuthorization: Bearer ${token}\r\n\r\n`
    )
    await Promise.race([once(socket, 'data'), once(socket, 'close').then(() => assert.fail('it is closed'))])
  }
  const ours = [await connect(TOKEN), await connect(TOKEN)]
  const theirs = []
  for (let n = 0; n < 20; n++) theirs.push(await connect(viewer))
  if (!theirs[0].closed) await once(theirs[0], 'close')
  for (const socket of ours) await ask(socket, TOKEN)
  for (const socket of [...ours, ...theirs]) socket.destroy()
})

test('survives bytes that are no HTTP', async (t) => {
  const admin = await startAdmin(t)
  for (const bytes of ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'GET\r\n\r\n',
    `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    `POST /healthz HTTP/1.1\r\nHost: 127.0.0.1:${admin.port}\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc`])
  {
    assert.match(await rawBytes(admin, bytes), /^HTTP\/1\.1 4(00|31) /)
  }
  await admin.stranger().get('/healthz').expect(200)
})

test('survives a peer that resets while its upgrade is being refused', async (t) => {
  const admin = await startAdmin(t)
  const socket = net.connect(admin.port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${
      'x'.repeat(100_000)
    }`
  )
  socket.resetAndDestroy()
  await admin.stranger().get('/healthz').expect(200)
})

test('opens the live connection to the dashboard and to the token, by either transport', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  for (const transports of [['websocket'], ['polling'], ['polling', 'websocket']] as ('polling' | 'websocket')[][]) {
    await connectViewer(t, admin, transports, { Cookie, Origin: admin.origin })
    await connectViewer(t, admin, transports, { Authorization: `Bearer ${TOKEN}` })
  }
})

test('takes whoever signs out off the live page', async (t) => {
  const admin = await startAdmin(t)
  const Cookie = await admin.signIn()
  const viewer = await connectViewer(t, admin, ['websocket'], { Cookie, Origin: admin.origin })
  const [reason] = await Promise.all([disconnection(viewer),
    rawRequest(admin, { method: 'POST', path: '/sign-out', headers: { Cookie, Origin: admin.origin } })])
  assert.equal(reason, 'io server disconnect')
})

/** @returns why */
function disconnection (viewer: Socket): Promise<string> {
  return new Promise((resolve) => {
    viewer.once('disconnect', (reason) => resolve(reason))
  })
}

async function connectViewer (t: TestContext, admin: Admin, transports: ('polling' | 'websocket')[],
  extraHeaders: Record<string, string> = { Authorization: `Bearer ${TOKEN}` })
{
  const viewer = io(admin.url, { transports, extraHeaders, reconnection: false, forceNew: true })
  t.after(() => viewer.close())
  await new Promise((resolve, reject) => {
    viewer.once('connect', () => resolve(undefined))
    viewer.once('connect_error', reject)
    viewer.once('disconnect', (reason) => reject(new Error(`error: ${reason}`)))
    viewer.io.once('close', (reason) => reject(new Error(`error: ${reason}`)))
  })
  return viewer
}

test('connections leave half of the descriptors to everything else, and are not more than anybody needs', () => {
  assert.deepEqual(roomWithin(128), { maxKnown: 32, maxStrangers: 8 })
  assert.deepEqual(roomWithin(1024), { maxKnown: 256, maxStrangers: 64 })
  assert.deepEqual(roomWithin(Infinity), { maxKnown: 512, maxStrangers: 256 })
})

test('who pushes an app may take longer than others, and who sends nothing else slowly is cut', async (t) => {
  // A machine that is busy needs longer than others for headers, whose lateness would end the connection.
  const admin = await startAdmin(t, { serverOptions: { ...QUICK, headersTimeout: 500, requestTimeout: 600 } })
  const received: Buffer[] = []
  admin.deck.fleet = fake<AppFleet>({ async push (digest: string, archive: AsyncIterable<Buffer>) {
    for await (const chunk of archive) received.push(chunk)
    return { digest, bytes: 2, pushedAt: '2026-01-01T00:00:00.000Z', actor: null, isNew: true }
  } })
  const begin = (path: string, type: string) => {
    const request = http.request(`${admin.url}${path}`, { method: 'POST', agent: false,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': type, 'content-length': 2 } })
    const answered = once(request, 'response').then(([{ statusCode }]) => statusCode)
    request.write('a')
    return { request, answered }
  }
  const pushed = begin(`/api/v1/fleet/releases?digest=sha256:${'0'.repeat(64)}`, 'application/gzip')
  for (let more = 0; more < 2; more++) assert.equal(await begin('/api/v1/rollouts', 'application/json').answered, 408)
  pushed.request.end('b')
  assert.equal(await pushed.answered, 201)
  assert.equal(Buffer.concat(received).toString(), 'ab')
})
