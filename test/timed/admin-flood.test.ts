import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { above } from '../support/event-log.ts'
import { FIXTURES, type Deck, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { loopDelays, noteLoopDelays } from '../support/loop-delays.ts'
import { present } from '../support/present.ts'
import { rssBytes } from '../support/process-figures.ts'
import { rareOnly } from '../support/rare.ts'

type Answers = { slowestMs: number, failures: string[], count: number }

const FLOOD_MS = 9000
/** Wrong tokens a second. */
const RATE = 2000
const IDLE = 600
const STALLED = 300
const PROBE_EVERY_MS = 250
const MAX_WITHOUT_CPU = 0.25
const HOST = '127.0.0.1'
const ELSEWHERE = '127.0.0.2'

test('an admin port in a flood answers whoever may ask, and its master works as ever', {
  skip: (process.platform !== 'linux' && 'reads /proc') || rareOnly
}, async (t) => {
  const folder = tempFolder()
  const deck = await startReady(t, 'writes-lines.js', { args: ['100000'], launch: noteLoopDelays(folder) })
  const { body: { token } } = await deck.post('/tokens', { name: 'reader', role: 'operator' })
  const usualMs = Math.max(await replaceWorker(deck, 1), await replaceWorker(deck, 2))

  const startedAt = Date.now()
  const flood = startFlood(t, deck, token)
  await flood.begun
  const probes = startProbes(deck)
  const replacedMs = []
  for (const slot of [1, 2]) {
    await sleep(FLOOD_MS / 3)
    replacedMs.push(await replaceWorker(deck, slot))
  }
  await sleep(startedAt + FLOOD_MS - Date.now())
  const { rssBytes: memory, healthz, elsewhere, here } = await probes.stop()
  const endedAt = Date.now()
  const done = await flood.stop()
  const delays = loopDelays(path.join(folder, String(deck.masterPid)), { startedAt, endedAt })

  t.diagnostic(`flood: ${JSON.stringify(done)}`)
  t.diagnostic(
    `the master's event loop: ${describe(delays.all)}; but for the time without a CPU ${
      describe(delays.own)
    }; its memory at most ${Math.round(memory / 2 ** 20)} MB; without a CPU for ${
      Math.round(delays.withoutCpu * 100)
    } % of the time`
  )
  t.diagnostic(`a worker is replaced within ${usualMs} ms before, ${replacedMs.join(' and ')} ms in the flood`)
  for (const [name, { count, slowestMs, failures }] of Object.entries({ healthz, elsewhere, here }))
    t.diagnostic(
      `${name}: ${count} asked, ${failures.length} failed, the slowest took ${slowestMs} ms ${failures.slice(0, 5)}`
    )
  assert.ok(at(delays.own, 0.99) < 50, describe(delays.own))
  assert.ok(memory < 200 * 2 ** 20, `${memory} bytes`)
  // What follows is of the whole machine, which is the flood's and the test's as well.
  if (delays.withoutCpu > MAX_WITHOUT_CPU)
    return t.skip(
      `the machine was too busy: for ${Math.round(delays.withoutCpu * 100)} % of the time the master had no CPU`
    )
  assert.ok(
    done.answered > 0.9 * RATE * FLOOD_MS / 1000 && done.idle.opened >= IDLE && done.stalled.open === STALLED &&
      done.bodies.ended >= 4,
    'it is the flood that is meant'
  )
  for (const ms of replacedMs) assert.ok(ms < usualMs + 1000, `${ms} ms`)
  for (const { failures } of [healthz, elsewhere, here]) assert.deepEqual(failures, [])
})

/** @returns ms from its SIGKILL to the next worker that is ready, by the clock of the master */
async function replaceWorker (deck: Deck, slot: number): Promise<number> {
  const { workers } = await deck.status()
  const { id, pid } = present(workers.find((worker) => worker.slot === slot))
  const killedAt = Date.now()
  process.kill(present(pid), 'SIGKILL')
  const ready = await deck.untilEvent('worker.ready', { slot, worker: above(Number(id)) })
  return Date.parse(ready.at) - killedAt
}

function startFlood (t: TestContext, deck: Deck, token: string) {
  const plan = { host: HOST, port: Number(new URL(deck.adminUrl).port), token, wrongPerSecond: RATE, idle: IDLE,
    stalled: STALLED, bodyBytes: 2 ** 30 }
  const child = fork(path.join(FIXTURES, 'floods-an-admin-port.js'), [JSON.stringify(plan)])
  t.after(() => child.kill('SIGKILL'))
  return { begun: once(child, 'spawn'), async stop () {
    child.send('stop')
    return (await once(child, 'message'))[0]
  } }
}

/** Asks again and again, each time by a new connection. */
function startProbes (deck: Deck) {
  const stopping = new AbortController()
  const known = { authorization: `Bearer ${deck.token}` }
  const healthz = keepAsking(`${deck.adminUrl}/healthz`, { localAddress: ELSEWHERE }, stopping.signal)
  const elsewhere = keepAsking(`${deck.adminUrl}/api/v1/status`, { localAddress: ELSEWHERE, headers: known },
    stopping.signal)
  const here = keepAsking(`${deck.adminUrl}/api/v1/status`, { localAddress: HOST, headers: known }, stopping.signal)
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, rssBytes(deck.masterPid))
  }, PROBE_EVERY_MS)
  return { async stop () {
    stopping.abort()
    clearInterval(timer)
    return { rssBytes: most, healthz: await healthz, elsewhere: await elsewhere, here: await here }
  } }
}

async function keepAsking (url: string, options: http.RequestOptions, stopping: AbortSignal): Promise<Answers> {
  const answers: Answers = { slowestMs: 0, failures: [], count: 0 }
  while (!stopping.aborted) {
    const startedAt = performance.now()
    const failure = await ask(url, options)
    const ms = Math.round(performance.now() - startedAt)
    answers.count++
    answers.slowestMs = Math.max(answers.slowestMs, ms)
    if (failure !== null || ms >= 1000) answers.failures.push(failure ?? `${ms} ms`)
    await sleep(Math.max(0, PROBE_EVERY_MS - ms))
  }
  return answers
}

function ask (url: string, options: http.RequestOptions): Promise<string | null> {
  return new Promise((resolve) => {
    http.get(url, { ...options, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode === 200 ? null : `status ${response.statusCode}`))
    }).once('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)))
  })
}

function describe (delays: number[]) {
  return `p50 ${at(delays, 0.5).toFixed(1)}, p99 ${at(delays, 0.99).toFixed(1)}, at most ${
    at(delays, 1).toFixed(1)
  } ms late`
}

function at (sorted: number[], share: number) {
  return sorted[Math.ceil(sorted.length * share) - 1]
}
