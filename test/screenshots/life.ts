import { appendFileSync, utimesSync } from 'node:fs'
import path from 'node:path'
import { toSparse, bucketOf, BUCKETS } from '../../workers/histogram.ts'
import { createCrashRecorder } from '../../server/crashes/recorder.ts'
import { createJudge } from '../../server/releases/judge.ts'
import { OPTIONS, simulate, type Fed, type Simulation } from '../support/simulation.ts'
import { report } from '../support/vitals.ts'
import { createReleaseBook, FIRST, type Commit } from './release-book.ts'
import type { ExitNote } from '../../server/crashes/record.ts'
import type { CrashNote } from '../../workers/crash-note.ts'
import type { NewEvent } from '../../server/events/stream.ts'
import type { StrategyWish } from '../../server/lifecycle/rollout/strategy.ts'
import type { startAdmin } from '../support/admin.ts'

/**
 * The days of a web shop without processes: the real lifecycle decides what becomes of its workers, they report to the
 * real vitals, and the real recorders keep what comes of it. So all that is kept of a moment tells of the same.
 */
export type Admin = Pick<Awaited<ReturnType<typeof startAdmin>>, 'deck' | 'history'>
export type Life = ReturnType<typeof createLife>
/** What is thrown: a stack begins with its name and message. */
type Thrown = Pick<CrashNote, 'errorName' | 'errorMessage'> & { frames: readonly string[],
  requests?: CrashNote['requests'] }
type Process = { id: number, slot: number, release: string }
/** How a worker begins. `readyMs`: null: it never is; `dies`: so long after that, or after its fork */
type Boot = { readyMs: number | null, dies?: { afterMs: number, of: Thrown } }
/** `share`: of all requests; `ms`: of the median; `failing`: share of 5xx */
type Route = { route: string, share: number, ms: number, failing: number }

export const SLOTS = [1, 2, 3, 4]
export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
const MEGABYTE = 1024 ** 2
/** As charts ask for them: of the last quarter of an hour each second, of three hours each ten. */
const SECONDS_S = 16 * 60
const TENS_S = 3 * 60 * 60
/** A crash tells of the minute before it. */
const CLOSE_MS = 70 * SECOND_MS
const ROUTES: readonly Route[] = [{ route: 'GET /products', share: 0.55, ms: 6, failing: 0 }, {
  route: 'GET /products/:id',
  share: 0.25,
  ms: 9,
  failing: 0
}, { route: 'POST /checkout', share: 0.1, ms: 31, failing: 0.002 }, { route: 'GET /cart', share: 0.08, ms: 5,
  failing: 0 }, { route: 'GET /reports/:month', share: 0.02, ms: 240, failing: 0.001 }]
const OPTIONS_OF_SHOP = { ...OPTIONS, rollout: { guardMs: 5 * MINUTE_MS } }
/** How many times the median a request takes: most a bit more or less, one of a hundred much more. */
const SPREAD = Array.from({ length: 100 },
  (_, n) => n < 50 ? 0.7 + n * 0.006 : n < 90 ? 1 + (n - 50) * 0.02 : n < 99 ? 1.9 + (n - 90) * 0.15 : 4)
const SAMPLES = 12

/** `now`: in the story, later of this machine */
export function createClock () {
  const clock = { read: Date.now as () => number, now: () => clock.read() }
  return clock
}

