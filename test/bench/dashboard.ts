// What somebody who looks costs, beside the goal of each: bytes and requests of a page's first load; bytes a second at
// rest, while the app serves; the master's CPU time under 200 viewers; the longest task and the memory of a tab in
// 10,000 events a minute; how long it takes from a kill to the pixel: `node test/bench/dashboard.ts
// [load|rest|viewers|events|pixel …]`
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import autocannon from 'autocannon'
import { io } from 'socket.io-client'
import { openBrowser } from '../support/browser.ts'
import { startDashboard } from '../support/dashboard.ts'
import { startDeck, type Deck, type TestOwner } from '../support/deck.ts'
import { createOwner } from '../support/owner.ts'
import { followTraffic } from '../support/traffic.ts'

const REST_S = 10
const VIEWERS = 200
const VIEWERS_S = 20
const EVENTS = 10_000
const EVENTS_S = 60
const EVENT_TYPES = ['worker.exited', 'worker.forked', 'worker.online', 'worker.ready']
const KILLS = 50
/** Of each worker, so that its vitals are other ones each second. */
const REQUESTS_PER_SECOND = 10

const PARTS = { load, rest, viewers, events, pixel }
const chosen = process.argv.slice(2)
const browser = await openBrowser()
for (const [name, part] of Object.entries(PARTS)) {
  if (chosen.length === 0 || chosen.includes(name)) await part()
}
await browser.close()

async function load () {
  await withDeck(4, async (deck) => {
    const [{ id }] = (await deck.status()).workers
    for (const path of ['/', '/deploys', '/history', '/crashes', '/logs', `/workers/${id}`, '/settings', '/access',
      '/alerts', '/docs', '/docs/api'])
    {
      const { page, traffic } = await visit(deck, path)
      await sleep(1500)
      const isOverview = path === '/'
      report(`first load of ${path}`, `${kilobytes(traffic.bytes)}, ${traffic.requests} requests`,
        isOverview ? '95 kB, 12 requests' : '70 kB')
      await page.context().close()
    }
  })
}

async function rest () {
  for (const [workers, goal] of [[16, '5 kB/s'], [64, '15 kB/s']]) {
    await withDeck(Number(workers), async (deck) => {
      const { page, traffic } = await visit(deck, '/')
      await sleep(3000)
      const { bytes, requests } = traffic
      await sleep(REST_S * 1000)
      report(`a viewer at rest, ${workers} workers`,
        `${kilobytes((traffic.bytes - bytes) / REST_S)}/s, ${traffic.requests - requests} requests in ${REST_S} s`,
        String(goal))
      await page.context().close()
    })
  }
}

async function viewers () {
  for (const workers of [16, 64]) {
    await withDeck(workers, async (deck) => {
      const idleMs = await cpuMsWhile(deck.masterPid, () => sleep(VIEWERS_S * 1000))
      const sockets = Array.from({ length: VIEWERS }, () =>
        io(deck.adminUrl, { transports: ['websocket'], forceNew: true,
          extraHeaders: { authorization: `Bearer ${deck.token}` } }))
      await Promise.all(sockets.map((socket) =>
        new Promise((resolve) =>
          socket.on('connect', () =>
            socket.emit('watch', '/', resolve))
        )
      ))
      await sleep(2000)
      let messages = 0
      for (const socket of sockets) socket.onAny(() => messages++)
      const busyMs = await cpuMsWhile(deck.masterPid, () => sleep(VIEWERS_S * 1000))
      const share = (ms: number) => `${(ms / VIEWERS_S / 10).toFixed(1)} %`
      report(`the master with ${VIEWERS} viewers, ${workers} workers`,
        `${share(busyMs)} of a core, ${share(idleMs)} without them; ${
          (messages / VIEWERS / VIEWERS_S).toFixed(1)
        } messages a second to each`, '8 %')
      for (const socket of sockets) socket.close()
    })
  }
}

