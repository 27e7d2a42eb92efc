import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startReadyHere } from '../support/deck-here.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import type { Readable } from 'node:stream'

const DEMO = fileURLToPath(new URL('../../workers/demo/app.js', import.meta.url))
const ON_ITS_OWN = { PORT: '0', HOST: '127.0.0.1' }
// Says where the demo listens, which it does not do itself.
const ANNOUNCE = `data:text/javascript,${
  encodeURIComponent(`
  import net from 'node:net'
  const { listen } = net.Server.prototype
  net.Server.prototype.listen = function (...args) {
    this.once('listening', () => console.log(this.address().port))
    return listen.apply(this, args)
  }`)
}`

describe('the demo app, as one process', () => {
  let child: ChildProcess
  let url: string

  before(async () => {
    child = spawn(process.execPath, ['--import', ANNOUNCE, DEMO], { env: { ...process.env, ...ON_ITS_OWN },
      stdio: ['ignore', 'pipe', 'ignore'] })
    const [port] = await once(createInterface(child.stdout as Readable), 'line')
    url = `http://127.0.0.1:${port}`
  })
  after(() => {
    child.kill('SIGKILL')
  })

  const get = async (where: string) => {
    const response = await fetch(url + where)
    return { status: response.status, type: response.headers.get('content-type'), body: await response.text() }
  }

  test('/ says which process answers', async () => {
    const { status, body } = await get('/')
    assert.equal(status, 200)
    assert.deepEqual(JSON.parse(body), { pid: child.pid, worker: null, slot: null, release: null })
  })

  test('/fib?n=30 is exactly {"data":832040}', async () => {
    assert.deepEqual(await get('/fib?n=30'), { status: 200, type: 'application/json', body: '{"data":832040}' })
    assert.equal((await get('/fib')).body, '{"data":832040}')
    assert.deepEqual(await Promise.all([0, 1, 2, 20].map(async (n) => (await get(`/fib?n=${n}`)).body)), ['{"data":0}',
      '{"data":1}', '{"data":1}', '{"data":6765}'])
  })

  test('/work loops and gives the same result every time', async () => {
    const { status, body } = await get('/work?loops=100000')
    assert.equal(status, 200)
    assert.equal((await get('/work?loops=100000')).body, body)
    assert.notEqual((await get('/work?loops=100001')).body, body)
  })

  test('/slow answers after its time and not before', async () => {
    const began = performance.now()
    const { status, body } = await get('/slow?ms=150')
    assert.equal(status, 200)
    assert.equal(JSON.parse(body).ms, 150)
    assert.ok(performance.now() - began >= 145)
  })

  test('/payload has exactly so many bytes', async () => {
    for (const bytes of [0, 1, 65_535, 65_536, 65_537, 3_000_001]) {
      const response = await fetch(`${url}/payload?bytes=${bytes}`)
      assert.equal((await response.arrayBuffer()).byteLength, bytes)
      assert.equal(response.headers.get('content-length'), String(bytes))
    }
  })

  test('/stream comes in parts: the first is there long before the second is written', async () => {
    const response = await fetch(`${url}/stream?chunks=2&ms=60000`)
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const { value } = await reader.read()
    await reader.cancel()
    assert.equal(JSON.parse(new TextDecoder().decode(value)).chunk, 1)
  })

  test('/stream takes its time between the parts, and ends', async () => {
    const began = performance.now()
    const { status, body } = await get('/stream?chunks=3&ms=40')
    assert.equal(status, 200)
    assert.deepEqual(body.trim().split('\n').map((line) => JSON.parse(line).chunk), [1, 2, 3])
    assert.ok(performance.now() - began >= 75)
  })

  test('a parameter that is out of its bounds is refused with 400', async () => {
    for (const where of ['/fib?n=41', '/fib?n=-1', '/fib?n=x', '/fib?n=', '/fib?n=1e1', '/work?loops=1000000001',
      '/slow?ms=soon', '/payload?bytes=100000001', '/payload?bytes=1.5', '/stream?chunks=%F0', '/leak?bytes=x'])
    {
      const { status, body } = await get(where)
      const { error, message } = JSON.parse(body)
      assert.deepEqual([status, error], [400, 'bad-parameter'], where)
      assert.match(message, /: expected an integer from 0 to \d+, received "/)
    }
  })

  test('what is not there is a 404 in JSON, names of every object included', async () => {
    for (const where of ['/nothing', '/fib/', '//', '/constructor', '/__proto__', '/%']) {
      const { status, type, body } = await get(where)
      assert.deepEqual([status, type], [404, 'application/json'], where)
      assert.equal(JSON.parse(body).error, 'not-found')
    }
  })

  test('/leak keeps what it was asked to keep', async () => {
    const first = JSON.parse((await get('/leak?bytes=1000000')).body)
    const second = JSON.parse((await get('/leak?bytes=2000000')).body)
    assert.deepEqual([first.keptBytes, second.keptBytes], [1_000_000, 3_000_000])
  })
})

test('/explode answers, then kills its worker, and the cluster replaces it', async (t) => {
  const deck = await startReadyHere(t, DEMO, { env: ON_ITS_OWN })
  const { pid, worker, slot, release } = JSON.parse(await deck.ask('/explode'))
  assert.equal(release, 'r1')
  const exited = await deck.untilEvent('worker.exited', { worker })
  assert.deepEqual([exited.cause, exited.code, exited.pid, exited.slot], ['crash', 1, pid, slot])
  assert.match(String(exited.message), /the demo exploded, as it was asked to/)
  await deck.until({ ready: 2 })
})

rareTest('/hang takes its worker alone: the other one answers', async (t) => {
  const deck = await startReadyHere(t, DEMO, { env: ON_ITS_OWN })
  // node answers "100 Continue" right before it calls the handler: from then on that worker accepts nobody.
  const hanging = http.get(`${await deck.appUrl()}/hang`, { agent: false, headers: { expect: '100-continue' } }).on(
    'error',
    () => {}
  )
  hanging.flushHeaders()
  await once(hanging, 'continue')
  const pids = new Set(await Promise.all(Array.from({ length: 10 }, async () => JSON.parse(await deck.ask()).pid)))
  assert.equal(pids.size, 1)
  hanging.destroy()
  const stuck = (await deck.status()).workers.find(({ pid }) => !pids.has(pid))
  process.kill(present(stuck?.pid), 'SIGKILL')
  await deck.untilEvent('worker.exited', { worker: stuck?.id })
})