/** `from`: when the shop opens; `end`: when the story ends, ms; `isBrief`: with few reports of days before */
export function createLife ({ deck, history }: Admin, clock: ReturnType<typeof createClock>,
  { from, end, isBrief = false }: { from: number, end: number, isBrief?: boolean })
{
  clock.read = () => from
  const judge = createJudge({ now: clock.now })
  const soon: (() => void)[] = []
  const recorder = createCrashRecorder({ store: history.crashes, events: deck.events, logs: deck.logs,
    vitals: deck.vitals, lackedMemory: () => null, now: clock.now, soon: (work) => soon.push(work) })
  const book = createReleaseBook(deck, clock.now)
  let queue: { at: number, work: () => unknown }[] = []
  const told = { events: 0, commands: 0 }
  const notes: Map<number, ExitNote> = new Map()
  /** when each began to serve */
  const since: Map<number, number> = new Map()
  const silent: Set<number> = new Set()
  let next: Commit = FIRST
  let boot: (process: Process) => Boot = () => ({ readyMs: 700 })
  let change: (route: Route, about: { release: string, at: number }) => Partial<Route> = () => ({})
  let onReport: (second: number) => unknown = () => {}
  const moments: number[] = []
  const pool = simulate({ workers: SLOTS.length, from, options: OPTIONS_OF_SHOP, isChecked: false,
    judge: (order) => judge.judge(order), start: { release: book.open({ at: from, ...FIRST }) } })
  clock.read = () => pool.at

  const life = {
    pool,
    book,
    get at () {
      return pool.at
    },
    /** How workers begin from now on. */
    boots (how: (process: Process) => Boot) {
      boot = how
    },
    /** What is different about requests from now on. */
    serves (how: typeof change) {
      change = how
    },
    /** `work`: what happens beside each report */
    each (work: typeof onReport) {
      onReport = work
    },
    plan,
    /** Before and after it each second is told. */
    planMoment (at: number, work: () => unknown) {
      if (!isBrief) moments.push(at)
      plan(at, work)
    },
    goTo,
    isMoment,
    write,
    feed,
    deploy (commit: Commit, { actor, note, strategy = {} }: { actor: string, note: string, strategy?: StrategyWish }) {
      next = commit
      feed({ type: 'rollout', kind: 'deploy', actor, note, strategy, client: 'cli' })
    },
    rollBack (id: string, { actor, note }: { actor: string, note: string }) {
      feed({ type: 'rollout', kind: 'rollback', release: book.get(id), actor, note, client: 'dashboard' })
    },
    /** The worker of a slot throws, and dies of it. */
    crash (slot: number, thrown: Thrown) {
      return die(servingOf(slot), thrown)
    },
    /** The worker of a slot answers nothing any more. */
    hang (slot: number, { frames, requests }: Pick<Thrown, 'frames' | 'requests'>) {
      const worker = servingOf(slot)
      silent.add(worker)
      const what = 'event loop blocked for 10 s (option watchdog.timeoutMs: 10000)'
      const [hanging] = requests ?? []
      notes.set(worker, { errorName: 'Unresponsive',
        errorMessage: `${what} in ${JSON.stringify(`${hanging.method} ${hanging.path}`)}`,
        stack: stackOf(worker, `Unresponsive: ${what}`, frames), requests })
      after(10 * SECOND_MS,
        () => feed({ type: 'worker-silent', worker, message: `worker ${worker} (slot ${slot}): ${what}` }))
    },
    /** Has all happen up to this moment, which goes on meanwhile. */
    async arrive () {
      while (Date.now() - pool.at > SECOND_MS) await goTo(Date.now())
      clock.read = Date.now
      tellState()
    }
  }
  take()
  return life

  function servingOf (slot: number): number {
    return pool.serving()[slot - 1]
  }

  function feed (input: Fed) {
    const refusal = pool.feed(input)
    if (refusal) throw new Error(refusal.message)
    take()
  }

  function plan (at: number, work: () => unknown) {
    queue.push({ at, work })
  }

  function after (ms: number, work: () => unknown) {
    plan(pool.at + ms, work)
  }

  /** Lets all happen that does until then. */
  async function goTo (until: number) {
    for (let last = Math.floor(pool.at / SECOND_MS);;) {
      const second = nextSecond(last)
      if (second * SECOND_MS > until) break
      await pass(second * SECOND_MS)
      reportAll(second, Math.min(60, second - last))
      onReport(second)
      deck.set({ workers: rows() } as unknown as Parameters<typeof deck.set>[0])
      last = second
    }
    await pass(until)
  }

  /** Each minute, ten seconds or second; the latter also of what is looked at more closely. */
  function nextSecond (second: number): number {
    const isClose = pool.rollout !== null || silent.size > 0 || isMoment(second, CLOSE_MS)
    const left = Math.floor(end / SECOND_MS) - second
    const step = isClose || left <= SECONDS_S ? 1 : isBrief ? 600 : left <= TENS_S ? 10 : 60
    const begins = [...queue.map(({ at }) => at), ...moments.map((at) => at - CLOSE_MS)]
    const first = Math.min(...begins.filter((at) => at > second * SECOND_MS))
    return Math.min((Math.floor(second / step) + 1) * step, Math.ceil(first / SECOND_MS))
  }

  function isMoment (second: number, aroundMs: number) {
    return moments.some((at) => Math.abs(at - second * SECOND_MS) < aroundMs)
  }

  async function pass (until: number) {
    for (;;) {
      const due = Math.min(...[...pool.deadlines.values()].map(({ dueAt }) => dueAt))
      const first = queue.toSorted((one, other) => one.at - other.at)[0]
      const at = Math.min(due, first?.at ?? Infinity)
      if (at > until) break
      if (first && first.at <= due) {
        pool.wait(Math.max(0, first.at - pool.at))
        queue = queue.filter((each) => each !== first)
        await first.work()
      } else pool.passNextDeadline()
      take()
      // What was sent has arrived.
      await new Promise((resolve) => setImmediate(resolve))
    }
    pool.wait(Math.max(0, until - pool.at))
  }

  function take () {
    const isNews = told.events < pool.events.length
    while (told.events < pool.events.length) publish(pool.events[told.events++] as unknown as NewEvent)
    while (told.commands < pool.commands.length) obey(pool.commands[told.commands++])
    // What else somebody has changed meanwhile stays.
    if (isNews) tellState()
  }

  function publish (event: NewEvent) {
    const worker = Number(event.worker)
    if (event.type === 'worker.exited') deck.logs.ended(worker)
    const evidence = event.type === 'worker.exited' &&
      { note: notes.get(worker) ?? null, memoryKind: null, root: book.get(String(event.release)).path,
        stderr: deck.logs.tail({ slot: event.slot ?? null, stream: 'stderr', lines: 20, worker }) }
    const full = deck.events.publish(evidence ? recorder.record(event, evidence) : event)
    for (const work of soon.splice(0)) work()
    if (event.type === 'worker.ready') since.set(worker, pool.at)
    if (event.type === 'worker.exited') {
      silent.delete(worker)
      deck.vitals.left(worker)
    }
    book.note(full)
  }

  function obey (command: Simulation['commands'][number]) {
    if (command.type === 'begin-judging') judge.begin()
    if (command.type === 'prepare-release') {
      after(300, () => {
        const known = command.source.release
        const release = known ? book.get(String(known)) : book.add(next, command)
        if (!known)
          deck.events.publish({ type: 'release.created', release: release.id, actor: command.actor,
            message: `release ${release.id} of ${release.path}` })
        feed({ type: 'release-prepared', rollout: command.rollout, release })
      })
    }
    if (command.type === 'fork' && command.slot !== null)
      begin({ id: command.worker, slot: command.slot, release: command.release.id })
    if (command.type === 'drain') feedLater(1800, { type: 'worker-drained', worker: command.worker })
    if (command.type === 'terminate') after(40, () => exit(command.worker, { code: 0 }))
    if (command.type === 'kill') after(20, () => exit(command.worker, { signal: 'SIGKILL' }))
    if (command.type === 'capture-stack')
      after(400, () => feed({ type: 'stack-captured', worker: command.worker }))
  }

  function begin (process: Process) {
    const { id: worker, slot } = process
    deck.logs.open({ worker, slot }).close()
    feedLater(20, { type: 'worker-forked', worker, pid: pidOf(worker) })
    feedLater(120, { type: 'worker-online', worker })
    const { readyMs, dies } = boot(process)
    if (readyMs !== null) {
      after(readyMs, () => {
        if (!isThere(worker)) return
        write(slot, 'listening on 8080')
        if (!pool.state.addresses[slot]?.length)
          pool.feed({ type: 'worker-listening', worker, url: 'http://localhost:8080', isFixed: true })
        pool.becomeReady(worker)
        take()
      })
    }
    if (dies) after((readyMs ?? 0) + dies.afterMs, () => isThere(worker) && die(worker, dies.of))
  }

  function feedLater (ms: number, input: Fed & { worker: number }) {
    after(ms, () => isThere(input.worker) && feed(input))
  }

  function isThere (worker: number) {
    return pool.processes.has(worker)
  }

  function die (worker: number, { errorName, errorMessage, frames, requests = [] }: Thrown) {
    const { slot, readyAt } = pool.state.workers[worker]
    const stack = stackOf(worker, `${errorName}: ${errorMessage}`, frames)
    for (const line of [...stack.split('\n'), '', `Node.js ${process.version}`]) write(Number(slot), line, 'stderr')
    const rssBytes = rssOf(worker)
    const note: CrashNote = { at: pool.at, kind: 'exception', errorName, errorMessage, stack, causes: [], requests,
      uptimeMs: readyAt === null ? 400 : pool.at - Date.parse(readyAt), nodeVersion: process.version,
      memory: { rssBytes, heapTotalBytes: rssBytes * 0.5, heapUsedBytes: rssBytes * 0.4, externalBytes: 3 * MEGABYTE,
        arrayBuffersBytes: MEGABYTE } }
    notes.set(worker, note)
    exit(worker, { code: 1, error: note })
  }

  /** `frames`: with files in the folder of its release */
  function stackOf (worker: number, what: string, frames: readonly string[]) {
    const { path: folder } = book.get(pool.state.workers[worker].release)
    return [what, ...frames.map((frame) => `    at ${frame.replace('~', folder)}`)].join('\n')
  }

  function exit (worker: number, how: Parameters<typeof pool.exit>[1]) {
    if (!isThere(worker)) return
    pool.exit(worker, { ...how, error: notes.get(worker) ?? null })
    take()
  }

  /** A worker writes a line. */
  function write (slot: number, text: string, stream: 'stdout' | 'stderr' = 'stdout') {
    const file = path.join(deck.logs.folder, `slot-${slot}.${stream}.log`)
    appendFileSync(file, `${text}\n`)
    utimesSync(file, pool.at / 1000, pool.at / 1000)
    // This notes how long it is by now.
    deck.logs.open({ worker: 0, slot }).close()
  }

  function reportAll (second: number, stepS: number) {
    const serving = pool.view.workers.filter(({ id, state }) => id !== null && state === 'ready')
    for (const [index, { id, slot, release }] of serving.entries()) {
      if (silent.has(Number(id))) continue
      const body = reportOf({ worker: Number(id), release, perSecond: loadAt(second) / serving.length, second, stepS,
        seed: second * 7 + index })
      deck.vitals.accept(Number(id), slot, body, release)
      judge.accept(Number(id), body)
    }
    deck.vitals.turn(second)
  }

  function reportOf (
    { worker, release, perSecond, second, stepS, seed }: { worker: number, release: string, perSecond: number,
      second: number, stepS: number, seed: number }
  ) {
    const counts = new Float64Array(BUCKETS)
    const statuses = [0, 0, 0, 0, 0, 0]
    let [sumMs, all] = [0, 0]
    const routes = ROUTES.flatMap((plain, index) => {
      const route = { ...plain, ...change(plain, { release, at: second * SECOND_MS }) }
      const requests = Math.floor(
        perSecond * stepS * route.share * (0.9 + 0.2 * noiseOf(seed + index)) + noiseOf(seed + 31 * index)
      )
      const errors = Math.min(requests, Math.floor(requests * route.failing + noiseOf(seed + 57 * index)))
      const own = new Float64Array(BUCKETS)
      const samples = Math.min(requests, SAMPLES)
      let most = 0
      for (let n = 0; n < samples; n++) {
        const count = Math.floor((n + 1) * requests / samples) - Math.floor(n * requests / samples)
        const ms = route.ms * SPREAD[Math.floor(100 * noiseOf(seed * 3 + index * 101 + n * 13))]
        most = Math.max(most, ms)
        own[bucketOf(ms)] += count
        counts[bucketOf(ms)] += count
        sumMs += ms * count
      }
      all += requests
      statuses[0] += requests - errors
      statuses[3] += errors
      const [method, path] = targetOf(route.route, seed).split(' ')
      const slowest = { method, path, status: errors > 0 ? 503 : 200, ms: most * (1 + noiseOf(seed)),
        at: (second + 1) * SECOND_MS }
      return requests === 0 ? [] : [{ route: route.route, errors, latency: toSparse(own), slowest }]
    })
    // Some ask for what is not there.
    const missing = Math.min(statuses[0], Math.floor(all * 0.012 + noiseOf(seed + 5)))
    statuses[0] -= missing
    statuses[2] += missing
    const busy = Math.min(0.97, 0.3 * sumMs / (stepS * SECOND_MS))
    const rssBytes = rssOf(worker) + 4 * MEGABYTE * noiseOf(seed)
    return report({ intervalMs: stepS * SECOND_MS, statuses, latency: toSparse(counts), latencySumMs: sumMs, routes,
      rssBytes, heapUsedBytes: rssBytes * 0.4, heapTotalBytes: rssBytes * 0.5, externalBytes: 3 * MEGABYTE,
      cpuPercent: 100 * busy + 1.5 + noiseOf(seed + 1), eventLoopUtilization: busy, loopDelayP50Ms: 0.4,
      loopDelayP99Ms: 1.5 + 12 * busy, loopDelayMaxMs: 3 + 25 * busy * (1 + noiseOf(seed + 2)),
      inFlight: Math.round(sumMs / (stepS * SECOND_MS) + noiseOf(seed + 3)),
      openConnections: Math.round(perSecond * 0.8) })
  }

  /** It loads its code, and its caches fill. */
  function rssOf (worker: number) {
    const hours = (pool.at - (since.get(worker) ?? pool.at)) / HOUR_MS
    return (58 + worker % 4 + 26 * (1 - Math.exp(-hours / 2))) * MEGABYTE
  }

  function tellState () {
    const now = { ...pool.view, workers: rows() }
    deck.set(now as unknown as Parameters<typeof deck.set>[0])
    book.use(now)
  }

  function rows () {
    return pool.view.workers.map((row) => ({ ...row, port: null,
      vitals: row.id === null ? null : deck.vitals.latest(row.id) })
    )
  }
}

