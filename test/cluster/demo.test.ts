import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCli, startDeck } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import type { Readable } from 'node:stream'
import type { DeckEvent } from '../../server/events/stream.ts'
import type { DeckClient } from '../support/deck-client.ts'

const DEMO = fileURLToPath(new URL('../../workers/demo/app.js', import.meta.url))
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
    child = spawn(process.execPath, ['--import', ANNOUNCE, DEMO], {
      env: { ...process.env, PORT: '0', HOST: '127.0.0.1' },
      stdio: ['ignore', 'pipe', 'ignore']
    })
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

  for (const where of ['/fib?n=41', '/fib?n=-1', '/fib?n=x', '/fib?n=', '/fib?n=1e1', '/work?loops=1000000001',
    '/slow?ms=soon', '/payload?bytes=100000001', '/payload?bytes=1.5', '/stream?chunks=%F0', '/leak?bytes=x'])
  {
    test(`${where} is refused with 400`, async () => {
      const { status, body } = await get(where)
      assert.equal(status, 400)
      const { error, message } = JSON.parse(body)
      assert.equal(error, 'bad-parameter')
      assert.match(message, /: expected an integer from 0 to \d+, received "/)
    })
  }

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
  const { deck, url } = await runDemo(t, startDeckHere)
  const { pid, worker, slot, release } = await getJson(`${url}/explode`)
  assert.equal(release, 'r1')
  const exited = await deck.untilEvent((event) => event.type === 'worker.exited' && event.worker === worker,
    'the exploded worker to be gone')
  assert.deepEqual([exited.cause, exited.code, exited.pid, exited.slot], ['crash', 1, pid, slot])
  assert.match(String(exited.message), /the demo exploded, as it was asked to/)
  await deck.until({ ready: 2 })
})

rareTest('/hang takes its worker alone: the other one answers', async (t) => {
  const { deck, url } = await runDemo(t, startDeckHere)
  // node answers "100 Continue" right before it calls the handler: from then on that worker accepts nobody.
  const hanging = http.get(`${url}/hang`, { agent: false, headers: { expect: '100-continue' } }).on('error', () => {})
  hanging.flushHeaders()
  await once(hanging, 'continue')
  const answers = await Promise.all(Array.from({ length: 10 }, () => getJson(url)))
  assert.equal(new Set(answers.map(({ pid }) => pid)).size, 1)
  hanging.destroy()
  const { workers } = await deck.status()
  const stuck = workers.find(({ pid }) => pid !== answers[0].pid)
  process.kill(present(stuck?.pid), 'SIGKILL')
  await deck.untilEvent((event) => event.type === 'worker.exited' && event.worker === stuck?.id,
    'the hung worker to be gone')
})

rareTest('the whole command line, on a running master', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'clusterdeck-demo-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { deck, url } = await runDemo(t, startDeck, folder)
  const cli = (...args: string[]) => runCli([...args, '--data-dir', folder])

  assert.match((await cli('status')).stdout, /2 of 2 ready/)
  assert.deepEqual(
    await cli('deploy', '--wait', '--note', 'by test').then((
      { code, stdout }
    ) => [code, stdout.replace(/in [\d.]+ m?s:/, 'in time:')]),
    [0, 'rollout 1 (deploy) succeeded in time: 2 of 2 workers replaced\n']
  )
  assert.equal((await getJson(url)).release, 'r2')
  assert.equal(JSON.parse((await cli('restart', '--wait', '--json')).stdout).state, 'succeeded')
  assert.deepEqual(await cli('scale', '3', '--wait').then(({ code, stdout }) => [code, stdout]), [0,
    '3 workers are ready\n'])
  const { items }: { items: DeckEvent[] } = JSON.parse(
    (await cli('history', '--type', 'rollout.started', '--json')).stdout
  )
  assert.deepEqual(items.map(({ rollout, actor, detail }) => [rollout, actor, detail?.kind]), [[2, 'the owner\'s token',
    'restart'], [1, 'the owner\'s token', 'deploy']])
  assert.deepEqual(await cli('stop').then(({ code, stdout }) => [code, stdout]), [0, 'stopped\n'])
  assert.deepEqual(await deck.exited, { code: 0, signal: null })
  assert.equal((await cli('status')).code, 5)
})

type Answer = { pid: number, worker: number, slot: number, release: string }

/** On a connection of its own. */
async function getJson (url: string): Promise<Answer> {
  return await (await fetch(url, { headers: { connection: 'close' } })).json() as Answer
}

async function runDemo<D extends DeckClient> (t: TestContext,
  start: (t: TestContext, app: string, options: { env: Record<string, string>, dataDir?: string }) => Promise<D>,
  dataDir?: string)
{
  const deck = await start(t, DEMO, { env: { PORT: '0', HOST: '127.0.0.1' }, dataDir })
  await deck.until({ ready: 2 })
  return { deck, url: await deck.appUrl() }
}
