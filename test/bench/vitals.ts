// What vitals cost a plain `http` hello: CPU time per request and requests per second with them, as a share of those
// without them and of those under bare node:cluster. All three alternate in one run, because machines are noisy. Then
// how much the heap has grown by after 200,000 requests more. `node test/bench/vitals.ts [rounds]`
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import autocannon from 'autocannon'
import { startDeck, type Deck } from '../support/deck.ts'
import { createInstallation } from '../support/install.ts'
import { createOwner } from '../support/owner.ts'

const ROUNDS = Number(process.argv[2] ?? 30)
const SECONDS = 1
const HEAP_REQUESTS = 200_000
const owner = createOwner()
// One worker and the load have a CPU each; with more they would take it from each other.
const WORKERS = 1

const installation = createInstallation()
await installation.install('without', {
  'workers/requests.ts':
    'export const UNCOUNTED = Symbol(); export const watchRequests = () => ({ inFlight: () => [], isNewest: () => true })',
  'workers/vitals.ts': 'export const sendVitals = () => ({ send () {} })'
})
const plain = spawn(process.execPath, [fixture('plain-cluster.js'), String(WORKERS), './hello.js'], {
  stdio: ['ignore', 'pipe', 'inherit']
})
owner.spawned(plain)
const [port] = await once(plain.stdout, 'data')
const decks = {
  vitals: await startDeck(owner, 'hello.js', { workers: WORKERS }),
  // It would be taken for one that hangs.
  without: await startDeck(owner, 'hello.js', { workers: WORKERS, cli: installation.cli,
    flags: ['--watchdog-timeout-ms', '0'] })
}
const targets = { vitals: await target(decks.vitals), without: await target(decks.without),
  plain: { url: `http://localhost:${Number(port)}`, pid: await childOf(Number(plain.pid)) } }

for (const { url } of Object.values(targets)) await autocannon({ url, connections: 32, amount: 100_000 })

type Result = { cpuUs: number, perSecond: number }
const results: Record<keyof typeof targets, Result[]> = { vitals: [], without: [], plain: [] }
for (let round = 0; round < ROUNDS; round++) {
  // Each of them comes first as often as the others do.
  const names = Object.keys(targets) as (keyof typeof targets)[]
  for (const name of [...names.slice(round % 3), ...names.slice(0, round % 3)])
    results[name].push(await measure(targets[name]))
}
for (const [name, rounds] of Object.entries(results)) {
  console.log(
    `${name.padEnd(8)} CPU ${median(rounds.map(({ cpuUs }) => cpuUs)).toFixed(2)} µs a request, ${
      Math.round(median(rounds.map(({ perSecond }) => perSecond)))
    } requests a second`
  )
}
for (const other of ['without', 'plain'] as const) {
  const cpu = median(results.vitals.map(({ cpuUs }, round) => cpuUs / results[other][round].cpuUs))
  const rate = median(results.vitals.map(({ perSecond }, round) => perSecond / results[other][round].perSecond))
  console.log(
    `with vitals / ${other}: CPU a request ${cpu.toFixed(3)}, requests a second ${
      rate.toFixed(3)
    } (median of ${ROUNDS} ratios)`
  )
}

const before = await heapBytes()
await autocannon({ url: targets.vitals.url, connections: 32, amount: HEAP_REQUESTS })
const after = await heapBytes()
console.log(
  `lowest heap of 10 seconds: ${(before / 1e6).toFixed(2)} MB, after ${HEAP_REQUESTS} requests more ${
    (after / 1e6).toFixed(2)
  } MB`
)

await owner.end()

async function target (deck: Deck) {
  const { workers: [{ pid }] } = await deck.until({ ready: WORKERS })
  return { url: await deck.appUrl(), pid }
}

async function measure ({ url, pid }: { url: string, pid: number }): Promise<Result> {
  const began = await cpuNs(pid)
  const { requests } = await autocannon({ url, connections: 32, duration: SECONDS })
  return { cpuUs: (await cpuNs(pid) - began) / 1000 / requests.total, perSecond: requests.average }
}

/** @returns CPU time of all its threads */
async function cpuNs (pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number)
  // Clock ticks of 10 ms: a second of load is known within 1 %, the median of many better.
  return (user + system) * 10_000_000
}

async function childOf (pid: number) {
  return Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')[0])
}

/** The lowest of ten seconds of light load, as what is garbage comes and goes. */
async function heapBytes () {
  const since = Date.now()
  await autocannon({ url: targets.vitals.url, connections: 4, duration: 10, overallRate: 2000 })
  const { body } = await decks.vitals.api(`/vitals?step=1s&since=${new Date(since).toISOString()}`)
  return Math.min(...body.cluster.heapUsedBytes.map(Number))
}

function median (values: number[]) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

function fixture (name: string) {
  return fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url))
}
