import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { networkInterfaces } from 'node:os'
import { test, type TestContext } from 'node:test'
import { expectOwner, NOBODY, ownerOf } from '../../../server/system/connection-owner.ts'
import { openHistory } from '../../../db/history.ts'
import { createSessions } from '../../../server/admin/sessions.ts'
import { fake } from '../../support/fake.ts'
import { listening } from '../../support/listening.ts'
import { nodeForOthers } from '../../support/stranger.ts'

const OTHER_UID = 54_321
const isLinux = process.platform === 'linux'
const HAS_IPV6 = Object.values(networkInterfaces()).flat().some((each) => each?.family === 'IPv6')
const isRoot = process.getuid?.() === 0

for (const [bound, asked] of [['127.0.0.1', '127.0.0.1'], ['127.0.0.1', '127.0.0.2'], ['::', '127.0.0.1'], ['::',
  '::1'], ['::1', '::1'], ['::', '::ffff:127.0.0.1']])
{
  test(`knows whose process has connected to ${asked} of a server on ${bound}`, { skip: !isLinux }, async (t) => {
    if (bound.includes(':') && !HAS_IPV6) return t.skip('no IPv6')
    const server = await listen(t, bound === '127.0.0.1' && asked !== bound ? '0.0.0.0' : bound)
    const [socket] = await connect(t, server, asked)
    assert.equal(ownerOf(socket), process.getuid?.())
    assert.equal(ownerOf(socket), process.getuid?.(), 'and remembers it')
  })
}

test('tells two users apart who ask from the same port of two addresses', { skip: !isLinux || !isRoot }, async (t) => {
  const server = await listen(t)
  const [mine, client] = await connect(t, server)
  const theirs = await connectAs(t, server, { uid: OTHER_UID,
    from: { address: '127.0.0.3', port: Number(client.localPort) } })
  assert.equal(theirs.remotePort, mine.remotePort)
  assert.deepEqual([ownerOf(mine), ownerOf(theirs)], [0, OTHER_UID])
})

const address = Object.values(networkInterfaces()).flatMap((each) => each ?? []).find(({ family, internal }) =>
  family === 'IPv4' && !internal
)?.address

test('a process that sends from another address of the machine is not taken for one of another machine', {
  skip: !isLinux || !isRoot ? 'only root can be somebody else' : !address && 'this machine has one address alone'
}, async (t) => {
  const server = await listen(t)
  const theirs = await connectAs(t, server, { uid: OTHER_UID, from: { address: String(address), port: 0 } })
  assert.deepEqual([theirs.remoteAddress, theirs.localAddress, ownerOf(theirs)], [address, '127.0.0.1', OTHER_UID])
})

test('learns of those that are expected while it looks for another one', { skip: !isLinux }, async (t) => {
  const server = await listen(t)
  const [[asked], [expected, client], [other, otherClient]] = [await connect(t, server), await connect(t, server),
    await connect(t, server)]
  expectOwner(expected)
  ownerOf(asked)
  for (const each of [client, otherClient]) each.end().destroy()
  await Promise.all([expected, other].map((each) => once(each.resume(), 'end')))
  assert.deepEqual([ownerOf(expected), ownerOf(other)], [process.getuid?.(), NOBODY])
})

test('learns who asks also while an expected one has just been closed here', { skip: !isLinux }, async (t) => {
  const server = await listen(t)
  const [[asked], [closed]] = [await connect(t, server), await connect(t, server)]
  assert.equal(closed.remoteAddress, '127.0.0.1', 'it remembers that')
  expectOwner(closed)
  closed.destroy()
  assert.equal(closed.localAddress, undefined)
  assert.equal(ownerOf(asked), process.getuid?.())
})

test('does not know who asks from another machine', () => {
  assert.equal(
    ownerOf(fake({ remoteAddress: '192.0.2.7', remotePort: 4000, localAddress: '192.0.2.1', localPort: 9777 })),
    null
  )
})

for (const [end, how] of [['end', 'closed'], ['resetAndDestroy', 'reset']]) {
  test(`takes nobody for the owner of a connection that was ${how} before anybody asked`, { skip: !isLinux },
    async (t) => {
      const server = await listen(t)
      const [socket, client] = await connect(t, server)
      assert.equal(socket.remoteAddress, '127.0.0.1')
      socket.on('error', () => {})
      client[end as 'end' | 'resetAndDestroy']()
      client.destroy()
      await Promise.race(['end', 'close'].map((name) => once(socket.resume(), name)))
      assert.equal(ownerOf(socket), NOBODY)
    })
}

test('takes nobody for the owner of a connection that was reset before it was accepted', { skip: !isLinux },
  async (t) => {
    const server = await listen(t)
    const accepted = once(server, 'connection')
    const { port } = server.address() as net.AddressInfo
    // It connects and is gone while this process waits for it.
    spawnSync(process.execPath, ['-e',
      `const s = require('net').connect(${port}, '127.0.0.1', () => s.write('x', () => s.resetAndDestroy()))`])
    const [socket] = await accepted
    t.after(() => socket.destroy())
    assert.deepEqual([socket.remoteAddress, ownerOf(socket)], [undefined, NOBODY])
  })

for (const [what, opener, seen] of [[
  'takes no session from another user of this machine: their server on another port gets the cookie too',
  1000,
  ['session', null, null, null, 'session']
], ['a session that was opened by nobody is nobody\'s, whoever closes its connection next', NOBODY, [null, null, null,
  null, null]]] as const)
{
  test(what, (t) => {
    const history = openHistory({ file: ':memory:' })
    t.after(() => history.close())
    let owner: number | null = opener
    const sessions = createSessions({ store: history.sessions, token: 'secret', ttlMs: 60_000, cookieName: 'deck',
      ownerOf: () => owner })
    const cookie = String(sessions.open(fake({ headers: {}, socket: {} }))).split(';')[0]
    assert.deepEqual([1000, OTHER_UID, null, NOBODY, 1000].map((who) => {
      owner = who
      return sessions.authenticate(fake({ headers: { cookie } }))?.via ?? null
    }), seen)
  })
}

async function listen (t: TestContext, host: string = '127.0.0.1'): Promise<net.Server> {
  const server = net.createServer()
  await listening(t, server, host)
  return server
}

/** @returns the server's side, and the client's */
async function connect (t: TestContext, server: net.Server,
  host: string = '127.0.0.1'): Promise<[net.Socket, net.Socket]>
{
  const client = net.connect((server.address() as net.AddressInfo).port, host)
  t.after(() => client.destroy())
  const [socket] = await once(server, 'connection')
  t.after(() => socket.destroy())
  return [socket, client]
}

/** @returns the server's side */
async function connectAs (t: TestContext, server: net.Server,
  { uid, from }: { uid: number, from: { address: string, port: number } }): Promise<net.Socket>
{
  const { port } = server.address() as net.AddressInfo
  const code =
    `require('net').connect({ port: ${port}, host: '127.0.0.1', localAddress: '${from.address}', localPort: ${from.port} }).resume()`
  const child = spawn(nodeForOthers(), ['-e', code], { uid, gid: uid, stdio: 'ignore', cwd: '/' })
  t.after(() => child.kill('SIGKILL'))
  const [socket] = await once(server, 'connection')
  t.after(() => socket.destroy())
  return socket
}
