// How connections reach workers: evenly, past busy workers, none left waiting, and at what cost. Compared is what
// clusterdeck does with what it does where workers may load nothing native (the shared socket as libuv waits for it).
//   node test/bench/dispatch.ts [evenness] [busy] [stranded] [rate] [--seconds 10] [--rounds 5]
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import autocannon from 'autocannon'
import { errorCode } from '../../server/errors.ts'
import { startDeck, type Deck } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { present } from '../support/present.ts'
import { until } from '../support/until.ts'
import { answerTimes, keepBusy, largestShare } from './connections.ts'
import { quantile, ratiosTo, spreadOf } from './figures.ts'

const { values, positionals } = parseArgs({ allowPositionals: true,
  options: { seconds: { type: 'string', default: '10' }, rounds: { type: 'string', default: '5' } } })
const [SECONDS, ROUNDS] = [Number(values.seconds), Number(values.rounds)]
const WORKERS = 8
const CONNECTIONS = 20 * WORKERS
const FAULT_EVERY_MS = 200
/** One that dies often is replaced at once all the same. */
const HASTY = ['--restart-min-delay-ms', '1', '--restart-max-delay-ms', '1', '--restart-reset-after-ms', '1',
  '--drain-idle-grace-ms', '100']
const WAYS = Object.freeze({ even: [], plain: ['--exec-argv=--no-addons'] })

type Site = { deck: Deck, port: number }

const PARTS: Record<string, () => Promise<void>> = { evenness, busy, stranded, rate }
for (const [name, part] of Object.entries(PARTS))
  if (positionals.length === 0 || positionals.includes(name)) await part()

/** Long-lived connections: the largest share of a worker ÷ the mean. */
async function evenness () {
  await withSites(async (sites) => {
    for (const gapMs of [10, 0]) {
      const shares: Record<string, number[]> = {}
      for (let round = 0; round < ROUNDS; round++) {
        for (const [way, { port }] of Object.entries(sites))
          (shares[way] ??= []).push(
            await largestShare({ port, path: '/' }, { connections: CONNECTIONS, workers: WORKERS, gapMs })
          )
      }
      for (const [way, all] of Object.entries(shares))
        console.log(
          `${CONNECTIONS} connections over ${WORKERS} workers, ${
            gapMs ? `${gapMs} ms apart` : 'at once'
          }, ${way}: largest ÷ mean ${spreadOf(all)}`
        )
    }
  })
}

/** Fresh connections while two workers are in JavaScript for a second at a time. */
async function busy () {
  await withSites(async (sites) => {
    for (const [way, { port }] of Object.entries(sites)) {
      const stop = await keepBusy({ port, path: '/' }, { count: 2, busyPath: '/busy?ms=1000' })
      const times = await answerTimes({ port, path: '/' }, { everyMs: 50, seconds: SECONDS })
      await stop()
      console.log(
        `two of ${WORKERS} workers busy, ${way}: first answer p50 ${shown(times, 0.5)} ms, p99 ${
          shown(times, 0.99)
        } ms, slowest ${shown(times, 1)} ms of ${times.length}`
      )
    }
  })
}

/** Fresh connections while workers go all the time. */
async function stranded () {
  for (const fault of ['kill', 'stop', 'drain'] as const) {
    await withSites(async (sites) => {
      for (const everyMs of [50, 2000]) {
        for (const [way, { deck, port }] of Object.entries(sites)) {
          const end = harm(deck, fault)
          const times = await answerTimes({ port, path: '/' }, { everyMs, seconds: SECONDS })
          await end()
          const failed = times.filter((ms) => Number.isNaN(ms)).length
          console.log(
            `${fault} every ${FAULT_EVERY_MS} ms, a connection every ${everyMs} ms, ${way}: ${times.length} connections, ${failed} failed, p50 ${
              shown(times, 0.5)
            } ms, p99 ${shown(times, 0.99)} ms, slowest ${shown(times, 1)} ms`
          )
          await deck.until({ ready: WORKERS })
        }
      }
    })
  }
}

/** A connection per request: how many, at how many context switches of the workers. */
async function rate () {
  await withSites(async (sites) => {
    const rates: Record<string, number[]> = {}
    const switches: Record<string, number[]> = {}
    for (let round = 0; round < ROUNDS; round++) {
      for (const [way, { deck, port }] of Object.entries(sites)) {
        const pids = (await deck.status()).workers.map(({ pid }) => Number(pid))
        const before = switchesOf(pids)
        const { requests } = await autocannon({ url: `http://127.0.0.1:${port}`, connections: 32, duration: 3,
          headers: { connection: 'close' } })
        ;(rates[way] ??= []).push(requests.average)
        ;(switches[way] ??= []).push((switchesOf(pids) - before) / requests.total)
      }
    }
    for (const way of Object.keys(rates)) {
      console.log(
        `a connection per request, ${way}: ${Math.round(quantile(rates[way], 0.5))} a second, ${
          ratiosTo(rates[way], rates.plain)
        } × plain, ${spreadOf(switches[way])} context switches each`
      )
    }
  })
}

async function withSites (work: (sites: Record<string, Site>) => Promise<void>) {
  const owner = createOwner()
  const sites: Record<string, Site> = {}
  for (const [way, flags] of Object.entries(WAYS)) {
    const deck = await startDeck(owner, 'hangs.js', { workers: WORKERS, flags: [...HASTY, ...flags] })
    await deck.until({ ready: WORKERS })
    await until(async () => (await deck.status()).isEven === (way !== 'plain'), 'the workers to tell how they wait')
    sites[way] = { deck, port: Number(new URL(await deck.appUrl()).port) }
  }
  await work(sites)
  await owner.end()
}

function harm (deck: Deck, fault: 'kill' | 'stop' | 'drain'): () => Promise<void> {
  const stopped = new AbortController()
  const over = (async () => {
    while (!stopped.signal.aborted) {
      const ready = (await deck.status()).workers.filter(({ state }) => state === 'ready')
      const victim = ready[Math.floor(Math.random() * ready.length)]
      if (victim && fault === 'kill') signal(victim, 'SIGKILL')
      if (victim && fault === 'drain') await deck.api(`/workers/${victim.id}/restart`, { method: 'POST' })
      if (victim && fault === 'stop') signal(victim, 'SIGSTOP')
      await wait(FAULT_EVERY_MS)
      if (victim && fault === 'stop') signal(victim, 'SIGCONT')
    }
  })()
  return async () => {
    stopped.abort()
    await over
  }
}

function signal ({ pid }: { pid: number | null }, name: NodeJS.Signals) {
  try {
    process.kill(present(pid), name)
  } catch (error) {
    // It has ended in between.
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/** @returns of all their threads */
function switchesOf (pids: number[]): number {
  return pids.reduce(
    (sum, pid) =>
      sum +
      [...readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/ctxt_switches:\s+(\d+)/g)].reduce((all, [, count]) =>
        all + Number(count), 0),
    0
  )
}

function shown (values: number[], share: number) {
  return quantile(values, share).toFixed(1)
}
