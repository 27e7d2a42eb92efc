import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { describe, test } from 'node:test'
import WebSocket from 'ws'
import { startDeck } from '../support/deck.js'

/** Runs an app on two workers, and gives it back ended. */
async function withDeck (/** @type {string} */ app, /** @type {Parameters<typeof startDeck>[1]} */ options, /** @type {(deck: import('../support/deck.js').Deck, url: string) => Promise<void>} */ use) {
  const deck = await startDeck(app, options)
  try {
    await deck.until({ ready: 2 })
    await use(deck, await deck.appUrl())
  } finally {
    await deck.stop()
  }
}

/** @returns {Promise<string>} */
function get (/** @type {string} */ url, /** @type {http.RequestOptions} */ options = {}) {
  const { get } = url.startsWith('https') ? https : http
  return new Promise((resolve, reject) => {
    get(url, { agent: false, ...options }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text) => { body += text }).on('end', () => resolve(body))
    }).on('error', reject)
  })
}

/** Rolls all workers, and asks again: another process must answer on the same address. */
async function answersAfterDeploy (/** @type {import('../support/deck.js').Deck} */ deck, /** @type {() => Promise<string>} */ ask) {
  const before = (await deck.status()).workers.map((/** @type {any} */ { pid }) => String(pid))
  const rollout = await deck.rollout('deploy')
  assert.equal(rollout.state, 'succeeded', rollout.reason)
  const answer = await ask()
  const pid = answer.match(/\d+/)?.[0]
  assert.ok(pid && !before.includes(pid), `${answer} comes from a new worker`)
}

