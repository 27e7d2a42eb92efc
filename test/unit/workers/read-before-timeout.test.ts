import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test } from 'node:test'
import { readBeforeTimeout } from '../../../workers/read-before-timeout.ts'
import { listening } from '../../support/listening.ts'

readBeforeTimeout()

const TIMEOUT_MS = 200
const ASK = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test('a request that came while the process was busy for longer than the keep-alive timeout is answered; a connection that is idle for so long ends', async (t) => {
  const server = http.createServer((_, response) => response.end('hello'))
  Object.assign(server, { keepAliveTimeout: TIMEOUT_MS, keepAliveTimeoutBuffer: 0 })
  const client = net.connect(await listening(t, server), '127.0.0.1')
  await once(client, 'connect')
  client.write(ASK)
  assert.match(String(await once(client, 'data')), /hello$/)
  // The kernel has it at once.
  client.write(ASK)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * TIMEOUT_MS)
  assert.match(String(await once(client, 'data')), /hello$/)
  const idleSince = performance.now()
  await once(client, 'end')
  assert.ok(performance.now() - idleSince > TIMEOUT_MS / 2)
})
