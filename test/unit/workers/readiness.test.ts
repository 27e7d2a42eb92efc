import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { isHttp } from '../../../workers/listen.ts'
import { createProbeClient } from '../../../workers/probe-client.ts'
import { createReadiness } from '../../../workers/readiness.ts'
import { listening } from '../../support/listening.ts'
import type { ProbeSettings } from '../../../workers/protocol.ts'

type Report = { probe: string, warmupFailed: string | null }

/** Asks servers of this process as a worker asks its own. */
function setUp (t: TestContext, settings: Partial<ProbeSettings> = {}) {
  const seen: string[] = []
  const { promise: ready, resolve: tellReady }: PromiseWithResolvers<Report> = Promise.withResolvers()
  const all = { path: '/health', status: ['200-399'], intervalMs: 10, timeoutMs: 10_000, warmup: [], warmupRounds: 1,
    ...settings }
  const readiness = createReadiness(all, { createClient: createProbeClient, onSeen: (text) => {
    seen.push(text)
  }, onReady: tellReady })
  t.after(readiness.stop)
  return {
    readiness,
    seen,
    ready,
    /** @returns it listens, and that is told */
    async listen<T extends net.Server> (server: T): Promise<T> {
      await listening(t, server)
      if (isHttp(server)) readiness.listening(server, 'http://localhost:3000')
      return server
    }
  }
}

const serverOf = (listener: http.RequestListener) => http.createServer(listener)

test('asks again until the status is one of those wanted', async (t) => {
  const { readiness, seen, ready, listen } = setUp(t, { status: ['204', '300-301'] })
  const statuses = [500, 200, 203, 302, 301]
  readiness.begin()
  await listen(serverOf((_request, response) => {
    response.statusCode = Number(statuses.shift())
    response.end(`${statuses.length} left`)
  }))
  assert.deepEqual(await ready, { probe: 'GET /health answered 301 at try 5', warmupFailed: null })
  assert.deepEqual(seen, ['GET /health answered 500 (4 left)', 'GET /health answered 200 (3 left)',
    'GET /health answered 203 (2 left)', 'GET /health answered 302 (1 left)'])
})

test('says what became of a try without an answer: none in time, half of one, a closed connection', async (t) => {
  const { readiness, seen, ready, listen } = setUp(t, { timeoutMs: 500 })
  const misdeeds = [() => {}, (response: http.ServerResponse) => {
    response.write('half')
  }, (response: http.ServerResponse) => {
    response.socket?.destroy()
  }, (response: http.ServerResponse) => {
    response.write('half', () => response.socket?.destroy())
  }, (response: http.ServerResponse) => {
    response.end()
  }]
  readiness.begin()
  await listen(serverOf((_request, response) => {
    misdeeds.shift()?.(response)
  }))
  assert.equal((await ready).probe, 'GET /health answered 200 at try 5')
  assert.match(seen.join('\n'),
    /^GET \/health: no answer within 500 ms\nGET \/health: answered 200, but not to its end within 500 ms\nGET \/health: socket hang up\nGET \/health: .*(aborted|closed before the end)/)
})

test('of an answer it takes the first 200 characters, on one line and without control characters', async (t) => {
  const { readiness, seen, ready, listen } = setUp(t)
  let asked = 0
  readiness.begin()
  await listen(serverOf((_request, response) => {
    response.statusCode = asked++ > 0 ? 200 : 503
    response.end(`\u001b[31mred\r\n\u0000${'long '.repeat(100_000)}`)
  }))
  await ready
  assert.ok(seen[0].startsWith('GET /health answered 503 ([31mred long long'), seen[0])
  assert.ok(seen[0].length < 240, String(seen[0].length))
})

