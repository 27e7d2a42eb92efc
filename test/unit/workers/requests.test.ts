import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { PassThrough } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import tls from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BOUNDS_MS } from '../../../workers/histogram.ts'
import { STATUS_CLASSES } from '../../../workers/protocol.ts'
import { watchRequests } from '../../../workers/requests.ts'
import { listening } from '../../support/listening.ts'
import { until } from '../../support/until.ts'

/** A server that answers when it is told to, watched as inside a worker. */
async function setUp (t: TestContext) {
  const clock = { ms: 0 }
  const requests = watchRequests({ now: () => clock.ms })
  const server = http.createServer()
  const port = await listening(t, server)
  t.after(() => {
    requests.stop()
    server.closeAllConnections()
  })
  return { requests, server, clock,
    nextRequest: () => once(server, 'request') as Promise<[http.IncomingMessage, http.ServerResponse]>,
    connect: () => net.connect(port, '127.0.0.1').on('error', () => {}) }
}

function classesOf (requests: ReturnType<typeof watchRequests>) {
  const { statuses, latency } = requests.take()
  const answered = latency.filter((_, index) => index % 2 === 1).reduce((a, b) => a + b, 0)
  return {
    ...Object.fromEntries(STATUS_CLASSES.map((name, index) => [name, statuses[index]]).filter(([, count]) =>
      count !== 0
    )),
    answered
  }
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
  assert.deepEqual(requests.inFlight(), [{ method: 'POST', path: '/old', ageMs: 200, response: responses[0] }, {
    method: 'POST',
    path: '/new',
    ageMs: 100,
    response: responses[1]
  }])
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
  await turn()
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
    const [symbol] = Object.getOwnPropertySymbols(request.socket).filter(({ description }) =>
      description === 'clusterdeck.connection'
    )
    const closed = once(request.socket, 'close')
    socket.destroy()
    await closed
    return new WeakRef((request.socket as object as Record<symbol, object>)[symbol])
  })()
  server.removeAllListeners('request')
  for (let n = 0; n < 20 && kept.deref(); n++) {
    await turn()
    collectGarbage()
  }
  assert.equal(kept.deref(), undefined)
})

test('a client that pipelines is counted request by request, however its connection ends', async (t) => {
  const { requests, server, clock, connect } = await setUp(t)
  const responses: http.ServerResponse[] = []
  const allAsked = new Promise((resolve) =>
    server.on('request', (_request, response) => {
      if (responses.push(response) === 4) resolve(undefined)
    })
  )
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

const readTls = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url))

/** What apps make of a server of HTTP. */
const SERVERS: Record<string, (answer: http.RequestListener) => net.Server> = {
  'of node:http': (answer) => http.createServer(answer),
  'with a class of answers of its own': (answer) =>
    http.createServer({ ServerResponse: class extends http.ServerResponse {} }, answer),
  'whose answers take their connections in their own way': (answer) => {
    class OwnResponse extends http.ServerResponse {}
    const { assignSocket } = http.ServerResponse.prototype
    Object.assign(OwnResponse.prototype, { assignSocket: function (this: http.ServerResponse, socket: net.Socket) {
      assignSocket.call(this, socket)
    } })
    return http.createServer({ ServerResponse: OwnResponse }, answer)
  },
  'that gets its connections from another': (answer) => {
    const server = http.createServer(answer)
    return net.createServer((socket) => server.emit('connection', socket))
  },
  'of TLS': (answer) => https.createServer({ key: readTls('key'), cert: readTls('cert') }, answer)
}