function pidOf (worker: number) {
  return 4100 + worker * 7
}

/** @returns a line of the log: what one request asked for, and what was answered */
export function lineOf (seed: number, slow: (route: string) => number = () => 1): string {
  let left = noiseOf(seed)
  const { route, ms } = ROUTES.find(({ share }) => (left -= share) <= 0) ?? ROUTES[0]
  const status = route.startsWith('POST') ? 201 : 200
  return `${targetOf(route, seed)} ${status} ${
    Math.round(ms * slow(route) * SPREAD[Math.floor(100 * noiseOf(seed + 2))])
  } ms`
}

/** @returns `GET /products/1234` */
function targetOf (route: string, seed: number): string {
  return route.replace(':id', String(Math.floor(1000 + 8000 * noiseOf(seed + 1)))).replace(':month', '2026-10')
}

/** @returns requests per second: few at night, most in the evening, and it goes up and down */
export function loadAt (second: number): number {
  const hour = second / 3600 % 24
  const day = 1 + 0.5 * Math.sin((hour - 12) / 24 * 2 * Math.PI) + 0.12 * Math.sin((hour - 9) / 12 * 2 * Math.PI)
  return 88 * day * (1 + 0.07 * Math.sin(second / 140) + 0.04 * Math.sin(second / 37))
}

/** @returns 0…1, the same for the same seed */
export function noiseOf (seed: number): number {
  const mixed = Math.imul((seed * 16 | 0) ^ 0x9e3779b9, 0x85ebca6b)
  const again = Math.imul(mixed ^ mixed >>> 13, 0xc2b2ae35)
  return ((again ^ again >>> 16) >>> 0) / 2 ** 32
}
