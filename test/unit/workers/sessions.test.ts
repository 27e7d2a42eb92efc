import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { loadConnectionCalls, type ConnectionCalls } from '../../../workers/connection-calls.ts'
import { createPassing } from '../../../workers/passing.ts'
import { watchRequests } from '../../../workers/requests.ts'
import { makeSessionOwners, openSessionOwners } from '../../../workers/session-owners.ts'
import { createSessions } from '../../../workers/sessions.ts'
import { tempFolder } from '../../support/folder.ts'
import { withoutNativeCalls } from '../../support/service-manager.ts'
import type { SocketHandle } from '../../../workers/node-internals.d.ts'

const skip = withoutNativeCalls
const HEAD = 'HTTP/1.1\r\nHost: app\r\n'
const OF_TWO = `${HEAD}Session-Id: of-two\r\n`

test('many requests at once reach the owner of their session whole, which takes them one by one', { skip },
  async (t) => {
    const { connect, takenOf } = await startTwo(t)
    const body = 'abcdefgh'.repeat(50_000)
    const clients = await Promise.all(Array.from({ length: 8 }, connect))
    const whole = `PUT / ${OF_TWO}Content-Length: ${body.length}\r\n\r\n${body}`
    const taken = Promise.all(clients.map(takenOf))
    for (const client of clients) client.end(whole)
    for (const each of await taken) assert.ok(each === whole, `${each?.length} of ${whole.length} bytes`)
  })

test('headers that have come in part go along once they are whole', { skip }, async (t) => {
  const { connect, ask, leftBy, takenOf } = await startTwo(t)
  const [client, other] = await Promise.all([connect(), connect()])
  const whole = `PUT / ${OF_TWO}Content-Length: 2\r\n\r\nhiGET /next ${HEAD}\r\n`
  client.write(whole.slice(0, -20))
  await ask(other)
  client.write(whole.slice(-20))
  await leftBy(client)
  const taken = takenOf(client)
  client.end()
  assert.equal(await taken, whole)
})

test('a worker stays until the other one has taken what it passes', { skip }, async (t) => {
  const { connect, leftBy, takenOf, sessions, skipTime } = await startTwo(t)
  const client = await connect()
  const part = `f0000\r\n${'x'.repeat(0xf0000)}\r\n`
  client.write(`PUT / ${OF_TWO}Transfer-Encoding: chunked\r\n\r\n${part}0\r\n\r\n`)
  await leftBy(client)
  assert.equal(sessions.count(), 1)
  const taken = takenOf(client)
  client.end()
  await taken
  skipTime()
  assert.equal(sessions.count(), 0)
})

/** Two workers in this process: one serves, the other has the session `of-two` and reads what it gets to its end. */
async function startTwo (t: TestContext) {
  const folder = tempFolder()
  const onProblem = (problem: unknown) => assert.fail(String(problem))
  makeSessionOwners(folder)
  const owners = openSessionOwners(folder)
  owners.claim('of-two', 2)
  owners.close()
  let time = 0
  const requests = watchRequests()
  const by = { header: 'session-id', cookie: null, query: null, path: null }
  const sessions = createSessions({ folder, by, idleMs: 1000 }, { worker: 1, requests, onProblem, now: () => time })
  const server = http.createServer((_request, response) => response.end())
  const handle = net._createServerHandle('127.0.0.1', 0, 4) as SocketHandle
  sessions.take(server, 'key', handle)
  await once(server.listen({ handle }), 'listening')
  const { port } = server.address() as net.AddressInfo

  // Both by the port of the client.
  const left: Map<number | undefined, Promise<unknown>> = new Map()
  const taken: Map<number | undefined, string> = new Map()
  server.on('connection', (socket) => left.set(socket.remotePort, once(socket, 'close')))
  const two = createPassing({ folder, worker: 2, calls: loadConnectionCalls() as ConnectionCalls, onProblem,
    async onPassed ({ bytes, handle: client }) {
      const socket = new net.Socket({ handle: client })
      const from = socket.remotePort
      taken.set(from, Buffer.concat([bytes, ...await socket.toArray()]).toString('latin1'))
      server.emit(`taken ${from}`)
      socket.destroy()
    } })
  t.after(() => {
    sessions.end()
    two.close()
    requests.stop()
    server.close()
  })
  return {
    sessions,
    ask,
    /** The first worker has closed it. */
    leftBy: ({ localPort }: net.Socket) => left.get(localPort),

    skipTime () {
      time += 1000
    },

    /** @returns which has been answered once */
    async connect () {
      const client = net.connect(port, '127.0.0.1')
      t.after(() => client.destroy())
      await ask(client)
      return client
    },

    /** @returns all that the other worker has got of it */
    async takenOf ({ localPort }: net.Socket) {
      if (!taken.has(localPort)) await once(server, `taken ${localPort}`)
      return taken.get(localPort)
    }
  }

  async function ask (client: net.Socket) {
    client.write(`GET / ${HEAD}\r\n`)
    await once(client, 'data')
  }
}
