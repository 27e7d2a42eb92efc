import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Server as SocketServer } from 'socket.io'
import { io } from 'socket.io-client'
import WebSocket, { WebSocketServer } from 'ws'
import { createDrain } from '../../../workers/drain.ts'
import { createLatePorts } from '../../../workers/late-ports.ts'
import { watchRequests } from '../../../workers/requests.ts'
import { NO_SESSIONS } from '../../../workers/sessions.ts'
import { until } from '../../support/until.ts'
import type { Holds } from '../../../workers/protocol.ts'

const LIMITS = Object.freeze({ idleGraceMs: 100, deadlineMs: 60_000, stalledMs: 10_000, longLivedMs: 60_000,
  spreadMs: 0, isLast: false })

async function serve (t: TestContext, server: net.Server) {
  leaveNoSubscriptions(t)
  const requests = watchRequests()
  const told: Holds[] = []
  let isDrained = false
  const drain = createDrain({ requests, sessions: NO_SESSIONS,
    latePorts: createLatePorts({ isLate: () => false, connections: () => [] }), onStart () {},
    onHolds: (holds) => told.push(holds), onOverdue () {}, onDrained: () => {
      isDrained = true
    } })
  drain.watch(server)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)))
  t.after(() => server.close())
  const { port } = server.address() as net.AddressInfo
  const holds = () => told.at(-1)
  return { drain, port, told, holds, untilDrained: () => until(() => isDrained, 'the end of the drain') }
}

/** A worker drains once, so it never stops to tell every answer to be the last. */
function leaveNoSubscriptions (t: TestContext) {
  const { subscribe } = diagnostics
  t.mock.method(diagnostics, 'subscribe', (name: string, listener: () => void) => {
    subscribe(name, listener)
    t.after(() => diagnostics.unsubscribe(name, listener))
  })
}

test('a WebSocket of ws or socket.io, one that the app speaks itself and one that it passes on are kept, and closed with 1012 in the end', async (t) => {
  const server = http.createServer()
  const library = new WebSocketServer({ noServer: true })
  const sockets = new SocketServer({ transports: ['websocket'] })
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(data)))
  library.on('connection', (webSocket) => webSocket.on('message', (data) => webSocket.send(String(data))))
  const { drain, port, holds, untilDrained } = await serve(t, server)
  const upstream = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  upstream.on('connection', (webSocket) => webSocket.on('message', (data) => webSocket.send(String(data))))
  await once(upstream, 'listening')
  t.after(() => upstream.close())
  server.on('upgrade', (request, socket, head) => {
    if (request.url === '/ws')
      library.handleUpgrade(request, socket, head, (webSocket) => library.emit('connection', webSocket))
    if (request.url === '/own') answerUpgrade(request, socket as net.Socket)
    if (request.url === '/passed-on')
      passOn(request, socket as net.Socket, (upstream.address() as net.AddressInfo).port)
  })
  sockets.attach(server, { destroyUpgrade: false })
  const clients = await Promise.all(['/ws', '/own', '/passed-on'].map(async (path) => {
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`)
    await once(client, 'open')
    return client
  }))
  const socket = io(`http://127.0.0.1:${port}`, { transports: ['websocket'], reconnection: false })
  await new Promise((resolve) => socket.on('connect', () => resolve(null)))
  const closes = clients.map((client) => once(client, 'close').then(([code]) => code))
  const gone = new Promise((resolve) => socket.on('disconnect', (reason) => resolve(reason)))

  drain.start(LIMITS)
  assert.deepEqual(holds(), { requests: 0, transfers: 0, webSockets: 4, eventStreams: 0, connections: 0, sessions: 0 })
  const echoes = clients.map((client) => once(client, 'message').then(([data]) => String(data)))
  for (const client of clients) client.send('still here')
  assert.deepEqual(await Promise.all(echoes), ['still here', 'still here', 'still here'])
  drain.endConnections({ spreadMs: 0, isLast: false })
  assert.deepEqual(await Promise.all(closes), [1012, 1012, 1012])
  assert.equal(await gone, 'transport close')
  await untilDrained()
  assert.deepEqual(drain.unfinished(), { requests: 0, connections: 0, stalled: 0,
    closed: { webSockets: 4, eventStreams: 0, connections: 0 } })
})

test('a WebSocket over TLS is closed with 1001 where nobody serves after the worker, and one that is not agreed to yet just ends', async (t) => {
  const read = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url))
  const server = https.createServer({ key: read('key'), cert: read('cert') })
  const { drain, port, told, untilDrained } = await serve(t, server)
  server.on('upgrade', (request, socket) => {
    if (request.url === '/own') answerUpgrade(request, socket as net.Socket)
  })
  const [open, pending] = ['/own', '/pending'].map((path) =>
    new WebSocket(`wss://127.0.0.1:${port}${path}`, { rejectUnauthorized: false })
  )
  pending.on('error', () => {})
  let upgrades = 0
  server.on('upgrade', () => upgrades++)
  await Promise.all([once(open, 'open'), until(() => upgrades === 2, 'both upgrades')])
  const closes = [open, pending].map((client) => new Promise((resolve) => client.on('close', resolve)))
  drain.start({ ...LIMITS, longLivedMs: 0, isLast: true })
  assert.deepEqual(await Promise.all(closes), [1001, 1006])
  await untilDrained()
  assert.deepEqual([told[0].webSockets, drain.unfinished()?.closed?.webSockets], [2, 2])
})

