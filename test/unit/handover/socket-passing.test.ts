import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { kindOf, receiveSockets, sendSockets } from '../../../server/handover/socket-passing.ts'
import { bindSocket } from '../../../server/cluster/bind-socket.ts'
import { get } from '../../support/asking.ts'
import { tempFolder } from '../../support/folder.ts'
import type { SocketQuery } from '../../../workers/protocol.ts'
import type { SocketHandle } from '../../../workers/node-internals.d.ts'

const QUERY = { address: '127.0.0.1', port: 0, addressType: 4, fd: undefined, flags: 0, index: 0 }

/** Two ends that know nothing of each other but a path, as two masters do. */
async function connectEnds (t: TestContext) {
  const file = path.join(tempFolder(), 'line')
  const server = net.createServer({ pauseOnConnect: true }).listen(file)
  t.after(() => server.close())
  await once(server, 'listening')
  const sender = net.connect({ path: file })
  sender.pause()
  const [[receiver]] = await Promise.all([once(server, 'connection'), once(sender, 'connect')])
  return { sender, receiver }
}

function bind (query: Partial<SocketQuery>) {
  const { handle, errno } = bindSocket({ ...QUERY, ...query } as SocketQuery)
  assert.equal(errno, undefined)
  return handle as SocketHandle
}

test('sockets of TCP, Unix and UDP come to a process that is no relative, in their order, and serve there once the sender has closed its own', async (t) => {
  const file = path.join(tempFolder(), 'app.sock')
  const own = [bind({}), bind({ address: file, port: -1, addressType: -1 }), bind({ addressType: 'udp4' })]
  const kinds = own.map(kindOf)
  t.after(() => {
    for (const handle of own) handle.close()
  })
  assert.deepEqual(kinds, ['stream', 'stream', 'datagram'])
  const { sender, receiver } = await connectEnds(t)
  const [received] = await Promise.all([receiveSockets(receiver, kinds),
    sendSockets(sender, own.map((socket) => ({ socket, kind: kindOf(socket) })))])
  for (const handle of own.splice(0)) handle.close()

  const servers = received.slice(0, 2).map((handle) =>
    http.createServer((_, response) => response.end('here')).listen(handle)
  )
  t.after(() => {
    for (const server of servers) server.close()
  })
  const { port } = servers[0].address() as net.AddressInfo
  assert.equal(await get(`http://127.0.0.1:${port}/`), 'here')
  assert.ok(existsSync(file))
  const [response] = await once(http.get({ socketPath: file, agent: false }), 'response')
  assert.equal(String((await response.toArray()).join('')), 'here')

  const datagrams = dgram.createSocket('udp4').bind(received[2])
  const client = dgram.createSocket('udp4')
  t.after(() => {
    for (const socket of [datagrams, client]) socket.close()
  })
  client.send('hello', datagrams.address().port, '127.0.0.1')
  assert.equal(String((await once(datagrams, 'message'))[0]), 'hello')
})

test('where the other end goes away, both say so, and nothing is left open', { timeout: 60_000 }, async (t) => {
  const { sender, receiver } = await connectEnds(t)
  sender.destroy()
  await assert.rejects(receiveSockets(receiver, ['stream']), { code: 'not-possible',
    message: /^the sockets could not be passed on: / })
})
