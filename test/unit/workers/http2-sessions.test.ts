import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import { test } from 'node:test'
import { createHttp2Sessions } from '../../../workers/http2-sessions.ts'
import { createTurns } from '../../../workers/turns.ts'
import { createLink } from '../../support/nats.ts'
import { listening } from '../../support/listening.ts'
import { rareTest } from '../../support/rare.ts'

const SPREAD_MS = 100
/** Longer than a round of PINGs within a network, by far. */
const FAR_AWAY_MS = 600

test('HTTP/2 clients are told one after the other to come back, and each stream is answered', async (t) => {
  let now = 1000
  const sessions = createHttp2Sessions({ turns: createTurns(() => now) })
  const server = http2.createServer((_request, response) => response.end('ok'))
  sessions.watch(server)
  const port = await listening(t, server)
  const clients = []
  // One after the other, so that the order of the sessions is known.
  for (let count = 0; count < 4; count++) {
    const client = http2.connect(`http://127.0.0.1:${port}`)
    t.after(() => client.close())
    await once(client, 'connect')
    assert.equal(await isToldToLeave(client), false)
    clients.push(client)
  }

  const [first, second, third, fourth] = clients
  sessions.leave(SPREAD_MS)
  assert.equal(await isToldToLeave(fourth), false)
  assert.equal(await isToldToLeave(first), true)
  now += SPREAD_MS / 4
  assert.equal(await isToldToLeave(third), false)
  assert.equal(await isToldToLeave(second), true)
  now += SPREAD_MS / 2
  assert.deepEqual(await Promise.all([third, third, fourth].map(isToldToLeave)), [true, true, true])
})

rareTest('a client that is far away, with many streams under way, loses none of them', async (t) => {
  const sessions = createHttp2Sessions({ turns: createTurns() })
  const server = http2.createServer((_request, response) => response.end('ok'))
  sessions.watch(server)
  const link = await createLink(t, { to: await listening(t, server), delayMs: FAR_AWAY_MS })
  const client = http2.connect(link.url.replace(/^\w+/, 'http'))
  t.after(() => client.destroy())
  const counts = await Promise.all(Array.from({ length: 10 }, async (_, index) => {
    // They are not answered in the same moment.
    await new Promise((resolve) => setTimeout(resolve, index * FAR_AWAY_MS / 5))
    let answered = 0
    while (!client.closed) {
      await isToldToLeave(client)
      if (++answered === 2 && index === 0) sessions.leave(0)
    }
    return answered
  }))
  assert.ok(counts.every((count) => count > 1), String(counts))
})

/** @returns with an answer that is whole */
async function isToldToLeave (client: http2.ClientHttp2Session): Promise<boolean> {
  const stream = client.request({ ':path': '/' }).setEncoding('utf8')
  assert.equal((await stream.toArray()).join(''), 'ok')
  return client.closed
}