async function events () {
  for (const path of ['/', '/history']) {
    await withOwner(async (owner) => {
      const dashboard = await startDashboard(owner, browser)
      const [worker] = dashboard.deck.snapshot().workers
      dashboard.deck.set({ desiredWorkers: 16, readyWorkers: 16,
        workers: Array.from({ length: 16 }, (_, index) => ({ ...worker, id: index + 1, slot: index + 1 })) })
      const page = await dashboard.visit(path)
      await page.evaluate(() => {
        window.longTasks = []
        new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map(({ duration }) => duration)))
          .observe({ entryTypes: ['longtask'] })
      })
      for (let told = 0, startedAt = performance.now(); told < EVENTS; told++) {
        dashboard.deck.events.publish({ type: EVENT_TYPES[told % EVENT_TYPES.length], worker: told % 16 + 1,
          slot: told % 16 + 1, cause: 'crash' })
        if (told / EVENTS * EVENTS_S * 1000 > performance.now() - startedAt) await sleep(20)
      }
      await sleep(1000)
      const longest = await page.evaluate(() => window.longTasks.reduce((most, each) => Math.max(most, each), 0))
      const session = await page.context().newCDPSession(page)
      await session.send('HeapProfiler.enable')
      const { usedSize } = await session.send('Runtime.getHeapUsage')
      report(`${EVENTS} events in a minute, ${path}`,
        `longest task ${Math.round(longest)} ms, heap of the tab ${(usedSize / 1e6).toFixed(1)} MB`, '100 ms, 60 MB')
    })
  }
}

async function pixel () {
  await withDeck(4, async (deck) => {
    const { page } = await visit(deck, '/')
    const took = []
    for (let kill = 0; kill < KILLS; kill++) {
      const { workers } = await deck.until({ ready: 4 })
      const { id, slot, pid } = workers[kill % 4]
      const row = `worker-${slot}-${id}`
      await page.locator(`#${row}`).getByText('Ready').waitFor()
      // Not always at the same distance from the last beat.
      await sleep(Math.random() * 1000)
      const shown = page.evaluate((name) =>
        new Promise((resolve) => {
          const observer = new MutationObserver(() => {
            if (document.getElementById(name)?.querySelector('.badge.tone-ok')) return
            observer.disconnect()
            requestAnimationFrame(() => resolve(Date.now()))
          })
          observer.observe(document.body, { childList: true, subtree: true, attributes: true, characterData: true })
        }), row)
      await page.evaluate(() => 1)
      const killedAt = Date.now()
      process.kill(pid, 'SIGKILL')
      took.push(Number(await shown) - killedAt)
    }
    took.sort((a, b) => a - b)
    report(`from ${KILLS} kills to the pixel`,
      `p50 ${took[KILLS / 2]} ms, p95 ${took[Math.ceil(KILLS * 0.95) - 1]} ms, at most ${took.at(-1)} ms`, 'p95 150 ms')
    await page.context().close()
  }, { isLoaded: false })
}

async function visit (deck: Deck, path: string) {
  const page = await browser.page()
  await page.context().request.get(await deck.signInLink(), { maxRedirects: 0 })
  const traffic = await followTraffic(page)
  await page.goto(deck.adminUrl + path)
  await page.locator('html[data-live=on]').waitFor()
  return { page, traffic }
}

async function withDeck (workers: number, use: (deck: Deck) => Promise<void>,
  { isLoaded = true }: { isLoaded?: boolean } = {})
{
  await withOwner(async (owner) => {
    const deck = await startDeck(owner, 'hello.js', { workers,
      flags: ['--ready-timeout-ms', '300000', '--restart-intensity-restarts', '10000', '--restart-max-delay-ms',
        '100'] })
    await untilReady(deck, workers)
    const load = isLoaded
      ? autocannon({ url: await deck.appUrl(), connections: Math.max(8, workers), duration: 600,
        overallRate: REQUESTS_PER_SECOND * workers })
      : null
    await use(deck)
    load?.stop()
    await load
  })
}

/** However long so many take on so few cores. */
async function untilReady (deck: Deck, workers: number) {
  while ((await deck.status()).readyWorkers < workers) await sleep(500)
}

async function withOwner (use: (owner: TestOwner) => Promise<void>) {
  const owner = createOwner()
  try {
    await use(owner)
  } finally {
    await owner.end()
  }
}

/** @returns CPU time of the process meanwhile */
async function cpuMsWhile (pid: number, task: () => Promise<unknown>): Promise<number> {
  const before = cpuMs(pid)
  await task()
  return cpuMs(pid) - before
}

/** Ticks of 10 ms. */
function cpuMs (pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number)
  return (user + system) * 10
}

function kilobytes (bytes: number) {
  return `${(bytes / 1000).toFixed(1)} kB`
}

function report (what: string, measured: string, goal: string) {
  console.log(`${what.padEnd(48)} ${measured} (goal: less than ${goal})`)
}