describe('unmodified apps', { concurrency: 2 }, () => {
  test('express, with port 0 shared by all workers', async () => {
    await withDeck('express-app.cjs', {}, async (deck, url) => {
      const { app, workers } = await deck.status()
      assert.equal(app.addresses.length, 1, 'both workers have the same port')
      const { pid, isMain } = JSON.parse(await get(url))
      assert.equal(isMain, true)
      assert.ok(workers.some((/** @type {any} */ worker) => worker.pid === pid))
      await answersAfterDeploy(deck, () => get(url))
    })
  })

  test('a Fastify ES module on localhost answers on 127.0.0.1 and on ::1', async () => {
    const port = await freePort()
    await withDeck('fastify-on-localhost.js', { env: { PORT: String(port) } }, async (deck) => {
      const { app } = await deck.status()
      const hosts = app.addresses.map((/** @type {string} */ address) => new URL(address).hostname).sort()
      for (const host of hosts) assert.match(await get(`http://${host}:${port}/`), /"pid":\d+/)
      assert.deepEqual(hosts, hasIPv6Loopback() ? ['127.0.0.1', '[::1]'] : ['127.0.0.1'])
      await answersAfterDeploy(deck, () => get(`http://127.0.0.1:${port}/`))
    })
  })

  test('an app that serves only as the main module gets its arguments too', async () => {
    await withDeck('serves-only-as-main-module.cjs', { args: ['--colour', 'blue'] }, async (deck, url) => {
      assert.deepEqual(JSON.parse(await get(url)).argv, ['--colour', 'blue'])
      await answersAfterDeploy(deck, () => get(url))
    })
  })

  test('https', async () => {
    await withDeck('https-app.js', {}, async (deck, url) => {
      assert.match(url, /^https:/)
      await answersAfterDeploy(deck, () => get(url, { rejectUnauthorized: false }))
    })
  })

  test('https: a session ticket of one worker is good for every other', async () => {
    await withDeck('https-app.js', {}, async (deck, url) => {
      const { port } = new URL(url)
      const { session } = await tlsGet(Number(port))
      const answers = await Promise.all(Array.from({ length: 12 }, () => tlsGet(Number(port), session)))
      assert.ok(new Set(answers.map(({ body }) => body)).size > 1, 'both workers have answered')
      assert.deepEqual(answers.map(({ isReused }) => isReused), answers.map(() => true))
    })
  })

  test('http2: a stream that is open when its worker drains is answered, and the next session reaches a new worker', async () => {
    await withDeck('http2-app.js', {}, async (deck, url) => {
      const session = http2.connect(url)
      const slow = http2Get(session, '/?ms=1500')
      await answersAfterDeploy(deck, () => {
        const next = http2.connect(url)
        return http2Get(next, '/').finally(() => next.close())
      })
      assert.match(await slow, /^\d+$/)
      assert.ok(session.closed, 'the server has said goodbye')
    })
  })

  test('a Unix socket, whose path is there until the master ends', async () => {
    const socketPath = path.join(await mkdtemp(path.join(os.tmpdir(), 'clusterdeck-sock-')), 'app.sock')
    const deck = await startDeck('unix-socket.js', { env: { SOCKET_PATH: socketPath } })
    await deck.until({ ready: 2 })
    assert.deepEqual((await deck.status()).app.addresses, [`unix:${socketPath}`])
    const ask = () => get('http://app/', { socketPath })
    await answersAfterDeploy(deck, ask)
    await answersAfterDeploy(deck, ask)
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
    await assert.rejects(ask(), { code: 'ENOENT' })
  })

  test('a WebSocket echo', async () => {
    await withDeck('websocket-echo.js', {}, async (deck, url) => {
      const echo = async () => {
        const socket = new WebSocket(url.replace('http', 'ws'))
        await once(socket, 'open')
        socket.send('hello')
        const [data] = await once(socket, 'message')
        socket.close()
        await once(socket, 'close')
        return String(data)
      }
      assert.match(await echo(), /^\d+ hello$/)
      await answersAfterDeploy(deck, echo)
    })
  })

  test('a plain TCP server', async () => {
    await withDeck('net-echo.js', {}, async (deck, url) => {
      assert.match(url, /^tcp:\/\/127\.0\.0\.1:\d+$/)
      const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
      socket.end('over and out')
      const [data] = await once(socket, 'data')
      assert.equal(String(data), 'over and out')
    })
  })

  test('exclusive servers and UDP sockets stay with their worker, a second shared server gets a port of its own', async () => {
    await withDeck('shares-and-keeps.js', {}, async (deck) => {
      const { app } = await deck.untilStatus(({ app }) => app.addresses.length === 4, 'all four addresses')
      const answers = await Promise.all(app.addresses.map(async (/** @type {string} */ address) => JSON.parse(await get(address))))
      assert.equal(new Set(answers.map(({ pid }) => pid)).size, 2, 'each worker has answered on its exclusive port')
      const of = (/** @type {string} */ name) => new Set(answers.map(({ ports }) => ports[name])).size
      assert.deepEqual([of('first'), of('second'), of('exclusive')], [1, 1, 2])
      assert.notEqual(answers[0].ports.first, answers[0].ports.second)
    })
  })

  test('readiness by message: a worker that listens is not ready before it says so', async () => {
    const deck = await startDeck('says-ready.js', { flags: ['--ready-signal', 'message'] })
    const { app, readyWorkers } = await deck.untilStatus(({ app }) => app.addresses.length === 1, 'the app to listen')
    assert.equal(readyWorkers, 0)
    await get(app.addresses[0])
    await deck.untilEvent(({ type }) => type === 'worker.ready', 'the worker that was asked to be ready')
    await deck.stop()
  })

  test('an app that is no server is ready when it is online', async () => {
    await withDeck('never-listens.js', { flags: ['--ready-signal', 'online'] }, async (deck) => {
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
    })
  })
})

async function freePort () {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

function hasIPv6Loopback () {
  return Object.values(os.networkInterfaces()).flat().some((entry) => entry?.address === '::1')
}

/** @returns {Promise<{ body: string, session: Buffer | undefined, isReused: boolean }>} */
function tlsGet (/** @type {number} */ port, /** @type {Buffer | undefined} */ session = undefined) {
  return new Promise((resolve, reject) => {
    const request = https.get({ port, host: '127.0.0.1', path: '/', agent: false, rejectUnauthorized: false, session, maxVersion: 'TLSv1.2' }, (response) => {
      const socket = /** @type {import('node:tls').TLSSocket} */ (response.socket)
      const result = { session: socket.getSession(), isReused: socket.isSessionReused() }
      let body = ''
      response.setEncoding('utf8').on('data', (text) => { body += text }).on('end', () => resolve({ body, ...result }))
    })
    request.on('error', reject)
  })
}

/** @returns {Promise<string>} */
function http2Get (/** @type {http2.ClientHttp2Session} */ session, /** @type {string} */ where) {
  return new Promise((resolve, reject) => {
    session.on('error', reject)
    const stream = session.request({ ':path': where })
    let body = ''
    stream.setEncoding('utf8').on('data', (text) => { body += text }).on('end', () => resolve(body)).on('error', reject)
    stream.end()
  })
}
