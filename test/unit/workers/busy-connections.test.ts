import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createBusyConnections } from '../../../workers/busy-connections.ts'
import { watchRequests } from '../../../workers/requests.ts'
import { listening } from '../../support/listening.ts'
import { until } from '../../support/until.ts'

const MANY = 100
const LOOK_MS = 100

test('as many connections end with their next answer as have the surplus of requests, never one that has more than that, and the server is left as it was', async (t) => {
  const { letGo, connect, server } = await setUp(t)
  const all = await Promise.all([100, 10, 10, 10, 10, 10].map((requests) => connect({ requests })))
  const [hot, ...others] = all
  const ended = await letGo({ requestsPerSecond: 35, connections: MANY }, async () => {
    await Promise.all(all.map((client) => client.ask()))
    for (const client of all) client.goOn()
  })
  assert.equal(ended, 3)
  const goneOf = () => others.filter(({ saidClose }) => saidClose())
  await until(() => goneOf().length === 3, 'the answers to arrive')
  assert.equal(hot.saidClose(), false, 'it would have too many anywhere')
  await Promise.all(goneOf().map(({ closed }) => closed))
  await until(() => !Object.hasOwn(server, 'emit'), 'the server to be as it was')

  assert.equal(await letGo({ requestsPerSecond: 10_000, connections: 1 }), 1, 'no more than may go')
  await Promise.all(all.map(({ end }) => end()))
})

test('a client that pipelines gets each answer before its connection ends, and what it asked later was not begun', async (t) => {
  const { letGo, port, begun } = await setUp(t)
  const socket = net.connect(port)
  let text = ''
  socket.setEncoding('utf8').on('data', (data) => {
    text += data
  })
  let asked = 0
  const asking = setInterval(
    () => socket.write(Array.from({ length: 3 }, () => `GET /${asked++} HTTP/1.1\r\nhost: x\r\n\r\n`).join('')),
    20
  )
  t.after(() => clearInterval(asking))
  assert.equal(
    await letGo({ requestsPerSecond: 1000, connections: MANY }, () => until(() => begun.length > 0, 'it to be asked')),
    1
  )
  await once(socket, 'close')
  clearInterval(asking)
  const answered = [...text.matchAll(/^\/(\d+)$/mg)].map(([, number]) => Number(number))
  assert.deepEqual(answered, begun.map((path) => Number(path.slice(1))))
  assert.equal([...text.matchAll(/connection: close/gi)].length, 1)
})

async function setUp (t: TestContext) {
  const begun: string[] = []
  const requests = watchRequests()
  const server = http.createServer((request, response) => {
    begun.push(String(request.url))
    setTimeout(() => response.end(`${request.url}\n`), 1)
  })
  const port = await listening(t, server)
  let onEnd: (connections: number) => void = () => {}
  let look: () => Promise<unknown> = () => wait(LOOK_MS)
  const busyConnections = createBusyConnections({ requests, isDraining: () => false,
    onEnd: (connections) => onEnd(connections), wait: () => look() })
  t.after(() => {
    requests.stop()
    server.closeAllConnections()
  })
  return {
    server,
    port,
    begun,
    /** `during`: its look */
    letGo: (surplus: { requestsPerSecond: number, connections: number },
      during: () => Promise<unknown> = () => wait(LOOK_MS)): Promise<number> =>
      new Promise((resolve) => {
        onEnd = resolve
        look = during
        busyConnections.letGo(surplus)
      }),
    connect: (how: { requests: number }) => connect(t, port, how)
  }
}

async function connect (t: TestContext, port: number, { requests }: { requests: number }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  const over = new AbortController()
  t.after(() => over.abort())
  let saidClose = false
  const socket = await ask()
  const closed = once(socket, 'close')
  let going: Promise<void> | undefined
  return {
    closed,
    saidClose: () => saidClose,

    async ask () {
      for (let n = 0; n < requests; n++) await ask()
    },

    /** Asks on for as long as its connection is open. */
    goOn () {
      going = keepAsking()
    },

    /** @returns rejects if a request had no answer */
    async end (): Promise<void> {
      over.abort()
      await going
    }
  }

  async function keepAsking () {
    while (!over.signal.aborted && !saidClose) {
      await ask()
      await wait(5)
    }
    agent.destroy()
  }

  async function ask (): Promise<net.Socket> {
    const request = http.get({ host: '127.0.0.1', port, agent })
    const [response] = await once(request, 'response')
    const { socket } = response
    saidClose = response.headers.connection === 'close'
    await response.resume().toArray()
    return socket
  }
}
