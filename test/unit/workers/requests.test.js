import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BOUNDS_MS } from '../../../workers/histogram.js'
import { STATUS_CLASSES } from '../../../workers/protocol.js'
import { watchRequests } from '../../../workers/requests.js'

/**
 * A server that answers when it is told to, watched as inside a worker.
 * @param {import('node:test').TestContext} t
 */
async function setUp (t) {
  const clock = { ms: 0 }
  const requests = watchRequests({ now: () => clock.ms })
  const server = http.createServer().listen(0)
  t.after(() => {
    requests.stop()
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  return {
    requests,
    server,
    clock,
    /** @returns {Promise<[http.IncomingMessage, http.ServerResponse]>} */
    nextRequest: () => /** @type {any} */ (once(server, 'request')),
    connect: () => net.connect(port, '127.0.0.1').on('error', () => {})
  }
}

/** @param {ReturnType<typeof watchRequests>} requests */
function classesOf (requests) {
  const { statuses, latency } = requests.take()
  const answered = latency.filter((_, index) => index % 2 === 1).reduce((a, b) => a + b, 0)
  return { ...Object.fromEntries(STATUS_CLASSES.map((name, index) => [name, statuses[index]]).filter(([, count]) => count !== 0)), answered }
}

test('counts answers by class, each with the time it took', async (t) => {
  const { requests, clock, nextRequest, connect } = await setUp(t)
  const socket = connect()
  for (const [status, ms] of [[200, 5], [204, 5], [301, 50], [404, 50], [503, 500], [700, 500]]) {
    const asked = nextRequest()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const [, response] = await asked
    clock.ms += ms
    response.writeHead(status).end()
    await once(response, 'finish')
  }
  const { statuses, latency, latencySumMs } = requests.take()
  assert.deepEqual(statuses, [2, 1, 1, 1, 1, 0])
  assert.deepEqual(latency, [BOUNDS_MS.indexOf(5), 2, BOUNDS_MS.indexOf(50), 2, BOUNDS_MS.indexOf(500), 2])
  assert.equal(latencySumMs, 1110)
  assert.deepEqual(requests.take(), { statuses: [0, 0, 0, 0, 0, 0], latency: [], latencySumMs: 0 })
})

test('knows what is not answered yet, oldest first, and shows no query', async (t) => {
  const { requests, clock, nextRequest, connect } = await setUp(t)
  const responses = []
  for (const target of ['/old?token=secret', '/new']) {
    const asked = nextRequest()
    connect().write(`POST ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
    responses.push((await asked)[1])
    clock.ms += 100
  }
  assert.deepEqual(requests.inFlight(), [
    { method: 'POST', path: '/old', ageMs: 200, response: responses[0] },
    { method: 'POST', path: '/new', ageMs: 100, response: responses[1] }
  ])
  assert.equal(requests.count(), 2)
  for (const response of responses) {
    response.end()
    await once(response, 'finish')
  }
  assert.deepEqual(requests.inFlight(), [])
  assert.equal(requests.count(), 0)
})

test('a request whose connection goes first is aborted, and leaves nothing behind', async (t) => {
  const { requests, nextRequest, connect } = await setUp(t)
  const asked = nextRequest()
  const socket = connect()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [, response] = await asked
  const closed = once(response, 'close')
  socket.resetAndDestroy()
  await closed
  assert.equal(requests.count(), 0)
  assert.deepEqual(requests.inFlight(), [])
  response.end('too late')
  await new Promise((resolve) => { setImmediate(resolve) })
  assert.deepEqual(classesOf(requests), { aborted: 1, answered: 0 })
})

test('nothing is kept of a connection that has gone', async (t) => {
  const { server, nextRequest, connect } = await setUp(t)
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc')
  const kept = await (async () => {
    const asked = nextRequest()
    const socket = connect()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const [request] = await asked
    const [symbol] = Object.getOwnPropertySymbols(request.socket).filter(({ description }) => description === 'clusterdeck.connection')
    const closed = once(request.socket, 'close')
    socket.destroy()
    await closed
    return new WeakRef(/** @type {any} */ (request.socket)[symbol])
  })()
  server.removeAllListeners('request')
  for (let n = 0; n < 20 && kept.deref(); n++) {
    await new Promise((resolve) => { setImmediate(resolve) })
    collectGarbage()
  }
  assert.equal(kept.deref(), undefined)
})

test('a client that pipelines is counted request by request, however its connection ends', async (t) => {
  const { requests, server, clock, connect } = await setUp(t)
  /** @type {http.ServerResponse[]} */
  const responses = []
  const allAsked = new Promise((resolve) => server.on('request', (_request, response) => { if (responses.push(response) === 4) resolve(undefined) }))
  const socket = connect()
  socket.write([1, 2, 3, 4].map((n) => `GET /${n} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  await allAsked
  // Answered out of order, sent in order.
  clock.ms = 50
  responses[1].end()
  assert.deepEqual(requests.inFlight().map(({ path }) => path), ['/1', '/2', '/3', '/4'])
  clock.ms = 100
  responses[0].end()
  await once(responses[1], 'finish')
  assert.deepEqual(requests.inFlight().map(({ path }) => path), ['/3', '/4'])
  const closed = once(responses[2], 'close')
  socket.destroy()
  await closed
  assert.deepEqual(classesOf(requests), { '2xx': 2, answered: 2, aborted: 2 })
  assert.equal(requests.count(), 0)
})

test('an upgrade is no request that is never answered', async (t) => {
  const { requests, server, connect } = await setUp(t)
  server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'))
  const socket = connect()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  await once(socket.resume(), 'close')
  assert.deepEqual([requests.count(), classesOf(requests)], [0, { answered: 0 }])
})

const TELLS_OF_HTTP2 = Number(process.versions.node.split('.')[0]) >= 24

test('counts the streams of HTTP/2, answered and reset', { skip: !TELLS_OF_HTTP2 && 'this version of Node does not tell of them' }, async (t) => {
  const requests = watchRequests()
  const server = http2.createServer((request, response) => { if (request.url !== '/slow') response.writeHead(404).end() }).listen(0)
  await once(server, 'listening')
  const session = http2.connect(`http://localhost:${/** @type {net.AddressInfo} */ (server.address()).port}`)
  t.after(() => {
    requests.stop()
    session.destroy()
    server.close()
  })
  const quick = session.request({ ':path': '/quick' })
  await once(quick.resume(), 'close')
  const slow = session.request({ ':path': '/slow?secret' }).on('error', () => {})
  const [stream] = await once(server, 'stream')
  assert.deepEqual(requests.inFlight().map(({ method, path, response }) => [method, path, response]), [['GET', '/slow', null]])
  const closed = once(stream, 'close')
  slow.close(http2.constants.NGHTTP2_CANCEL)
  await closed
  assert.deepEqual([requests.count(), requests.inFlight(), classesOf(requests)], [0, [], { '4xx': 1, answered: 1, aborted: 1 }])
})