for (const [kind, create] of Object.entries(SERVERS)) {
  test(`counts every request of a server ${kind} once`, async (t) => {
    const requests = watchRequests()
    const server = create((request, response) => {
      if (request.url === '/never') return request.socket.destroy()
      response.writeHead(request.url === '/missing' ? 404 : 200).end('.')
    })
    t.after(requests.stop)
    const port = await listening(t, server)
    const socket = kind === 'of TLS'
      ? tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : net.connect(port, '127.0.0.1')
    let answers = 0
    socket.setEncoding('latin1').on('data', (text) => {
      answers += String(text).split('HTTP/1.1 ').length - 1
    })
    const ask = async (...paths: string[]) => {
      const wanted = answers + paths.length
      socket.write(
        paths.map((path) =>
          `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n`.replace(/Expect.*?\n/,
            path === '/continue' ? '$&' : '')
        ).join('')
      )
      while (answers < wanted + paths.filter((path) => path === '/continue').length) await once(socket, 'data')
    }
    for (let n = 0; n < 20; n++) await ask(n % 4 === 0 ? '/missing' : '/')
    if (kind === 'of node:http')
      assert.equal(diagnostics.hasSubscribers('http.server.request.start'), false, 'Node builds no message for each')
    await ask('/continue')
    await ask('/', '/missing', '/', '/')
    await ask('/')
    // Node knows that the last byte of TLS is out when the system says so, which may be after the client has it.
    await until(() => requests.count() === 0, 'the last answer to count')
    const closed = once(socket, 'close')
    socket.on('error', () => {}).write('GET /never HTTP/1.1\r\nHost: x\r\n\r\n')
    await closed
    await turn()
    assert.deepEqual([requests.count(), classesOf(requests)], [0, { '2xx': 20, '4xx': 6, answered: 26, aborted: 1 }])
  })
}

test('an answer that is given no connection of a client, as tests of an app make them, is none', async (t) => {
  const { requests, nextRequest, connect } = await setUp(t)
  const asked = nextRequest()
  connect().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [request, response] = await asked
  response.end()
  await once(response, 'finish')
  await turn()
  const made = new http.ServerResponse(request)
  made.assignSocket(new PassThrough() as object as net.Socket)
  assert.deepEqual([requests.count(), classesOf(requests)], [0, { '2xx': 1, answered: 1 }])
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

test('counts the streams of HTTP/2, answered and reset', {
  skip: !TELLS_OF_HTTP2 && 'this version of Node does not tell of them'
}, async (t) => {
  const requests = watchRequests()
  const server = http2.createServer((request, response) => {
    if (request.url !== '/slow') response.writeHead(404).end()
  })
  const session = http2.connect(`http://127.0.0.1:${await listening(t, server)}`)
  t.after(() => {
    requests.stop()
    session.destroy()
  })
  const quick = session.request({ ':path': '/quick' })
  await once(quick.resume(), 'close')
  const slow = session.request({ ':path': '/slow?secret' }).on('error', () => {})
  const [stream] = await once(server, 'stream')
  assert.deepEqual(requests.inFlight().map(({ method, path, response }) => [method, path, response]), [['GET', '/slow',
    null]])
  const closed = once(stream, 'close')
  slow.close(http2.constants.NGHTTP2_CANCEL)
  await closed
  assert.deepEqual([requests.count(), requests.inFlight(), classesOf(requests)], [0, [], { '4xx': 1, answered: 1,
    aborted: 1 }])
})

test('the life of a WebSocket over HTTP/2 is no latency', {
  skip: !TELLS_OF_HTTP2 && 'this version of Node does not tell of them'
}, async (t) => {
  const requests = watchRequests()
  const server = http2.createServer({ settings: { enableConnectProtocol: true } })
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200 })
    stream.on('end', () => stream.end()).resume()
  })
  const session = http2.connect(`http://127.0.0.1:${await listening(t, server)}`)
  t.after(() => {
    requests.stop()
    session.destroy()
  })
  await once(session, 'remoteSettings')
  const socket = session.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/live' })
  await once(socket, 'response')
  assert.equal(requests.count(), 1)
  socket.resume().end()
  await once(socket, 'close')
  await until(() => requests.count() === 0, 'it has ended')
  assert.deepEqual(classesOf(requests), { answered: 0 })
})
