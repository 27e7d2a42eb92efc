import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import path from 'node:path'
import autocannon from 'autocannon'
import { median } from '../bench/figures.ts'
import { startDeck, type Deck, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { rssBytes, statusOf } from '../support/process-figures.ts'
import { metric, untilReported } from '../support/vitals.ts'

const TICKS_PER_SECOND = 100
/** A worker is no longer woken for its loop delay. */
const RESTS_AFTER_MS = 10_000
const RESTED_S = 15
/** Of 20 requests 14 take 5 ms, 4 take 50 ms and 2 take 500 ms. */
const MIXTURE = [...Array(14).fill(5), ...Array(4).fill(50), ...Array(2).fill(500)]
const noProc = process.platform !== 'linux' && 'reads /proc'

describe('vitals', { concurrency: 2 }, () => {
  rareTest('the cluster\'s p50 and p99 are those that the app itself measures, within 5 %', async (t) => {
    const truthFolder = tempFolder()
    const deck = await startReady(t, 'measures-itself.js', { env: { TRUTH: truthFolder } })
    await load(await deck.appUrl(), { connections: 60, ms: 4500 })
    const { body: { time, cluster } } = await untilReported(deck)
    await deck.stop()
    const truth = readdirSync(truthFolder).flatMap((name) =>
      JSON.parse(readFileSync(path.join(truthFolder, name), 'utf8'))
    )

    assert.equal(cluster.requests.reduce((a, b) => Number(a) + Number(b)), truth.length)
    const seconds = time.map((second: number,
      index:
        number) => ({ index,
        seen: truth.filter(([at]) => at === second).map(([, ms]) => ms).sort((a, b) => a - b) } as { index: number,
          seen: number[] })
    )
    // Those that begin or end within the load do not have the whole mixture.
    const compared = seconds.filter(({ seen }: { seen: number[] }) => seen.length > 0).slice(1, -1)
    for (const { index, seen } of compared) {
      const at = (share: number) => seen[Math.ceil(seen.length * share) - 1]
      t.diagnostic(
        `${seen.length} requests: p50 ${at(0.5).toFixed(2)} and p99 ${at(0.99).toFixed(1)} ms, told as ${
          cluster.latencyP50Ms[index]
        } and ${cluster.latencyP99Ms[index]} ms`
      )
      assert.ok(isNear(present(cluster.latencyP50Ms[index]), at(0.5)),
        `p50 ${cluster.latencyP50Ms[index]} for ${at(0.5)}`)
      assert.ok(isNear(present(cluster.latencyP99Ms[index]), at(0.99)),
        `p99 ${cluster.latencyP99Ms[index]} for ${at(0.99)}`)
    }
    assert.ok(compared.length >= 3, `${compared.length} seconds`)
  })

  test('CPU time and memory are those that the kernel tells, within 5 %', { skip: noProc }, async (t) => {
    const deck = await startDeck(t, 'hello.js')
    const { workers } = await deck.until({ ready: 2 })
    const pids = workers.map(({ pid }) => pid)
    const url = await deck.appUrl()

    const before = await cpuSeconds(deck, pids)
    const hammering = autocannon({ url, connections: 32, duration: 4 })
    await sleep(3500)
    const after = await cpuSeconds(deck, pids)
    await hammering
    const [told, truth] = [after.told - before.told, after.truth - before.truth]
    t.diagnostic(`CPU: ${told.toFixed(2)} s told, ${truth.toFixed(2)} s used`)
    assert.ok(truth > 0.5, 'they have worked for a while')
    assert.ok(isNear(told, truth), `${told} s for ${truth} s`)

    await untilReported(deck)
    for (const { pid, vitals } of (await deck.status()).workers) {
      const rss = rssBytes(present(pid))
      t.diagnostic(`memory: ${vitals?.rssBytes} bytes told, ${rss} used`)
      assert.ok(isNear(present(vitals?.rssBytes), rss), `${vitals?.rssBytes} for ${rss}`)
    }
  })

  rareTest('what rests is hardly woken: a worker once a second, keeper and master twice', async (t) => {
    const deck = await startDeck(t, 'hello.js')
    const { workers } = await deck.until({ ready: 2 })
    const pids = [statusOf(deck.masterPid, 'PPid'), deck.masterPid, ...workers.map(({ pid }) => pid)]
    await sleep(RESTS_AFTER_MS)
    const counts = [pids.map(wakings)]
    for (let second = 1; second <= RESTED_S; second++) {
      await sleep(1000)
      counts.push(pids.map(wakings))
    }
    // On a busy machine a worker seems busy in some of them.
    const perSecond = pids.map((_, index) =>
      median(counts.slice(1).map((count, second) => count[index] - counts[second][index]))
    )
    t.diagnostic(`woken in a second: keeper, master and workers ${perSecond.join(', ')}`)
    // What is received may come in two parts, and the kernel counts waiting for a lock too.
    assert.ok(Math.max(...perSecond) < 6, perSecond.join(', '))
  })
})

/** @returns how often it has waited for something, by now */
function wakings (pid: number): number {
  return statusOf(pid, 'voluntary_ctxt_switches')
}

function isNear (told: number, truth: number) {
  return Math.abs(told / truth - 1) <= 0.05
}

/** `options`: connections that ask one after the other, each from another place of the mixture on */
async function load (url: string, { connections, ms }: { connections: number, ms: number }) {
  const agent = new http.Agent({ keepAlive: true })
  const until = performance.now() + ms
  await Promise.all(Array.from({ length: connections }, async (_, start) => {
    for (let n = start * 3; performance.now() < until; n += 7) {
      await new Promise((resolve, reject) =>
        http.get(`${url}/?ms=${MIXTURE[n % MIXTURE.length]}`, { agent }, (response) =>
          response.resume().once('end', resolve)).once('error', reject)
      )
    }
  }))
  agent.destroy()
}

/** At the turn of a second, when workers report. */
async function cpuSeconds (deck: Deck, pids: number[]) {
  await sleep(1010 - Date.now() % 1000)
  const ticks = pids.map((pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(fields[11]) + Number(fields[12])
  })
  await sleep(300)
  const told = await Promise.all(
    [1, 2].map((slot) => metric(deck, `clusterdeck_worker_cpu_seconds_total{slot="${slot}"}`))
  )
  return { told: told[0] + told[1], truth: (ticks[0] + ticks[1]) / TICKS_PER_SECOND }
}
