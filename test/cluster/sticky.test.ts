import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { io } from 'socket.io-client'
import { runCliHere } from '../support/cli-here.ts'
import { runCli, startReady } from '../support/deck.ts'
import { startDeckHere, type DeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { busyPort, freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { WITHOUT_KOFFI, withoutNativeCalls } from '../support/service-manager.ts'

const skip = process.platform !== 'linux' && 'the kernel has no such groups'
const WORKERS = 4
const CLIENTS = Array.from({ length: 24 }, (_, index) => `127.0.0.${index + 1}`)
const STICKY = ['--dispatch', 'sticky']

describe('dispatch: sticky', { skip: skip || withoutNativeCalls }, () => {
  test('each client has its slot, which it keeps over deploys, over another size and over the loss of a master', async (t) => {
    const deck = await startReady(t, 'tells-its-slot.cjs', { workers: WORKERS, flags: STICKY })
    const url = await deck.appUrl()
    const first = await slotsOf(url)
    assert.deepEqual(new Set(Object.values(first)), new Set(['1', '2', '3', '4']))
    assert.deepEqual(await slotsOf(url), first)
    assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout,
      /^dispatch sticky, by the address of the client$/m)

    await deck.rollout('restart')
    assert.deepEqual(await slotsOf(url), first)

    await deck.loseMaster()
    await deck.until({ ready: WORKERS })
    assert.deepEqual(await slotsOf(url), first)

    await scale(deck, WORKERS + 1)
    const more = await slotsOf(url)
    assert.ok(CLIENTS.some((client) => more[client] === '5'))
    for (const client of CLIENTS)
      assert.ok([first[client], '5'].includes(more[client]),
        `${client} went from slot ${first[client]} to ${more[client]}`)

    await scale(deck, WORKERS)
    assert.deepEqual(await slotsOf(url), first)
  })

  test('with sticky.by a session stays with the worker that has it, by header, cookie and URL, on new and on kept connections, over a restart too', async (t) => {
    const by = ['header', 'session-id', 'cookie', 'sid', 'query', 'sid', 'path', '/rooms/:session']
    const flags = [0, 2, 4, 6].flatMap((at) => [`--sticky-by-${by[at]}`, by[at + 1]])
    const deck = await startReadyHere(t, 'sessions-in-memory.cjs', { workers: 3,
      flags: [...STICKY, ...flags, '--drain-idle-grace-ms', '100', '--drain-deadline-ms', '1000'] })
    const url = await deck.appUrl()
    const kept = new http.Agent({ keepAlive: true, maxSockets: 4 })
    t.after(() => kept.destroy())
    assert.match((await runCliHere(['status', '--data-dir', deck.folder])).stdout,
      /^dispatch sticky, by the header session-id, else the cookie sid, else the parameter sid of the URL, else the path \/rooms\/:session$/m)

    const made = await Promise.all(Array.from({ length: 18 }, async (_, index) => {
      const way = ['header', 'cookie', 'query'][index % 3]
      const agent = index % 2 ? kept : false
      const { sid, pid } = JSON.parse((await call(`${url}/?by=${way}`, { method: 'POST', agent })).slice(1))
      const target = way === 'query' ? `${url}/?sid=${sid}` : url
      const headers =
        (way === 'header' ? { 'session-id': sid } : way === 'cookie' ? { cookie: `a=b; sid=${sid}` } : {}) as Record<
          string,
          string
        >
      // None, one of known length, one in parts, one that does not come together with its headers.
      for (const [count, body] of [[], ['a'.repeat(1000)], ['b', 'c'.repeat(70_000)], ['d'.repeat(400_000)]]
        .entries())
      {
        const length = body.join('').length
        const answer = JSON.parse(
          await call(target, { method: 'PUT', agent, body,
            headers: body.length === 1 ? { ...headers, 'content-length': String(length) } : headers })
        )
        assert.deepEqual([answer.pid, answer.count, answer.length], [pid, count + 1, length],
          `${way}, ${agent ? 'kept' : 'new'}`)
      }
      if (way === 'header') assert.equal(await upgrade(url, headers), `${pid} first`)
      return { pid, sid: way === 'header' ? sid : null,
        askAgain: () => call(target, { method: 'GET', agent, headers }) }
    }))
    assert.ok(new Set(made.map(({ pid }) => pid)).size > 1, 'all were with one worker')

    const port = Number(new URL(url).port)
    const other = made.find(({ sid }) => sid)
    const headed = (first: string, ...more: string[]) => [first, 'Host: app', ...more, '', ''].join('\r\n')
    const get = headed('GET / HTTP/1.1')
    const inParts = headed('PUT / HTTP/1.1', 'Transfer-Encoding: chunked', `session-id: ${other?.sid}`)
    const part = `8000\r\n${'x'.repeat(0x8000)}\r\n`
    // Whatever comes behind a request that goes to another worker goes there with it, and is answered in order.
    const behind = [
      headed('PUT / HTTP/1.1', 'Content-Length: 2', `session-id: ${other?.sid}`) + 'hi' +
      headed('PUT / HTTP/1.1', 'Content-Length: 1') + 'a' + get
    ]
    const pids = (await pipeline(port, other?.pid, behind, 3)).map((answer) => /"pid":(\d+)/.exec(answer)?.[1])
    assert.deepEqual(pids, [other?.pid, other?.pid, other?.pid].map(String))
    const [whole, next] = await pipeline(port, other?.pid, [inParts + part, part + '0\r\n\r\n' + get + inParts, part,
      '0\r\n\r\n'], 3)
    assert.deepEqual([JSON.parse(whole).length, JSON.parse(next).pid], [0x10000, other?.pid])
    assert.match(
      (await pipeline(port, other?.pid, [inParts, ...Array.from({ length: 40 }, () => part), '0\r\n\r\n'], 1))[0],
      /no such session/,
      'too long to be passed, but not to be answered'
    )
    for (const room of ['one', 'two', 'three', 'four']) {
      const askAgain = (agent: http.Agent | false = false) => call(`${url}/rooms/${room}`, { method: 'GET', agent })
      const { pid } = JSON.parse(await askAgain())
      for (const count of [2, 3, 4])
        assert.deepEqual(JSON.parse(await askAgain(count % 2 ? kept : false)), { pid, count, length: 0 })
      made.push({ pid, sid: null, askAgain })
    }

    await deck.rollout('restart')
    for (const { pid, sid, askAgain } of made)
      assert.deepEqual(JSON.parse(await askAgain()), { pid, count: sid && sid === other?.sid ? 8 : 5, length: 0 })
    const left = (await deck.status()).workers.filter(({ keptUntil }) => keptUntil)
    assert.equal(left.reduce((sum, { holds }) => sum + Number(holds?.sessions), 0), made.length)
    assert.deepEqual((await deck.api('/events?type=unexpected')).body.items, [])
  })

  rareTest('a slot that goes, and one that nobody serves for long, strand nobody', async (t) => {
    const deck = await startReadyHere(t, 'tells-its-slot.cjs', { workers: WORKERS,
      flags: [...STICKY, '--sticky-failover-ms', '300', '--restart-min-delay-ms', '60000', '--restart-max-delay-ms',
        '60000'] })
    const url = await deck.appUrl()
    const before = await slotsOf(url)

    const asking = askUntilTold(t, url)
    await scale(deck, 2)
    await scale(deck, WORKERS)
    assert.deepEqual(await asking.stop(), [])
    assert.deepEqual(await slotsOf(url), before)

    // The first end of a slot is made good at once, the next one after a minute.
    for (let time = 0; time < 2; time++) {
      const { pid, id } = present((await deck.status()).workers.find((worker) => worker.slot === 1))
      process.kill(present(pid), 'SIGKILL')
      await deck.untilEvent('worker.exited', { worker: id })
      if (time === 0) await deck.until({ ready: WORKERS })
    }
    const without = await slotsOf(url)
    for (const client of CLIENTS)
      assert.ok(before[client] === '1' ? without[client] !== '1' : without[client] === before[client], client)
  })

  rareTest('a worker gets nothing before its app has answered the probe', async (t) => {
    const deck = await startReadyHere(t, 'tells-its-slot.cjs', { workers: WORKERS,
      flags: [...STICKY, '--ready-path', '/'] })
    const url = await deck.appUrl()
    const before = await slotsOf(url)
    assert.equal(new Set(Object.values(before)).size, WORKERS)
    const asking = askUntilTold(t, url)
    await deck.rollout('restart')
    assert.deepEqual(await asking.stop(), [])
    assert.deepEqual(await slotsOf(url), before)
  })

  rareTest('an address that somebody else has is in use, another deck of its kind included', async (t) => {
    const port = await freePort()
    await startReadyHere(t, 'tells-its-slot.cjs', { workers: 1, flags: STICKY, env: { PORT: String(port) } })
    const other = await runCli(['start', new URL('../fixtures/tells-its-slot.cjs', import.meta.url).pathname, ...STICKY,
      '--admin-port', '0', '--data-dir', tempFolder()], { env: { PORT: String(port) } })
    assert.notEqual(other.code, 0)
    assert.match(other.stderr, new RegExp(`port ${port} is in use \\(EADDRINUSE\\)`))
  })

  test('is refused where it cannot be', async (t) => {
    await startDeckHere(t, 'hello.js', { workers: 1 })
    const { code, stderr } = await runCli(['start', new URL('../fixtures/hello.js', import.meta.url).pathname,
      ...STICKY, '--admin-port', '0', '--data-dir', tempFolder()], { launch: WITHOUT_KOFFI })
    assert.notEqual(code, 0)
    assert.match(stderr,
      /dispatch: expected "shared" on this machine, received "sticky" \(it takes Linux and the optional package koffi\)/)
  })
})

test('an app with Socket.IO over polling keeps its sessions over four workers, unmodified', {
  skip: skip || withoutNativeCalls || rareOnly
}, async (t) => {
  const deck = await startReadyHere(t, 'socket-io-app.cjs', { workers: WORKERS,
    flags: [...STICKY, '--drain-deadline-ms', '500'] })
  const url = await deck.appUrl()
  const pids = await Promise.all(CLIENTS.slice(0, 8).map(async (localAddress) => {
    // Each request on a connection of its own, as behind many proxies.
    const socket = io(url, { transports: ['polling'], reconnection: false,
      agent: new http.Agent({ localAddress, keepAlive: false }) as unknown as string })
    t.after(() => socket.disconnect())
    await new Promise((resolve, reject) => socket.once('connect', () => resolve(null)).once('connect_error', reject))
    const answers = []
    for (let time = 0; time < 5; time++) answers.push(await socket.timeout(10_000).emitWithAck('count'))
    assert.deepEqual(answers.map(({ count }) => count), [1, 2, 3, 4, 5])
    return answers[0].pid
  }))
  assert.ok(new Set(pids).size > 1, 'all were with one worker')
})

describe('portPerSlot', { skip }, () => {
  rareTest('gives each slot a port of its own, over rollouts too, and tells of one that is taken', async (t) => {
    const taken = await busyPort()
    t.after(taken.close)
    const above = taken.port - 3
    const deck = await startReady(t, 'tells-its-slot.cjs', { workers: 3, flags: ['--port-per-slot', String(above)],
      env: { HOST: '127.0.0.1' } })
    const { message } = await deck.untilEvent('unexpected')
    assert.equal(message, `slot 3 has no port of its own: 127.0.0.1:${taken.port} is in use (EADDRINUSE)`)
    assert.deepEqual((await deck.status()).workers.map(({ port }) => port), [above + 1, above + 2, null])

    for (const change of [async () => {}, () => deck.rollout('restart'), async () => {
      await deck.loseMaster()
      await deck.until({ ready: 3 })
    }]) {
      await change()
      for (const slot of [1, 2]) assert.equal((await ask(`http://127.0.0.1:${above + slot}`)).slot, String(slot))
    }
    await scale(deck, 1)
    await assert.rejects(ask(`http://127.0.0.1:${above + 2}`), { code: 'ECONNREFUSED' })
  })
})

/** @returns by client */
async function slotsOf (url: string): Promise<Record<string, string>> {
  return Object.fromEntries(await Promise.all(CLIENTS.map(async (client) => [client, (await ask(url, client)).slot])))
}

async function ask (url: string, localAddress?: string): Promise<{ slot: string, pid: string }> {
  const { hostname, port } = new URL(url)
  const host = hostname === 'localhost' ? '127.0.0.1' : hostname
  return await new Promise((resolve, reject) => {
    http.get({ host, port, localAddress, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
      }).on('end', () => {
        const [slot, pid] = text.split(' ')
        resolve({ slot, pid })
      })
    }).on('error', reject)
  })
}