test('asks nobody before it is told to, nor a server that does not speak HTTP, and goes on with the next where one is closed', async (t) => {
  const { readiness, seen, ready, listen } = setUp(t)
  await listen(net.createServer(() => assert.fail('not HTTP')))
  let asked = 0
  const first = await listen(serverOf((_request, response) => {
    asked++
    response.statusCode = 503
    response.end(() => first.close())
  }))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(asked, 0)
  readiness.begin()
  await once(first, 'close')
  await listen(serverOf((_request, response) => response.end()))
  assert.match((await ready).probe, /^GET \/health answered 200 at try [23]$/)
  assert.equal(seen[0], 'GET /health answered 503')
})

test('without a path there is the warm-up alone', async (t) => {
  const { readiness, ready, listen } = setUp(t, { path: null, warmup: ['/a'] })
  readiness.begin()
  await listen(serverOf((_request, response) => response.end()))
  assert.match((await ready).probe, /^1 warm-up request took \d+ ms$/)
})

test('a warm-up is made in order, as often as wanted, and its failures are told once each', async (t) => {
  const { readiness, ready, listen } = setUp(t, { warmup: ['/a', '/hangs', '/fails', '/missing'], warmupRounds: 3,
    timeoutMs: 500 })
  const asked: string[] = []
  readiness.begin()
  await listen(serverOf(({ url }, response) => {
    asked.push(String(url))
    if (url === '/hangs') return
    response.statusCode = url === '/fails' ? 500 : url === '/missing' ? 404 : 200
    response.end()
  }))
  const { probe, warmupFailed } = await ready
  assert.match(probe, /^GET \/health answered 200; 12 warm-up requests took \d+ ms$/)
  assert.equal(warmupFailed,
    '6 of 12 warm-up requests failed: GET /hangs: no answer within 500 ms; GET /fails answered 500')
  const round = ['/a', '/hangs', '/fails', '/missing']
  assert.deepEqual(asked, ['/health', ...round, ...round, ...round])
})

test('one connection serves all, is a socket to the app, and is gone when all is asked', async (t) => {
  const { readiness, ready, listen } = setUp(t, { warmup: ['/1', '/2', '/3'] })
  const sockets: net.Socket[] = []
  readiness.begin()
  const server = serverOf((request, response) => response.end(JSON.stringify(request.socket.address())))
  server.on('connection', (socket) => sockets.push(socket))
  await listen(server)
  await ready
  const [socket, ...others] = sockets
  assert.deepEqual([others, socket instanceof net.Socket, socket.remoteAddress, socket.localPort], [[], true,
    '127.0.0.1', 3000])
  if (!socket.closed) await once(socket, 'close')
  assert.ok(socket.bytesRead > 400 && socket.bytesWritten > 400, `${socket.bytesRead} ${socket.bytesWritten}`)
})

test('carries more than fits into buffers, both ways of closing', async (t) => {
  const { readiness, ready, listen } = setUp(t, { warmup: ['/a', '/a'] })
  const body = Buffer.alloc(5_000_000, 'x')
  readiness.begin()
  await listen(serverOf((_request, response) => {
    response.setHeader('connection', 'close')
    response.end(body)
  }))
  assert.match((await ready).probe, /answered 200; 2 warm-up/)
})

test('an HTTP/2 server that refuses a stream is asked again, over another session where that is gone', async (t) => {
  const { readiness, seen, ready, listen } = setUp(t)
  const server = http2.createServer()
  let asked = 0
  server.on('stream', (stream) => {
    asked++
    stream.on('error', () => {})
    if (asked === 1) return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM)
    if (asked === 2) return stream.session?.destroy()
    stream.respond({ ':status': 200 })
    stream.end(String(stream.session?.socket.remoteAddress))
  })
  readiness.begin()
  await listen(server)
  assert.equal((await ready).probe, 'GET /health answered 200 at try 3')
  assert.equal(seen.length, 2, seen.join('\n'))
})

test('asks no more once it is stopped, not even by a try that is under way', async (t) => {
  const { readiness, seen, listen } = setUp(t)
  let asked = 0
  readiness.begin()
  const answered = new Promise((resolve) => {
    listen(serverOf((_request, response) => {
      asked++
      readiness.stop()
      response.on('close', resolve)
    }))
  })
  await answered
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.deepEqual([asked, seen], [1, []])
})
