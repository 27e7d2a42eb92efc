import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { sendRequest } from '../../../server/system/http.ts'
import { serveHttp } from '../../support/http-server.ts'

test('sends a body as it comes', async (t) => {
  const { url } = await serveHttp(t, async (req, res) => res.end(await text(req)))
  const response = await sendRequest(url, { method: 'POST', headers: {}, recipient: null,
    body: Readable.from(['a', 'b', 'c']) })
  assert.equal(await text(response), 'abc')
})

test('sends no more once it is refused, and holds no connection', async (t) => {
  const { server, url } = await serveHttp(t, (_req, res) => res.writeHead(413).end('too much'))
  // Whatever the server thinks of a body that is not whole.
  const closed = once(server, 'connection').then(([socket]) => new Promise((resolve) => socket.once('close', resolve)))
  const endless = Readable.from((function* () {
    for (;;) yield Buffer.alloc(64 * 1024)
  })())
  const response = await sendRequest(url, { method: 'POST', headers: {}, recipient: null, body: endless })
  assert.equal(response.statusCode, 413)
  assert.equal(await text(response), 'too much')
  await closed
})

test('fails with what its body fails with', async (t) => {
  const { url } = await serveHttp(t, () => {})
  const body = new Readable({ read () {
    this.destroy(new Error('the disk is gone'))
  } })
  await assert.rejects(sendRequest(url, { method: 'POST', headers: {}, recipient: null, body }), {
    message: 'the disk is gone'
  })
})
