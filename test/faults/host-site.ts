import { rmSync } from 'node:fs'
import path from 'node:path'
import { blankExchange, startClients, type Clients } from './clients.ts'
import { openLedger } from './ledger.ts'
import { openHttp } from './protocols/http.ts'
import { FIXTURES, type TestOwner } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { createInstallation } from '../support/install.ts'
import { loopDelays, noteLoopDelays } from '../support/loop-delays.ts'
import { freePort } from '../support/ports.ts'
import { lacksSmallDisk, smallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'
import { openUser, type Answer } from '../support/user.ts'

export type HostSite = Awaited<ReturnType<typeof openHostSite>>

const OTHERS = Array.from({ length: 11 }, (_, index) => `web-${index + 1}`)
/** The one to which it happens. */
export const VICTIM = 'victim'
const DISK_MEGABYTES = 64
const PAUSE_MS = 40
const NOTES_WITHIN_MS = 600
/** Of two dozen workers on a few busy cores. */
const READY_WITHIN_MS = 120_000
const CONFIG = 'clusterdeck.config.json'
/** What a user would not wait for. */
const SHARED = Object.freeze({ workers: 1, watchdog: { timeoutMs: 2000 }, drain: { idleGraceMs: 500 },
  rollout: { limits: { p99Ratio: 1000 } } })
/** Those that are not as the others, so that connections come to workers in all ways at once. */
const SPECIAL: Record<string, { workers: number, dispatch?: string }> = Object.freeze({ [VICTIM]: { workers: 2 },
  'web-2': { workers: 2, dispatch: 'sticky' } })
/** What can be started beside them. */
const HARMFUL = Object.freeze({
  flood: { entry: path.join(FIXTURES, 'floods-its-log.js'), workers: 1, env: { LINES: '10000' } },
  loop: { entry: path.join(FIXTURES, 'throws-at-load.js'), workers: 1,
    restart: { minDelayMs: 10, maxDelayMs: 100, intensity: { restarts: 2 } } }
})

/** A host with eleven apps that are asked all the time, and one to which something happens. */
export async function openHostSite (t: TestOwner) {
  const { cli, install } = createInstallation()
  const user = openUser(t, { cli })
  const notes = tempFolder()
  const disk = lacksSmallDisk ? null : smallDisk(t, { megabytes: DISK_MEGABYTES })
  const apps = await Promise.all([...OTHERS, VICTIM].map((name) => placeApp(t, name)))
  const folders = {
    others: user.folder('others', { ...SHARED, apps: configOf(apps.filter(({ name }) => name !== VICTIM)) }),
    own: user.folder('own', { ...SHARED, ...(disk && { dataDir: path.join(disk.folder, 'data') }),
      apps: { ...configOf(apps.filter(({ name }) => name === VICTIM)), ...HARMFUL } })
  }
  let asking: Clients[] = []
  let upgrades = 0
  let poisoned = 0

  const site = {
    user,
    disk,
    configFile: path.join(folders.own, CONFIG),

    /** Runs the command of the unit. */
    startHost: () => user.startHost(noteLoopDelays(notes), ['--keeper-hung-after-ms', '5000']),

    async start (name: string) {
      await user.add(name in HARMFUL || name === VICTIM ? folders.own : folders.others, name)
      await until(() => user.decks().some((deck) => deck.name === name), `${name} to be there`)
    },

    async stop (name: string) {
      await user.askHost(`/apps/${name}/stop`, { method: 'POST' })
      await until(async () => (await user.askHost(`/apps/${name}`)).body.state === 'stopped', `${name} to be stopped`)
    },

    /** @returns all apps with what is remembered of them */
    async list (): Promise<string> {
      const { body: { items } } = await user.askHost('/apps')
      return items.map(({ name, state }: { name: string, state: string }) => `${name} ${state}`).join()
    },

    /** @returns what the host says of it; nothing between two masters */
    view: (name: string): Promise<{ state?: string, reason?: string | null }> =>
      user.askHost(`/apps/${name}`).then(({ body }) => body, () => ({})),

    /** `where`: below /api/v1 */
    ask: async (name: string, where: string, init?: RequestInit) => await user.ask(user.deck(name), where, init),

    /** `type`: of an event */
    async untilEvent (name: string, type: string, what: string) {
      await until(async () => (await site.ask(name, `/events?type=${type}&limit=1`)).body.items?.length > 0, what)
    },

    async untilReady (name: string) {
      await until(async () => {
        const { state, reason } = await site.view(name)
        if (state === 'failed') throw new Error(`${name} has failed: ${reason}`)
        const { status, body } = await site.ask(name, '/status').catch(() => ({ status: 0, body: {} as Answer }))
        return status === 200 && body.readyWorkers === body.desiredWorkers &&
          body.workers.length === body.desiredWorkers
      }, `${name} to be ready`, { patienceMs: READY_WITHIN_MS })
    },

    async untilAllReady () {
      for (const { name } of apps) await site.untilReady(name)
    },

    /** @returns the status of the answer; where it is a good one, the rollout is through */
    async rollout (name: string, kind: 'restart' | 'deploy'): Promise<number> {
      const { status, body } = await site.ask(name, '/rollouts', { method: 'POST', body: JSON.stringify({ kind }) })
      if (status === 202) {
        const { body: { done } } = await site.ask(name, `/rollouts/${body.id}?wait=60s`)
        if (!done) throw new Error(`the ${kind} of ${name} is not done after 60 s`)
      }
      return status
    },

    /** A request that a worker of the victim does not survive. Returns its pid. */
    async hang (): Promise<number> {
      const { ports, ledger } = apps[apps.length - 1]
      const id = `poison-${++poisoned}`
      openHttp({ port: ports.http, isKept: false, path: '/hang' }).ask(blankExchange(id)).catch(() => {})
      const owner = () => ledger.read().begun.get(id)?.[0]
      await until(() => owner() !== undefined, `${id} to arrive`)
      return Number(owner())
    },

    /** `signal`: that the master does not survive */
    async harmMaster (signal: NodeJS.Signals) {
      const before = user.decks()
      process.kill(before[0].master.pid, signal)
      await user.untilNextMaster(before)
      await site.untilAllReady()
    },

    async upgrade () {
      const before = user.decks()
      await install(`1.${++upgrades}.0`)
      const { status, body } = await user.askHost('/host/upgrade', { method: 'POST', body: '{}' })
      if (status !== 202) throw new Error(`upgrade: expected 202, received ${status}: ${body.detail}`)
      await user.untilNextMaster(before)
      await site.untilAllReady()
    },

    /** `pids`: that die in the same instant */
    kill (pids: number[]) {
      for (const pid of pids) process.kill(pid, 'SIGKILL')
    },

    /** Everybody asks from now on, one over a kept connection and one over a fresh one each time. */
    async load () {
      asking = apps.map(({ name, ports, ledger }) =>
        startClients({ name, clients: 2, pauseMs: PAUSE_MS }, (client) =>
          openHttp({ port: ports.http, isKept: client === 0 }), ledger.read)
      )
      await until(
        () => apps.every(({ name, ledger }) => [...ledger.read().begun.keys()].some((id) => id.startsWith(name))),
        'all clients to have asked'
      )
    },

    /** Nobody asks any more; what became of it, by app. */
    silence: () =>
      Promise.all(
        asking.map(async (clients, index) => ({ tally: await clients.stop(), ledger: apps[index].ledger.read() }))
      ),

    /** How late the turns of the master's event loop were. */
    async delays (window: { startedAt: number, endedAt: number }) {
      const [pid] = user.masters()
      await until(() => Date.now() > window.endedAt + NOTES_WITHIN_MS, 'the notes of the event loop')
      return loopDelays(path.join(notes, String(pid)), { ...window, endedAt: window.endedAt + NOTES_WITHIN_MS })
    },

    removeData: () => rmSync(user.deck(VICTIM).dataDir, { recursive: true, maxRetries: 10 }),

    /** @returns what is not as it should be then */
    async close (): Promise<string[]> {
      for (const pid of user.managers()) process.kill(pid, 'SIGTERM')
      const gone = await until(() => user.processes().length === 0, 'the end of all').catch(({ message }) => message)
      return gone ? [gone] : []
    }
  }

  t.after(site.silence)
  await site.startHost()
  for (const name of OTHERS) await user.add(folders.others, name)
  await user.add(folders.own, VICTIM)
  await site.untilAllReady()
  return site
}

async function placeApp (t: TestOwner, name: string) {
  const [http, https, http2, http2Tls] = [await freePort(), await freePort(), await freePort(), await freePort()]
  const file = path.join(tempFolder(), 'ledger')
  const ledger = openLedger(file)
  t.after(ledger.close)
  return { name, ports: { http, https, http2, http2Tls }, ledger,
    env: { PORTS: [http, https, http2, http2Tls].join(), LEDGER: file } }
}

function configOf (apps: Awaited<ReturnType<typeof placeApp>>[]) {
  return Object.fromEntries(
    apps.map(({ name, env }) => [name, { entry: path.join(FIXTURES, 'serves-every-way.js'), env, ...SPECIAL[name] }])
  )
}
