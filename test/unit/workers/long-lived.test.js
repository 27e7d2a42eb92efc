import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import { test } from 'node:test'
import { Server as SocketServer } from 'socket.io'
import { io } from 'socket.io-client'
import WebSocket, { WebSocketServer } from 'ws'
import { createDrain } from '../../../workers/drain.js'
import { watchRequests } from '../../../workers/requests.js'
import { until } from '../../support/until.js'

const LIMITS = Object.freeze({ idleGraceMs: 100, deadlineMs: 60_000, stalledMs: 10_000, longLivedMs: 60_000, spreadMs: 0, isLast: false })

/** @param {import('node:test').TestContext} t @param {import('node:net').Server} server */
async function serve (t, server) {
  const requests = watchRequests()
  /** @type {import('../../../workers/protocol.js').Holds[]} */
  const told = []
  let isDrained = false
  const drain = createDrain({ requests, onStart () {}, onHolds: (holds) => told.push(holds), onOverdue () {}, onDrained: () => { isDrained = true } })
  drain.watch(server)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)))
  t.after(() => {
    requests.stop()
    server.close()
  })
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const holds = () => told.at(-1)
  return { drain, port, told, holds, untilDrained: () => until(() => isDrained, 'the end of the drain') }
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
    if (request.url === '/ws') library.handleUpgrade(request, socket, head, (webSocket) => library.emit('connection', webSocket))
    if (request.url === '/own') answerUpgrade(request, /** @type {import('node:net').Socket} */ (socket))
    if (request.url === '/passed-on') passOn(request, /** @type {import('node:net').Socket} */ (socket), /** @type {import('node:net').AddressInfo} */ (upstream.address()).port)
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
  assert.deepEqual(holds(), { requests: 0, transfers: 0, webSockets: 4, eventStreams: 0, connections: 0 })
  const echoes = clients.map((client) => once(client, 'message').then(([data]) => String(data)))
  for (const client of clients) client.send('still here')
  assert.deepEqual(await Promise.all(echoes), ['still here', 'still here', 'still here'])
  drain.endConnections({ spreadMs: 0, isLast: false })
  assert.deepEqual(await Promise.all(closes), [1012, 1012, 1012])
  assert.equal(await gone, 'transport close')
  await untilDrained()
  assert.deepEqual(drain.unfinished(), { requests: 0, connections: 0, stalled: 0, closed: { webSockets: 4, eventStreams: 0, connections: 0 } })
})

/** Echoes short frames, in 30 lines less than a library. @param {http.IncomingMessage} request @param {import('node:net').Socket} socket */
function answerUpgrade (request, socket) {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
  socket.on('data', ([first, second, ...rest]) => {
    const [mask, payload] = [rest.slice(0, 4), rest.slice(4)]
    if (first === 0x81) socket.write(Buffer.from([first, second & 0x7f, ...payload.map((byte, index) => byte ^ mask[index % 4])]))
  })
}

/** As a proxy does. @param {http.IncomingMessage} request @param {import('node:net').Socket} socket @param {number} port */
function passOn (request, socket, port) {
  const upstream = http.request({ port, headers: request.headers }).on('upgrade', (answer, other) => {
    const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`)
    socket.write(['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n'))
    other.pipe(socket).pipe(other)
    other.on('error', () => {})
    socket.on('error', () => {})
  })
  upstream.end()
}
