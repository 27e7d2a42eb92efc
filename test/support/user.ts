import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { attempt } from '../../server/errors.ts'
import { runningDecks, type RunningDeck } from '../../server/system/running-decks.ts'
import { CLI, runCli, type Launch } from './deck.ts'
import { readMasters } from './deck-client.ts'
import { tempFolder } from './folder.ts'
import { findProcesses } from './leftovers.ts'
import { until } from './until.ts'
import type { TestContext } from 'node:test'
import type { Host } from '../../server/host/api.ts'
import type { HistoryState } from '../../server/api/shapes.ts'

export type User = ReturnType<typeof openUser>

/** Of a deck, of an app or of the host. */
export type Answer = Partial<Host> & { id: number, url: string, done: boolean, state: string, reason: string | null,
  detail: string, history: HistoryState, workers: { pid: number }[], readyWorkers: number, desiredWorkers: number,
  items: { name: string, state: string, pid: number, cause: string }[] }

const CONFIG = 'clusterdeck.config.json'
const NEXT_WITHIN_MS = 120_000

/**
 * A user of a machine, with folders of apps, a host and a list of decks that are their own. All processes that are
 * started end with the test. `cli`: of another installation; `variables`: of what is started.
 */
export function openUser (t: Pick<TestContext, 'after'>,
  { cli = CLI, variables = {} }: { cli?: string, variables?: Record<string, string | undefined> } = {})
{
  const home = tempFolder()
  // With a bundle of certificates each process would read it at its start.
  const env: Record<string, string | undefined> = { PORT: undefined, NODE_EXTRA_CA_CERTS: undefined,
    CLUSTERDECK_HOST_DIR: path.join(home, 'host'), CLUSTERDECK_RUNTIME_DIR: path.join(home, 'running'), ...variables }
  const host = String(env.CLUSTERDECK_HOST_DIR)
  const mark = `CLUSTERDECK_HOST_DIR=${host}`
  t.after(end)

  const user = {
    home,
    env,
    hostFolder: host,

    /** @returns a folder with that configuration */
    folder (name: string, config: object): string {
      const cwd = path.join(home, name)
      mkdirSync(cwd, { recursive: true })
      writeFileSync(path.join(cwd, CONFIG), JSON.stringify(config, null, 2))
      return cwd
    },

    /** A command to its end. */
    run: (cwd: string, ...args: string[]) => runCli(args, { env, cwd }),

    /** A command that goes on, in a session of its own. */
    start (cwd: string, args: string[], { execArgv = [], env: more = {} }: Launch = {}) {
      const child = spawn(process.execPath, [...execArgv, cli, ...args], { cwd,
        env: { ...process.env, ...env, ...more }, detached: true, stdio: 'ignore' })
      child.unref()
      return { pid: Number(child.pid), exited: once(child, 'exit') }
    },

    /** All that run, by name: each app of a host is one. */
    decks: () => runningDecks({ ...process.env, ...env }),

    deck (name: string): RunningDeck {
      const deck = user.decks().find((each) => each.name === name)
      if (!deck) throw new Error(`expected a deck ${name}, received ${user.decks().map((each) => each.name)}`)
      return deck
    },

    /** @returns pids of all masters, one of a host */
    masters: (): number[] => [...new Set(user.decks().map(({ master }) => master.pid))],

    /** @returns pids of all keepers and masters */
    managers:
      (): number[] => [
        ...new Set(user.decks().flatMap(({ master, keeper }) => [master.pid, ...keeper ? [keeper.pid] : []]))
      ],

    /** `where`: below /api/v1 */
    async ask ({ adminUrl, dataDir }: Pick<RunningDeck, 'adminUrl' | 'dataDir'>, where: string,
      init: RequestInit = {})
    {
      const headers = { ...init.headers, authorization: `Bearer ${await tokenOf(adminUrl, dataDir)}`,
        connection: 'close', ...(init.body ? { 'content-type': 'application/json' } : {}) }
      const response = await fetch(`${adminUrl}/api/v1${where}`, { ...init, headers })
      return { status: response.status, body: await response.json() as Answer }
    },

    /** `where`: below /api/v1 of the host */
    async askHost (where: string, init?: RequestInit): Promise<{ status: number, body: Answer }> {
      const [{ adminUrl }] = await readMasters(host)
      return await user.ask({ adminUrl, dataDir: host }, where, init)
    },

    /** Runs the command of the unit until it answers. */
    async startHost (launch?: Launch, flags: string[] = []) {
      const host = user.start(home, ['host', '--admin-port', '0', ...flags], launch)
      await until(async () => (await user.askHost('/host').catch(() => null))?.body.keeperPid === host.pid, 'the host')
    },

    /** Has the host run an app of a config file. */
    async add (cwd: string, app: string) {
      const order = { cwd, config: path.join(cwd, CONFIG), app, flags: {}, env: { PATH: process.env.PATH } }
      const { status, body } = await user.askHost('/apps', { method: 'POST', body: JSON.stringify(order) })
      if (status !== 201) throw new Error(`${app}: expected 201, received ${status}: ${body.detail}`)
    },

    /** `deck`: where its page is, which the apps of a host share */
    page: async ({ adminUrl, dataDir }: RunningDeck) => ({ url: new URL(adminUrl).origin,
      token: await tokenOf(adminUrl, dataDir) }),

    /** Resolves once each deck of these has another master that answers. `onFirst`: the first of them has. */
    async untilNextMaster (before: RunningDeck[], onFirst: () => void = () => {}) {
      const old = before.map(({ master }) => master.pid)
      const isBack = async ({ dataDir }: RunningDeck) => {
        const deck = user.decks().find((each) => each.dataDir === dataDir && !old.includes(each.master.pid))
        return deck !== undefined && (await user.ask(deck, '/status').catch(() => null))?.status === 200
      }
      const waits = before.map((deck) =>
        until(() => isBack(deck), `the next master of ${deck.name}`, { everyMs: 20, patienceMs: NEXT_WITHIN_MS })
      )
      Promise.any(waits).then(onFirst, () => {})
      await Promise.all(waits)
    },

    /** Everything that runs for this user, at once. Returns pids. */
    processes: (): number[] => findProcesses(mark).map(({ pid }) => pid)
  }
  return user

  /** All apps of a host have that of its folder, at whose address they are. */
  async function tokenOf (adminUrl: string, dataDir: string): Promise<string> {
    const isOfHost = new URL(adminUrl).pathname !== '/' || dataDir === host
    const folders = isOfHost ? [host] : [dataDir, ...(await readMasters(dataDir)).map(({ place }) => place)]
    const folder = folders.find((each) => existsSync(path.join(each, 'admin.token')))
    return (await readFile(path.join(String(folder), 'admin.token'), 'utf8')).trim()
  }

  /** As by two signals of an operator; what is left then is a defect, and ended too. */
  async function end () {
    // A host may have no app that runs.
    const ofHost = await readMasters(host) as { pid: number, keeper?: { pid: number } | null }[]
    const pids = [...user.managers(), ...ofHost.flatMap(({ pid, keeper }) => [pid, ...keeper ? [keeper.pid] : []])]
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      for (const pid of new Set(pids)) if (pid !== process.pid) kill(pid, signal)
    const text = () => `the end of ${findProcesses(mark).map(({ command }) => command).join(', ')}`
    await until(() => user.processes().length === 0, text).finally(() => {
      for (const pid of user.processes()) kill(pid, 'SIGKILL')
    })
  }
}

function kill (pid: number, signal: NodeJS.Signals) {
  // ESRCH: it has ended in between.
  attempt(() => process.kill(pid, signal))
}
