import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { sendRequest } from '../../../server/system/http.js'

/** @param {import('node:test').TestContext} t @param {http.RequestListener} answer */
async function serve (t, answer) {
  const server = http.createServer(answer)
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { server, url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}` }
}

test('sends a body as it comes', async (t) => {
  const { url } = await serve(t, async (req, res) => res.end(await text(req)))
  const response = await sendRequest(url, { method: 'POST', headers: {}, recipient: null, body: Readable.from(['a', 'b', 'c']) })
  assert.equal(await text(response), 'abc')
})

test('sends no more once it is refused, and holds no connection', async (t) => {
  const { server, url } = await serve(t, (_req, res) => res.writeHead(413).end('too much'))
  // Whatever the server thinks of a body that is not whole.
  const closed = once(server, 'connection').then(([socket]) => new Promise((resolve) => socket.once('close', resolve)))
  const endless = Readable.from((function * () { for (;;) yield Buffer.alloc(64 * 1024) })())
  const response = await sendRequest(url, { method: 'POST', headers: {}, recipient: null, body: endless })
  assert.equal(response.statusCode, 413)
  assert.equal(await text(response), 'too much')
  await closed
})

test('fails with what its body fails with', async (t) => {
  const { url } = await serve(t, () => {})
  const body = new Readable({ read () { this.destroy(new Error('the disk is gone')) } })
  await assert.rejects(sendRequest(url, { method: 'POST', headers: {}, recipient: null, body }), { message: 'the disk is gone' })
})
