import assert from 'node:assert/strict'
import http from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createDrain } from '../../../workers/drain.ts'
import { createLatePorts } from '../../../workers/late-ports.ts'
import { NO_SESSIONS } from '../../../workers/sessions.ts'
import { fake } from '../../support/fake.ts'
import type { AddressInfo } from 'node:net'

const IDLE_GRACE_MS = 1000

/** Asks once, and again once it is told to: by its own loop, so that it is no slower than the other one is busy. */
const CLIENT = `
  const http = require('node:http')
  const { parentPort, workerData: { port, sent } } = require('node:worker_threads')
  const agent = new http.Agent({ keepAlive: true })
  const ask = () => http.get({ port, agent }, (response) => response.resume().on('end', () => parentPort.postMessage(response.statusCode)))
    .on('finish', () => { Atomics.add(sent, 0, 1); Atomics.notify(sent, 0) }).on('error', ({ code }) => parentPort.postMessage(code))
  ask()
  parentPort.on('message', ({ afterMs }) => setTimeout(ask, afterMs))`

test('a request that came while its worker had no CPU is answered, however long the connection had been idle before', async () => {
  const server = http.createServer((_, response) => response.end('ok'))
  const drain = createDrain({ requests: fake({ inFlight: () => [], isNewest: () => true }), sessions: NO_SESSIONS,
    latePorts: createLatePorts({ isLate: () => false, connections: () => [] }), onStart () {}, onHolds () {},
    onOverdue () {}, onDrained () {} })
  drain.watch(server)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)))
  const sent = new Int32Array(new SharedArrayBuffer(4))
  const client = new Worker(CLIENT, { eval: true, workerData: { sent, port: (server.address() as AddressInfo).port } })
  after(() => client.terminate())
  const answer = () => new Promise((resolve) => client.once('message', resolve))
  assert.equal(await answer(), 200)

  drain.start({ idleGraceMs: IDLE_GRACE_MS, deadlineMs: 60_000, stalledMs: 0, longLivedMs: 60_000, spreadMs: 0,
    isLast: false })
  // The drain has seen it idle at least once.
  await wait(160)
  client.postMessage({ afterMs: 20 })
  // The loop looks at its timers before it reads.
  await new Promise(setImmediate)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * IDLE_GRACE_MS)
  // On a busy machine the other one may not have asked yet.
  Atomics.wait(sent, 0, 1)
  assert.equal(await answer(), 200)
})
