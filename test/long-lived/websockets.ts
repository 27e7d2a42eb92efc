// Many WebSockets over three deploys and the death of the master; then the old workers end.
//   node test/long-lived/websockets.ts [--connections 10000] [--everyMs 10000] [--flag=--drain-spread-ms=10000 …]
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { toTable } from '../apps/report.ts'
import { startDeck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { freePort } from '../support/ports.ts'
import { pssMegabytes } from '../support/process-figures.ts'
import { until } from '../support/until.ts'
import { createWebSockets, type Closing } from './clients/websockets.ts'
import { countBy } from './count-by.ts'

const { values: { connections, everyMs, flag } } = parseArgs({
  options: { connections: { type: 'string', default: '10000' }, everyMs: { type: 'string', default: '10000' },
    flag: { type: 'string', multiple: true, default: [] } }
})
const COUNT = Number(connections)
const BUCKET_MS = 100
/** Two slots have so many after three deploys and the death of the master. */
const OLD_WORKERS = 8
/** What is on its way needs a moment on a busy machine. */
const SETTLE_MS = 3000
/** Close codes that say what happens: RFC 6455 and the registry of IANA. */
const PROPER = [1000, 1001, 1012]

const port = await freePort()
const deck = await startDeck(createOwner(), new URL('programs/echo.ts', import.meta.url).pathname, { workers: 2,
  env: { PORT: String(port) }, flags: [`--drain-max-old-workers=${OLD_WORKERS}`, ...flag] })
await deck.until({ ready: 2 })
const sockets = createWebSockets({ port, everyMs: Number(everyMs) })
const rows: (string | number)[][] = []

await step('opened', () => sockets.add(COUNT * 0.4))
await step('deploy', () => deploy(COUNT * 0.2))
await step('deploy', () => deploy(COUNT * 0.2))
await step('SIGKILL of the master', async () => {
  await deck.loseMaster()
  await untilReady(2)
  await sockets.add(COUNT * 0.2)
})
await step('deploy', () => deploy(0))
const ownDelay = monitorEventLoopDelay()
ownDelay.enable()
const endedAt = performance.now()
await step('the old workers end', endOld)
const stoppedAt = performance.now()
const latestMs = ownDelay.max / 1e6
await step('SIGTERM to the deck', async () => {
  sockets.quieten()
  await deck.stop()
}, () => ['–', '–'])
console.log(
  toTable(['step', 'took s', 'open', 'closed', 'by code', 'messages without an echo', 'old workers',
    'MB (PSS) of old workers'], rows)
)
console.log(
  `\n${sockets.messages()} messages, ${sockets.strange.length} strange answers, ${sockets.failures.length} connections that could not be opened ${
    describe(countBy(sockets.failures, String))
  }`
)
console.log(
  `The old workers: ${
    spreadText(sockets.closings.filter(({ at, wasOpen }) => wasOpen && at >= endedAt && at < stoppedAt))
  }; this process was late by up to ${Math.round(latestMs)} ms`
)
console.log(`The stop: ${spreadText(sockets.closings.filter(({ at, wasOpen }) => wasOpen && at >= stoppedAt))}`)
await sockets.end()
process.exit()

async function step (name: string, work: () => Promise<unknown>,
  old: () => Promise<string[]> | string[] = describeOld)
{
  const [known, begunAt] = [sockets.closings.length, performance.now()]
  await work()
  const took = performance.now() - begunAt
  await wait(SETTLE_MS)
  const closed = sockets.closings.slice(known).filter(({ wasOpen }) => wasOpen)
  const lost = closed.reduce((sum, { unanswered }) => sum + unanswered, 0)
  const row = [name, (took / 1000).toFixed(1), sockets.open(), closed.length,
    describe(countBy(closed, ({ code }) => code)), lost, ...await old()]
  rows.push(row)
  process.stderr.write(`${row.join(' | ')}\n`)
}

/** `more`: connections, once it is over */
async function deploy (more: number) {
  const { state, reason } = await deck.rollout('deploy')
  if (state !== 'succeeded') throw new Error(`the deploy ${state}: ${reason}`)
  await sockets.add(more)
}

/** Ends the old workers, as an operator does who wants them gone. */
async function endOld () {
  const { workers } = await deck.status()
  const old = workers.filter(({ state }) => state === 'draining')
  for (const { id } of old) {
    const { status, body } = await deck.api(`/workers/${id}/end-connections`, { method: 'POST' })
    if (status >= 300) throw new Error(`worker ${id}: ${status} ${JSON.stringify(body)}`)
  }
  await deck.untilStatus((now) => !now.workers.some(({ state }) => state === 'draining'), 'the end of the old workers')
}

async function untilReady (count: number) {
  await deck.untilStatus(
    ({ readyWorkers, workers }) =>
      readyWorkers === count && workers.filter(({ state }) => state === 'starting').length === 0,
    `${count} ready workers`
  )
}

/** @returns how many connections the old workers have, and how much memory */
async function describeOld (): Promise<string[]> {
  await until(() => sockets.unanswered() < sockets.open() / 10, 'echoes')
  const current = new Set((await deck.status()).workers.filter(({ state }) => state === 'ready').map(({ pid }) => pid))
  const old = Object.entries(sockets.byPid()).map(([pid, count]) => ({ pid: Number(pid), count })).filter(({ pid }) =>
    !current.has(pid)
  )
  return [old.map(({ count }) => count).join(' + ') || '0',
    old.map(({ pid }) => Math.round(pssMegabytes([pid]))).join(' + ') || '0']
}

function describe (counts: Record<string, number>): string {
  const abnormal = Object.keys(counts).filter((code) => !PROPER.includes(Number(code)))
  const text = Object.entries(counts).map(([code, count]) => `${count} × ${code}`).join(', ')
  return abnormal.length > 0 ? `**${text}**` : text || '–'
}

/** How evenly they closed. */
function spreadText (closed: Closing[]) {
  if (closed.length === 0) return 'nothing closed'
  const times = closed.map(({ at }) => at)
  const from = Math.min(...times)
  const buckets = new Array(Math.floor((Math.max(...times) - from) / BUCKET_MS) + 1).fill(0)
  for (const at of times) buckets[Math.floor((at - from) / BUCKET_MS)]++
  const mean = closed.length / buckets.length
  return `${closed.length} closed in ${((Math.max(...times) - from) / 1000).toFixed(1)} s (${
    describe(countBy(closed, ({ code }) => code))
  }), ` +
    `in each ${BUCKET_MS} ms ${mean.toFixed(1)} on average and ${Math.max(...buckets)} at most: ${
      (Math.max(...buckets) / mean).toFixed(2)
    } ×`
}