test('a WebSocket is closed with 1012 within the time that an exception leaves, also where its worker drains already', async (t) => {
  const servers = await Promise.all([1, 2].map(async () => {
    const server = http.createServer()
    const webSockets = new WebSocketServer({ server })
    t.after(() => webSockets.close())
    const { drain, port, untilDrained } = await serve(t, server)
    const client = new WebSocket(`ws://127.0.0.1:${port}`)
    await once(client, 'open')
    return { drain, untilDrained, close: once(client, 'close') }
  }))
  assert.deepEqual(servers.map(({ drain }) => drain.holdsLongLived()), [true, true])
  servers[0].drain.start(LIMITS)
  for (const { drain, close, untilDrained } of servers) {
    drain.endWithin(300)
    assert.equal((await close)[0], 1012)
    await untilDrained()
    assert.equal(drain.holdsLongLived(), false)
  }
})

test('event streams of HTTP/1 and HTTP/2 and a connection of another protocol are kept, and end in a way that is no error to client or app', async (t) => {
  const seen = [] as string[]
  const sendEvents = (request: { httpVersion: string }, response: http.ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    const timer = setInterval(() => response.write('data: .\n\n'), 5)
    response.on('close', () => {
      clearInterval(timer)
      response.end('too late')
      seen.push(`close ${request.httpVersion}`)
    })
  }
  const drained = await Promise.all(
    [http.createServer(sendEvents), http2.createServer(sendEvents as object as Http2Listener),
      net.createServer((socket) => {
        const timer = setInterval(() => socket.write('.'), 5)
        socket.on('close', (hadError) => seen.push(`close tcp ${hadError}`)).on('close', () => clearInterval(timer))
      })].map((server) => serve(t, server as net.Server))
  )
  const [one, two, other] = drained
  const session = http2.connect(`http://127.0.0.1:${two.port}`)
  const [response] = await once(http.get({ port: one.port }), 'response')
  const stream = session.request()
  const socket = net.connect({ port: other.port, host: '127.0.0.1' })
  await Promise.all([once(response, 'readable'), once(stream, 'response'), once(socket, 'readable')])
  for (const { drain } of drained) drain.start(LIMITS)
  assert.deepEqual(drained.map(({ holds }) => [holds()?.eventStreams, holds()?.connections, holds()?.requests]), [[1, 0,
    0], [1, 0, 0], [0, 1, 0]])
  const texts = [response, stream, socket].map((each) => text(each))
  for (const { drain } of drained) drain.endConnections({ spreadMs: 50, isLast: false })
  for (const each of await Promise.all(texts)) assert.match(each, /^((data: \.\n\n)+|\.+)$/)
  session.close()
  await Promise.all(drained.map(({ untilDrained }) => untilDrained()))
  assert.deepEqual(seen.sort(), ['close 1.1', 'close 2.0', 'close tcp false'])
})

test('a connection whose event stream its app has ended is asked again, as any other', async (t) => {
  const { drain, port, told, untilDrained } = await serve(t, http.createServer((request, response) => {
    response.writeHead(200, { 'content-type': request.url === '/' ? 'text/event-stream' : 'text/plain' })
    response.write('data: .\n\n')
    setTimeout(() => response.end(), request.url === '/' ? 300 : 0)
  }))
  const agent = new http.Agent({ keepAlive: true })
  const [events] = await once(http.get({ port, agent }), 'response')
  drain.start({ ...LIMITS, idleGraceMs: 60_000 })
  await Promise.all([text(events), once(agent, 'free')])
  const again = http.get({ port, agent, path: '/again' })
  const [response] = await once(again, 'response')
  assert.deepEqual([again.reusedSocket, response.headers.connection, await text(response)], [true, 'close',
    'data: .\n\n'])
  await untilDrained()
  assert.equal(told[0].eventStreams, 1)
})

