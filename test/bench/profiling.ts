// What continuous profiling costs: CPU time of the workers per request, latencies at a fixed rate, memory and disk of
// an Express app with it and without, minute by minute, as each worker is profiled once in a minute.
// `node test/bench/profiling.ts [rounds] [requests a second]`
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startDeck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { cpuMs } from '../support/process-figures.ts'
import { loadAtRate } from './compare/client.ts'
import { ratiosTo, spreadOf } from './figures.ts'

const [ROUNDS, PER_SECOND] = [process.argv[2] ?? 5, process.argv[3] ?? 1000].map(Number)
const MINUTE_MS = 60_000
const MB = 1024 ** 2

const owner = createOwner()
const on = await startProfiled('on')
const off = await startProfiled('off')
for (let round = -1; round < ROUNDS; round++) {
  for (const each of round % 2 ? [on, off] : [off, on]) {
    const figures = await measureMinute(each)
    // All modules are loaded and all functions compiled after the first.
    if (round >= 0) each.rounds.push(figures)
  }
}
for (const figure of Object.keys(on.rounds[0])) {
  const [ours, theirs] = [on, off].map(({ rounds }) => rounds.map((each) => each[figure]))
  console.log(`${figure}: on ${spreadOf(ours)}, off ${spreadOf(theirs)}, on ÷ off ${ratiosTo(ours, theirs)}`)
}
console.log(
  `files of profiles: ${(bytesOf(path.join(on.deck.folder, 'profiles')) / MB).toFixed(2)} MB after ${
    (ROUNDS + 1) * 2
  } minutes`
)
await owner.end()

async function startProfiled (profiling: 'on' | 'off') {
  const deck = await startDeck(owner, 'compared-app.cjs', { flags: ['--diagnostics-profiling', profiling] })
  const { workers } = await deck.until({ ready: 2 })
  const rounds: Record<string, number>[] = []
  return { deck, rounds, pids: workers.map(({ pid }: { pid: number }) => pid),
    port: Number(new URL(await deck.appUrl()).port) }
}

async function measureMinute (
  { deck, pids, port }: Awaited<ReturnType<typeof startProfiled>>
): Promise<Record<string, number>> {
  const load = loadAtRate(port, { path: '/express', perSecond: PER_SECOND })
  await sleep(300)
  await load.take()
  const before = cpuMs(pids)
  await sleep(MINUTE_MS)
  const used = cpuMs(pids) - before
  const { total, failed, p50Ms, p99Ms, p999Ms } = await load.end()
  if (failed > 0) throw new Error(`${failed} of ${total} requests failed`)
  const { workers } = await deck.status()
  return { 'CPU µs a request': 1000 * used / total, 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'p99.9 ms': p999Ms,
    'memory of the workers, MB': workers.reduce((sum, { vitals }) => sum + Number(vitals?.rssBytes), 0) / MB }
}

function bytesOf (folder: string) {
  return existsSync(folder)
    ? readdirSync(folder).reduce((sum, name) => sum + statSync(path.join(folder, name)).size, 0)
    : 0
}
