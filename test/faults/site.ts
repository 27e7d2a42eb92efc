import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { blankExchange, startClients } from './clients.ts'
import { openLedger } from './ledger.ts'
import { openHttp } from './protocols/http.ts'
import { FIXTURES, startDeck, type Launch, type TestOwner } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createInstallation } from '../support/install.ts'
import { findProcesses } from '../support/leftovers.ts'
import { freePort } from '../support/ports.ts'
import { createReleases } from '../support/releases.ts'
import { lacksSmallDisk, smallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'
import type { Damage } from './verdict.ts'
import type { Load, Sizes } from './loads.ts'

export type Site = Awaited<ReturnType<typeof openSite>>
/** What has been done to a site, and what its history has to tell of it. */
export type Deeds = {
  rollouts: Record<'restart' | 'deploy', number>,
  /** of releases whose workers end at once */
  badDeploys: number,
  scales: number,
  upgrades: number,
  /** pids */
  lostMasters: number[],
  /** `cause`: null for any */
  lostWorkers: { pid: number, cause: string | null }[]
}
export type SiteOptions = { flags?: string[], launch?: Launch }

export const WORKERS = 2
const CRASH_GRACE_MS = 1000
const MEGABYTES = 1_000_000
const DISK_MEGABYTES = 64
const CLOCK_OPTION = `--require=${path.join(FIXTURES, 'sets-its-clock.cjs')}`
/** What a user would not wait for, and what lets a worker end in one way or another. */
const FLAGS = Object.freeze([
  '--watchdog-timeout-ms',
  '2000',
  '--keeper-hung-after-ms',
  '5000',
  '--restart-max-delay-ms',
  '1000',
  '--restart-intensity-restarts',
  '2',
  // Whether a new worker is as fast as the old ones is not what is asked here, beside everything else that happens.
  '--rollout-limits-p99-ratio',
  '1000',
  '--crash-grace-ms',
  String(CRASH_GRACE_MS),
  '--recycle-max-rss-bytes',
  String(500 * MEGABYTES),
  '--exec-argv=--max-old-space-size=256'
])

/**
 * A deck as somebody runs it, on an installed version, a folder of releases and a disk of its own, and everything that
 * can happen to it.
 */
export async function openSite (t: TestOwner, { flags = [], launch = {} }: SiteOptions = {}) {
  const { cli, install } = createInstallation()
  const releases = await createReleases('imports-its-app.js')
  const disk = lacksSmallDisk ? null : smallDisk(t, { megabytes: DISK_MEGABYTES })
  const [http, https, http2, http2Tls] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const ports = { http, https, http2, http2Tls }
  const place = tempFolder()
  const [ledgerFile, clockFile, temporary] = ['ledger', 'clock', 'temporary'].map((name) => path.join(place, name))
  mkdirSync(temporary)
  const env = { PORTS: [http, https, http2, http2Tls].join(), LEDGER: ledgerFile,
    APP: pathToFileURL(path.join(FIXTURES, 'serves-every-way.js')).href, CLOCK: clockFile, TMPDIR: temporary,
    NODE_OPTIONS: CLOCK_OPTION }
  const deck = await startDeck(t, releases.entry, { workers: WORKERS, cli, env, flags: [...FLAGS, ...flags],
    dataDir: path.join(disk?.folder ?? tempFolder(), 'data'), launch: { execArgv: [CLOCK_OPTION], ...launch } })
  await deck.until({ ready: WORKERS })
  const source = readFileSync(path.join(FIXTURES, 'imports-its-app.js'), 'utf8')
  const ledger = openLedger(ledgerFile)
  t.after(ledger.close)
  const damage: Damage = { lost: new Map() }
  const deeds: Deeds = { rollouts: { restart: 0, deploy: 0 }, badDeploys: 0, scales: 0, upgrades: 0, lostMasters: [],
    lostWorkers: [] }
  let released = 0
  let poisoned = 0

  const site = {
    deck,
    disk,
    damage,
    deeds,
    /** The folder of its temporary files. */
    temporary,
    /** Every process of it has this variable. */
    mark: `LEDGER=${ledgerFile}`,

    startLoad: (load: Load, sizes: Sizes) =>
      startClients(load, (client) => load.open(ports, sizes, client), ledger.read),

    /** As it is now. */
    ledger: () => ledger.read(),

    untilReady: () => deck.until({ ready: WORKERS }),

    /** @returns pids */
    async workers (): Promise<number[]> {
      return (await deck.status()).workers.flatMap(({ pid }) => pid ?? [])
    },

    /** @returns its id */
    async newestEvent (): Promise<number> {
      return (await deck.history('limit=1'))[0].id
    },

    /** @returns its id */
    async beginRollout (kind: 'restart' | 'deploy'): Promise<number> {
      const { id } = await deck.begin(kind)
      deeds.rollouts[kind]++
      return id
    },

    /** @returns the rollout, once it is done */
    async untilRolledOut (id: number) {
      const { body } = await deck.api(`/rollouts/${id}?wait=60s`)
      if (!body.done) throw new Error(`rollout ${id} is not done after 60 s`)
      return body
    },

    async rollout (kind: 'restart' | 'deploy', expected: string = 'succeeded') {
      const { state, reason } = await site.untilRolledOut(await site.beginRollout(kind))
      if (state !== expected) throw new Error(`expected a ${kind} that has ${expected}, received ${state}: ${reason}`)
      await site.untilReady()
    },

    async scale (workers: number) {
      deeds.scales++
      const { status } = await deck.put('/scale', { workers })
      if (status !== 200) throw new Error(`scale: expected 200, received ${status}`)
      await deck.until({ ready: workers })
    },

    /** The next deploy brings it. */
    async release ({ isGood }: { isGood: boolean }) {
      if (!isGood) deeds.badDeploys++
      await releases.add(`release-${++released}`, isGood ? source : 'process.exit(1)')
    },

    /** Installs the next version, and changes to it. */
    async upgrade () {
      await install(`1.${++deeds.upgrades}.0`)
      const { status, body } = await deck.post('/upgrade', {})
      if (status !== 202) throw new Error(`upgrade: expected 202, received ${status}: ${body.detail}`)
      await deck.meetNext()
      await site.untilReady()
    },

    /** `workers`: pids of those that die in the same instant */
    async loseMaster (workers: number[] = []) {
      deeds.lostMasters.push(deck.masterPid)
      for (const pid of workers) damage.lost.set(pid, { at: performance.now(), graceMs: 0 })
      await deck.loseMaster(workers)
    },

    /** Stops the master as a debugger does, until there is another one. */
    async freezeMaster () {
      deeds.lostMasters.push(deck.masterPid)
      process.kill(deck.masterPid, 'SIGSTOP')
      await deck.meetNext()
    },

    /** SIGKILLs workers. */
    lose (pids: number[]) {
      for (const pid of pids) {
        damage.lost.set(pid, { at: performance.now(), graceMs: 0 })
        process.kill(pid, 'SIGKILL')
      }
    },

    /** Stops a worker as a debugger does. */
    freeze (pid: number) {
      damage.lost.set(pid, { at: performance.now(), graceMs: 0 })
      process.kill(pid, 'SIGSTOP')
    },

    /** A request that its worker does not survive. @returns which one */
    async poison (what: '/hang' | '/crash' | '/out-of-memory'): Promise<number> {
      const id = `poison-${++poisoned}`
      const session = openHttp({ port: http, isKept: false, path: what })
      session.ask(blankExchange(id)).catch(() => {})
      const owner = () => site.ledger().begun.get(id)?.[0]
      await until(() => owner() !== undefined, `${id} to arrive`)
      const pid = Number(owner())
      // What it has when an exception is about to end it, it has a moment to answer.
      damage.lost.set(pid, { at: performance.now(), graceMs: what === '/crash' ? CRASH_GRACE_MS / 2 : 0 })
      return pid
    },

    /** Makes a worker large. @returns which one */
    async grow (): Promise<number> {
      const id = `grow-${++poisoned}`
      await openHttp({ port: http, isKept: false, path: `/grow?bytes=${600 * MEGABYTES}` }).ask(blankExchange(id))
      return Number(site.ledger().begun.get(id)?.[0])
    },

    /** `cause`: that the history has to name */
    async untilGone (pid: number, cause: string) {
      deeds.lostWorkers.push({ pid, cause })
      await deck.untilEvent((event) => event.type === 'worker.exited' && event.pid === pid, `worker ${pid} to be gone`)
    },

    /** `ms`: that all clocks are off from now on */
    setClock (ms: number) {
      writeFileSync(clockFile, String(ms))
    },

    /** `signal`: to every process at once, as a process group gets it */
    async signalAll (signal: 'SIGTERM' | 'SIGINT') {
      const pids = [Number(deck.child.pid), deck.masterPid, ...await site.workers()]
      damage.stoppedAt = performance.now()
      for (const pid of pids) process.kill(pid, signal)
      await deck.exited
    },

    /** @returns what is not as it should be then */
    async close (): Promise<string[]> {
      const isKeeperLost = deck.child.signalCode === 'SIGKILL'
      if (isKeeperLost) await deck.post('/stop')
      const exit = await deck.stop()
      const findLeft = () => findProcesses(site.mark)
      if (isKeeperLost) await until(() => findLeft().length === 0, 'the processes to end').catch(() => {})
      const left = findLeft()
      for (const { pid } of left) process.kill(pid, 'SIGKILL')
      return [...(isKeeperLost || exit.code === 0 ? [] : [`the deck ended with ${exit.signal ?? `code ${exit.code}`}`]),
        ...left.map(({ command }) => `left running: ${command}`)]
    }
  }
  return site
}
