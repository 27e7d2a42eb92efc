/**
 * A storm of crashes: 10,000 of 50 kinds through the recorder, each with as much evidence as a record takes, then 100
 * of real processes. Prints whether each is counted in its group, what they take on the disk and in memory, and how
 * long every query of the crashes holds the loop; it fails where a p99 is over 20 ms or a count is wrong.
 * `node test/bench/crashes.ts [crashes]`
 */
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { openHistory } from '../../db/history.ts'
import { createCrashService } from '../../server/crashes/crashes.ts'
import { createCrashRecorder, type CrashRecorder } from '../../server/crashes/recorder.ts'
import { createEventStream } from '../../server/events/stream.ts'
import { startDeck } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createOwner } from '../support/owner.ts'
import type { ExitNote } from '../../server/crashes/record.ts'

const LIMIT_MS = 20
const KINDS = 50
const total = Number(process.argv[2] ?? 10_000)
const real = 100
const STDERR = Array.from({ length: 50 },
  (_, n) => `2026-01-01T00:00:00.000Z WARN line ${n}: the connection to the store was lost, trying again in ${n} ms`)
const VITALS = Array.from({ length: 60 },
  (_, n) => ({ at: 1767225600 + n, rssBytes: 123456789 + n, heapUsedBytes: 34567890, heapTotalBytes: 56789012,
    externalBytes: 1234567, cpuPercent: 12.3, eventLoopUtilization: 0.123, loopDelayP50Ms: 1.1, loopDelayP99Ms: 12.3,
    loopDelayMaxMs: 20.5, requests: 123, latencyP50Ms: 1.2, latencyP99Ms: 123.4, inFlight: 12, openConnections: 34 }))
const REQUESTS = Array.from({ length: 20 }, (_, n) => ({ method: 'GET', path: `/api/orders/${n}`, ageMs: n * 10 }))
let isRight = true

throughRecorder()
await byProcesses()
process.exitCode = isRight ? 0 : 1

function throughRecorder () {
  const file = path.join(tempFolder(), 'history.db')
  const history = openHistory({ file })
  const events = createEventStream()
  const recorder = createCrashRecorder({ store: history.crashes, events, logs: { tail: () => STDERR },
    vitals: { lastMinute: () => VITALS }, lackedMemory: () => null, soon: (work) => work() })
  const desk = createCrashService({ store: history.crashes, events, release: () => 'r3' })
  const times = []
  let heapAtHalf = 0
  for (let n = 0; n < total; n++) {
    times.push(timed(() => crash(recorder, n)))
    if (n === total / 2) heapAtHalf = usedHeap()
  }
  const growth = usedHeap() - heapAtHalf
  report('record', times)
  const groups = desk.page({ limit: 100 }).items
  check(`${groups.length} groups of ${KINDS} kinds`, groups.length === KINDS)
  check(`counted ${sum(groups)} of ${total}`,
    sum(groups) === total && groups.every(({ count }) => count === total / KINDS))
  console.log(
    `${(statSync(file).size / 1e6).toFixed(1)} MB on the disk; the heap has grown by ${
      (growth / 1e6).toFixed(2)
    } MB in the second half`
  )

  const [{ id, lastCrash }] = groups
  const since = Date.now() - 3_600_000
  for (const [name, query] of Object.entries({ 'all groups': () => desk.page({}),
    'open ones': () => desk.page({ state: 'open' }), 'resolved, none': () => desk.page({ state: 'resolved' }),
    'of a release': () => desk.page({ release: 'r2' }), 'since an hour ago': () => desk.page({ since }),
    'q, in all of them': () => desk.page({ q: 'order cannot be filled' }),
    'q, in one of them': () => desk.page({ q: 'kind17' }), 'q, a first letter': () => desk.page({ q: 'o' }),
    'q, absent': () => desk.page({ q: 'nowhere' }), 'one group': () => desk.find(id),
    'one crash': () => desk.occurrence(id, lastCrash),
    'resolve and reopen': () => [desk.act(id, 'resolve', 'api'), desk.act(id, 'reopen', 'api')] }))
    report(name, Array.from({ length: 500 }, () => timed(query)))
  history.close()
}

async function byProcesses () {
  const owner = createOwner()
  const deck = await startDeck(owner, 'dies-in-many-ways.cjs', { workers: 2,
    flags: ['--restart-min-delay-ms', '1', '--restart-max-delay-ms', '1'] })
  await deck.until({ ready: 2 })
  const url = await deck.appUrl()
  const rss = [memoryOf(deck.masterPid)]
  for (let n = 0; n < real; n++) {
    if (n === real / 2) rss.push(memoryOf(deck.masterPid))
    const known = (await deck.history('type=worker.exited&limit=1'))[0]?.id ?? 0
    await fetch(`${url}/crash?kind=${n % KINDS}`, { headers: { connection: 'close' } }).catch(() => {})
    await deck.untilEvent(({ type, id }) => type === 'worker.exited' && id > known, 'the exit')
    await deck.until({ ready: 2 })
  }
  rss.push(memoryOf(deck.masterPid))
  const { body: { items } } = await deck.api('/crashes?limit=100')
  check(`real processes: ${items.length} groups of ${KINDS} kinds, counted ${sum(items)} of ${real}`,
    items.length === KINDS && items.every(({ count }) => count === real / KINDS))
  console.log(
    `master: ${rss.map((bytes) => (bytes / 1e6).toFixed(0)).join(' → ')} MB RSS at the start, after ${
      real / 2
    } and after ${real}`
  )
  await owner.end()
}

function crash (recorder: CrashRecorder, n: number) {
  const message = `order ${n} cannot be filled`
  const stack = `Error: ${message}\n    at kind${n % KINDS} (/srv/app/src/orders.js:12:34)\n${
    Array.from({ length: 9 }, (_, depth) => `    at step${depth} (/srv/app/src/steps.js:${depth}:1)`).join('\n')
  }`
  const memory = { rssBytes: 123456789, heapTotalBytes: 56789012, heapUsedBytes: 34567890, externalBytes: 1234567,
    arrayBuffersBytes: 12345 }
  const note: ExitNote = { kind: 'exception', errorName: 'Error', errorMessage: message, stack, causes: [],
    requests: REQUESTS, memory, nodeVersion: process.version }
  const exit = { type: 'worker.exited', cause: 'crash', code: 1, signal: null, slot: 1, worker: n, pid: n,
    release: `r${n % 3 + 1}`, rollout: null, uptimeMs: n, message, detail: null }
  recorder.record(exit, { root: '/srv/app', ...recorder.examine({ slot: 1, worker: n, pid: n, code: 1, signal: null }),
    note })
}

/** @returns ms */
function timed (work: () => unknown): number {
  const began = performance.now()
  work()
  return performance.now() - began
}

function report (name: string, times: number[]) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
  check(
    `${name.padEnd(20)} p50 ${at(0.5).toFixed(3)}  p99 ${at(0.99).toFixed(3)}  max ${
      Number(sorted.at(-1)).toFixed(3)
    } ms`,
    at(0.99) <= LIMIT_MS
  )
}

function check (what: string, holds: boolean) {
  isRight &&= holds
  console.log(`${holds ? 'right' : 'WRONG'}  ${what}`)
}

function sum (groups: { count: number }[]) {
  return groups.reduce((all, { count }) => all + count, 0)
}

/** @returns bytes resident */
function memoryOf (pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

function usedHeap () {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
