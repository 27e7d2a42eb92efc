import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { probeServers } from '../../../server/fleet/server-probe.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'

/** A server that says one thing to everybody. `words`: null: nothing. */
async function open (t: TestContext, words: string | null) {
  const sockets: Set<net.Socket> = new Set()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    if (words !== null) socket.write(words)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as net.AddressInfo
  return { url: `nats://127.0.0.1:${port}`, port, sockets }
}

const limits = (withinMs: number, signal = new AbortController().signal) => ({ withinMs, signal })

test('one that takes connections and says nothing keeps nobody from another one, and no connection', async (t) => {
  const [silent, well] = await Promise.all([open(t, null), open(t, 'INFO {"server_id":"x"}\r\n')])
  for (const address of [well.url, `127.0.0.1:${well.port}`])
    assert.equal(await probeServers([silent.url, address], limits(60_000)), address)
  await until(() => silent.sockets.size === 0 && well.sockets.size === 0, 'the connections to end')
})

for (const [what, words, problem] of [['says nothing', null, /nats:\/\/127\.0\.0\.1:\d+ did not answer within 0\.1 s/],
  ['speaks something else', 'HTTP/1.1 400 Bad Request\r\n', /is not a NATS server$/], ['never ends its greeting',
  `INFO ${'x'.repeat(100_000)}`, /its first line does not end/]] as const)
{
  test(`one that ${what} is left`, async (t) => {
    const { url, sockets } = await open(t, words)
    await assert.rejects(probeServers([url], limits(words === null ? 100 : 60_000)), problem)
    await until(() => sockets.size === 0, 'the connection to end')
  })
}

test('where nobody listens that is said, and nobody is waited for at the end', async (t) => {
  await assert.rejects(probeServers([`nats://127.0.0.1:${await freePort()}`], limits(60_000)), {
    message: 'connection refused'
  })
  const { url, sockets } = await open(t, null)
  const ending = new AbortController()
  const asked = probeServers([url], limits(60_000, ending.signal))
  await until(() => sockets.size === 1, 'it to ask')
  ending.abort()
  await assert.rejects(asked, { name: 'AbortError' })
  await until(() => sockets.size === 0, 'the connection to end')
})
