import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import WebSocket from 'ws'
import { runCliHere } from '../support/cli-here.ts'
import { startReadyHere, type DeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { hammer } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { PROXIES, startProxy, without, type ProxyName } from '../support/proxies.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'

const REQUESTS = 1000

for (const name of PROXIES) {
  const skip = without(name) || rareOnly

  test(
    `behind ${name} an app knows its clients, its connections are reused, and no deploy ends a WebSocket or fails one of 1000 requests`,
    { skip },
    async (t) => {
      const deck = await startReadyHere(t, 'stands-behind-a-proxy.js', { flags: ['--drain-spread-ms', '100'] })
      const url = await startProxy(t, name, await printed(deck, name))

      const { headers, bytes } = await ask(url, { method: 'POST', body: 'x'.repeat(2_000_000),
        headers: { 'x-forwarded-for': '6.6.6.6', host: 'shop.example.com' } })
      assert.equal(bytes, 2_000_000)
      assert.deepEqual([headers['x-forwarded-for'], headers['x-forwarded-proto'], headers.host], ['127.0.0.1', 'http',
        'shop.example.com'])

      const seen = new Set()
      for (let count = 0; count < 50; count++) {
        const { pid, connection } = await ask(url)
        seen.add(`${pid} ${connection}`)
      }
      assert.ok(seen.size <= 8, `50 requests over ${seen.size} connections`)

      const socket = new WebSocket(url.replace('http', 'ws'))
      t.after(() => socket.terminate())
      await once(socket, 'open')
      const [answer] = await tell(socket, 'before')
      const stream = await openStream(t, url)
      const load = hammer(t, url, { connections: 16, breathMs: 5 })
      await load.untilAnswered(REQUESTS / 4)
      const rollout = await deck.rollout('deploy')
      assert.equal(rollout.state, 'succeeded')
      await load.untilAnswered(REQUESTS)
      const { total } = await load.checkNoneLost()
      assert.ok(total >= REQUESTS)

      const [pid] = answer.split(' ')
      assert.deepEqual(await tell(socket, 'after'), [`${pid} after`], 'the old worker keeps it')
      assert.equal(stream.response.complete, false)
      const closed = once(socket, 'close')
      for (const { id, keptUntil } of (await deck.status()).workers)
        if (keptUntil) await deck.post(`/workers/${id}/end-connections`)
      assert.deepEqual((await closed)[0], 1012)
    }
  )

  test(`behind ${name} an event stream comes as it is written, and the app hears that its client has gone`, { skip },
    async (t) => {
      const deck = await startReadyHere(t, 'stands-behind-a-proxy.js', { workers: 1 })
      const url = await startProxy(t, name, await printed(deck, name))
      const { request, response } = await openStream(t, url)
      for (let count = 0; count < 5; count++) {
        const next = once(response, 'data')
        await deck.ask(`/say?${count}`)
        assert.equal(String(await next), `data: /say?${count}\n\n`)
      }
      request.destroy()
      await until(async () => await deck.ask('/left') === '1', 'the app to hear of it')
    })

  test(`behind ${name} an app may listen on a Unix socket, or at a port for each slot, where clients stay`, { skip },
    async (t) => {
      const socket = path.join(tempFolder(), 'a b+c.sock')
      const unix = await startReadyHere(t, 'stands-behind-a-proxy.js', { env: { SOCKET_PATH: socket } })
      assert.equal((await ask(await startProxy(t, name, await printed(unix, name)))).headers['x-forwarded-for'],
        '127.0.0.1')

      const above = await freePort()
      const deck = await startReadyHere(t, 'stands-behind-a-proxy.js', { workers: 3,
        flags: ['--port-per-slot', String(above)] })
      const url = await startProxy(t, name, await printed(deck, name))
      const pids = await Promise.all(Array.from({ length: 12 }, async () => (await ask(url)).pid))
      assert.equal(new Set(pids).size, 1)
    })
}

async function printed (deck: DeckHere, name: ProxyName): Promise<string> {
  const { stdout, stderr } = await runCliHere(['proxy', name, '--data-dir', deck.folder])
  assert.equal(stderr, '')
  return stdout
}

type Answer = { pid: number, connection: number, bytes: number, headers: Record<string, string> }

function ask (url: string, { body, ...options }: http.RequestOptions & { body?: string } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    http.request(url, { agent: false, ...options }, async (response) => {
      resolve(JSON.parse(String((await response.toArray()).join(''))))
    }).on('error', reject).end(body)
  })
}

async function tell (socket: WebSocket, text: string): Promise<string[]> {
  socket.send(text)
  return (await once(socket, 'message')).slice(0, 1).map(String)
}

/** Once its first event is there. */
async function openStream (t: TestContext, url: string) {
  const request = http.get(`${url}/events`, { agent: false })
  request.on('error', () => {})
  t.after(() => request.destroy())
  const [response] = await once(request, 'response') as [http.IncomingMessage]
  response.on('error', () => {})
  const [data] = await once(response, 'data')
  assert.match(String(data), /^data: \d+\n\n$/)
  return { request, response }
}