async function call (url: string,
  { method, agent, headers, body = [] }: { method: string, agent: http.Agent | false, headers?: Record<string, string>,
    body?: string[] }): Promise<string>
{
  return await new Promise((resolve, reject) => {
    const request = http.request(url.replace('localhost', '127.0.0.1'), { method, agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => {
        text += part
      }).on('end',
        () => response.statusCode === 200 ? resolve(text) : reject(new Error(`${response.statusCode} ${text}`)))
    }).on('error', reject)
    for (const part of body) request.write(part)
    request.end()
  })
}

/**
 * Sends this on a connection that another worker than `not` has answered on, and reads so many answers. Returns their
 * bodies.
 */
async function pipeline (port: number, not: number | undefined, parts: string[], count: number): Promise<string[]> {
  for (;;) {
    const client = net.connect(port, '127.0.0.1').setNoDelay()
    client.write('GET / HTTP/1.1\r\nHost: app\r\n\r\n')
    let text = ''
    let isAsked = false
    for await (const bytes of client) {
      text += bytes
      const bodies = text.split(/HTTP\/1\.1 [^]*?\r\n\r\n/).slice(1).map((body) =>
        body.replace(/^[0-9a-f]+\r\n/, '').split('\r\n')[0]
      )
      if (!isAsked && JSON.parse(bodies[0]).pid === not) break
      if (isAsked && bodies.length === count + 1) return bodies.slice(1)
      if (!isAsked) { for (const part of parts) client.write(part) }
      isAsked = true
    }
    assert.ok(!isAsked, `only these answers: ${text}`)
  }
}

/** @returns what comes after the upgrade, to a client that does not wait for it */
async function upgrade (url: string, headers: Record<string, string>): Promise<string> {
  const { port } = new URL(url)
  const client = net.connect(Number(port), '127.0.0.1')
  const lines = ['GET / HTTP/1.1', 'Host: app', 'Connection: Upgrade', 'Upgrade: echo',
    ...Object.entries(headers).map((pair) => pair.join(': ')), '', 'first']
  client.write(lines.join('\r\n'))
  let text = ''
  for await (const part of client) text += part
  return text.split('\r\n\r\n')[1]
}

/** Each client asks again once it was answered. */
function askUntilTold (t: TestContext, url: string) {
  const told = new AbortController()
  const failures = [] as string[]
  t.after(() => told.abort())
  const clients = CLIENTS.map(async (client) => {
    while (!told.signal.aborted) await ask(url, client).catch((error) => failures.push(`${client}: ${error.message}`))
  })
  return { async stop () {
    told.abort()
    await Promise.all(clients)
    return failures
  } }
}

async function scale (deck: Pick<DeckHere, 'put' | 'until'>, workers: number) {
  const { status } = await deck.put('/scale', { workers })
  assert.ok(status < 300)
  await deck.until({ ready: workers })
}