test('at the deadline an upload and a download that still move go on, what has stopped or never moved is cut, over HTTP/1 and HTTP/2', async (t) => {
  const megabytes = Buffer.alloc(24_000_000)
  const answer = async (request: http.IncomingMessage | http2.Http2ServerRequest,
    response: http.ServerResponse | http2.Http2ServerResponse) =>
  {
    if (request.url === '/download') return response.end(megabytes)
    if (request.url === '/wait') return
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    }).on('end', () => response.end(String(bytes))).on('error', () => {})
  }
  const servers = await Promise.all(
    [http.createServer(answer), http2.createServer({ maxSessionMemory: 100 }, answer)].map((server) =>
      serve(t, server as net.Server)
    )
  )
  const clients = [clientOf1(servers[0].port), clientOf2(t, servers[1].port)]
  const ends = clients.map((send) => ({ moving: upload(send('/upload')), stopping: upload(send('/upload'), 4),
    download: download(send('/download')), waiting: download(send('/wait')) })
  )
  await wait(200)
  for (const { drain } of servers) drain.start({ ...LIMITS, deadlineMs: 1500, stalledMs: 2000 })
  for (const { moving, stopping, download, waiting } of ends) {
    assert.deepEqual(await Promise.all([moving, stopping, download, waiting]), ['30000', 'cut',
      String(megabytes.length), 'cut'])
  }
  await Promise.all(servers.map(({ untilDrained }) => untilDrained()))
  assert.deepEqual(servers.map(({ drain }) => drain.unfinished()?.requests), [2, 2])
  assert.ok(servers[0].told.some(({ transfers }) => transfers > 0), JSON.stringify(servers[0].told))
})

test('a transfer that still moves when its time is over is cut, and nobody says that it had stopped', async (t) => {
  const { drain, port, untilDrained } = await serve(t, http.createServer((_request, response) => {
    const timer = setInterval(() => response.write('.'), 10)
    response.on('close', () => clearInterval(timer))
  }))
  const end = download(clientOf1(port)('/'))
  await wait(200)
  drain.start({ ...LIMITS, deadlineMs: 300, longLivedMs: 400, spreadMs: 100 })
  assert.equal(await end, 'cut')
  await untilDrained()
  assert.deepEqual(drain.unfinished(), { requests: 1, connections: 1, stalled: 0,
    closed: { webSockets: 0, eventStreams: 0, connections: 0 } })
})

type Http2Listener = (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => void
type Client = (path: string) => http.ClientRequest | http2.ClientHttp2Stream

function clientOf1 (port: number): Client {
  const agent = new http.Agent()
  return (path) => http.request({ port, path, agent, method: path === '/upload' ? 'POST' : 'GET' })
}

function clientOf2 (t: TestContext, port: number): Client {
  const session = http2.connect(`http://127.0.0.1:${port}`).on('error', () => {})
  t.after(() => session.destroy())
  return (path) => session.request({ ':path': path, ':method': path === '/upload' ? 'POST' : 'GET' })
}

/** Sends 1,000 bytes every 100 ms. Returns the answer, or `cut`. */
async function upload (request: ReturnType<Client>, pieces: number = 30): Promise<string> {
  const end = download(request, false)
  for (let piece = 0; piece < pieces; piece++) {
    request.write(Buffer.alloc(1000))
    await wait(100)
  }
  if (pieces === 30) request.end()
  return end
}

/** Reads slowly. Returns the number of bytes, or what came if it is short, or `cut`. */
async function download (request: ReturnType<Client>, isWhole: boolean = true): Promise<string> {
  if (isWhole) request.end()
  try {
    const response = 'session' in request
      ? request
      : await new Promise<http.IncomingMessage>((resolve, reject) =>
        request.once('response', resolve).once('error', reject)
      )
    let bytes = 0
    let last = ''
    for await (const chunk of response) {
      bytes += chunk.length
      last = String(chunk.subarray(0, 10))
      await wait(isWhole ? 3 : 0)
    }
    if ('rstCode' in request && Number(request.rstCode) > 0) return 'cut'
    return isWhole ? String(bytes) : last
  } catch {
    return 'cut'
  }
}

/** Echoes short frames, without a library that clusterdeck would know. */
function answerUpgrade (request: http.IncomingMessage, socket: net.Socket) {
  const accept = createHash('sha1').update(
    `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  ).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
  )
  socket.on('data', ([first, second, ...rest]) => {
    const [mask, payload] = [rest.slice(0, 4), rest.slice(4)]
    if (first === 0x81)
      socket.write(Buffer.from([first, second & 0x7f, ...payload.map((byte, index) => byte ^ mask[index % 4])]))
  })
}

/** As a proxy does. */
function passOn (request: http.IncomingMessage, socket: net.Socket, port: number) {
  const upstream = http.request({ port, headers: request.headers }).on('upgrade', (answer, other) => {
    const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`)
    socket.write(['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n'))
    other.pipe(socket).pipe(other)
    other.on('error', () => {})
    socket.on('error', () => {})
  })
  upstream.end()
}
