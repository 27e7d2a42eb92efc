import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { runningDecks } from '../../server/system/running-decks.js'
import { CLI, runCli } from './deck.js'
import { readMasters } from './deck-client.js'
import { tempFolder } from './folder.js'
import { findProcesses } from './leftovers.js'
import { until } from './until.js'

/** @typedef {import('../../server/system/running-decks.js').RunningDeck} RunningDeck */
/** @typedef {ReturnType<typeof openUser>} User */

const CONFIG = 'clusterdeck.config.json'
const END_WITHIN_MS = 30_000
const NEXT_WITHIN_MS = 120_000

/**
 * A user of a machine, with folders of apps, a host and a list of decks that are their own. All processes that are started
 * end with the test.
 * @param {Pick<import('node:test').TestContext, 'after'>} t
 * @param {{ cli?: string }} [options] `cli`: of another installation
 */
export function openUser (t, { cli = CLI } = {}) {
  const home = tempFolder()
  const host = path.join(home, 'host')
  const mark = `CLUSTERDECK_HOST_DIR=${host}`
  // With a bundle of certificates each process would read it at its start.
  const env = { PORT: undefined, NODE_EXTRA_CA_CERTS: undefined, CLUSTERDECK_HOST_DIR: host, CLUSTERDECK_RUNTIME_DIR: path.join(home, 'running') }
  t.after(end)

  const user = {
    home,
    env,
    hostFolder: host,

    /** @param {string} name @param {object} config @returns {string} a folder with that configuration */
    folder (name, config) {
      const cwd = path.join(home, name)
      mkdirSync(cwd, { recursive: true })
      writeFileSync(path.join(cwd, CONFIG), JSON.stringify(config, null, 2))
      return cwd
    },

    /** A command to its end. @param {string} cwd @param {...string} args */
    run: (cwd, ...args) => runCli(args, { env, cwd }),

    /**
     * A command that goes on, in a session of its own.
     * @param {string} cwd @param {string[]} args @param {import('./deck.js').Launch} [launch]
     */
    start (cwd, args, { execArgv = [], env: more = {} } = {}) {
      const child = spawn(process.execPath, [...execArgv, cli, ...args], { cwd, env: { ...process.env, ...env, ...more }, detached: true, stdio: 'ignore' })
      child.unref()
      return { pid: Number(child.pid), exited: once(child, 'exit') }
    },

    /** All that run, by name: each app of a host is one. */
    decks: () => runningDecks({ ...process.env, ...env }),

    /** @param {string} name @returns {RunningDeck} */
    deck (name) {
      const deck = user.decks().find((each) => each.name === name)
      if (!deck) throw new Error(`expected a deck ${name}, received ${user.decks().map((each) => each.name)}`)
      return deck
    },

    /** @returns {number[]} pids of all masters, one of a host */
    masters: () => [...new Set(user.decks().map(({ master }) => master.pid))],

    /** @returns {number[]} pids of all keepers and masters */
    managers: () => [...new Set(user.decks().flatMap(({ master, keeper }) => [master.pid, ...keeper ? [keeper.pid] : []]))],

    /** @param {Pick<RunningDeck, 'adminUrl' | 'dataDir'>} deck @param {string} where below /api/v1 @param {RequestInit} [init] */
    async ask ({ adminUrl, dataDir }, where, init = {}) {
      const headers = { authorization: `Bearer ${await tokenOf(adminUrl, dataDir)}`, connection: 'close', ...(init.body ? { 'content-type': 'application/json' } : {}) }
      const response = await fetch(`${adminUrl}/api/v1${where}`, { ...init, headers })
      return { status: response.status, body: /** @type {any} */ (await response.json()) }
    },

    /** @param {string} where below /api/v1 of the host @param {RequestInit} [init] */
    async askHost (where, init) {
      const [{ adminUrl }] = await readMasters(host)
      return await user.ask({ adminUrl, dataDir: host }, where, init)
    },

    /**
     * Runs the command of the unit until it answers.
     * @param {import('./deck.js').Launch} [launch] @param {string[]} [flags]
     */
    async startHost (launch, flags = []) {
      const host = user.start(home, ['host', '--admin-port', '0', ...flags], launch)
      await until(async () => (await user.askHost('/host').catch(() => null))?.body.keeperPid === host.pid, 'the host')
    },

    /** Has the host run an app of a config file. @param {string} cwd @param {string} app */
    async add (cwd, app) {
      const order = { cwd, config: path.join(cwd, CONFIG), app, flags: {}, env: { PATH: process.env.PATH } }
      const { status, body } = await user.askHost('/apps', { method: 'POST', body: JSON.stringify(order) })
      if (status !== 201) throw new Error(`${app}: expected 201, received ${status}: ${body.detail}`)
    },

    /** @param {RunningDeck} deck where its page is, which the apps of a host share */
    page: async ({ adminUrl, dataDir }) => ({ url: new URL(adminUrl).origin, token: await tokenOf(adminUrl, dataDir) }),

    /**
     * Resolves once each deck of these has another master that answers.
     * @param {RunningDeck[]} before @param {() => void} [onFirst] the first of them has
     */
    async untilNextMaster (before, onFirst = () => {}) {
      const old = before.map(({ master }) => master.pid)
      const isBack = async (/** @type {RunningDeck} */ { dataDir }) => {
        const deck = user.decks().find((each) => each.dataDir === dataDir && !old.includes(each.master.pid))
        return deck !== undefined && (await user.ask(deck, '/status').catch(() => null))?.status === 200
      }
      const waits = before.map((deck) => until(() => isBack(deck), `the next master of ${deck.name}`, { everyMs: 20, patienceMs: NEXT_WITHIN_MS }))
      Promise.any(waits).then(onFirst, () => {})
      await Promise.all(waits)
    },

    /** Everything that runs for this user, at once. @returns {number[]} pids */
    processes: () => findProcesses(mark).map(({ pid }) => pid)
  }
  return user

  /** All apps of a host have that of its folder, at whose address they are. @param {string} adminUrl @param {string} dataDir @returns {Promise<string>} */
  async function tokenOf (adminUrl, dataDir) {
    const isOfHost = new URL(adminUrl).pathname !== '/' || dataDir === host
    const folders = isOfHost ? [host] : [dataDir, ...(await readMasters(dataDir)).map(({ place }) => place)]
    const folder = folders.find((each) => existsSync(path.join(each, 'admin.token')))
    return (await readFile(path.join(String(folder), 'admin.token'), 'utf8')).trim()
  }

  /** As by two signals of an operator; what is left then is a defect, and ended too. */
  async function end () {
    for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) for (const pid of user.managers()) kill(pid, signal)
    const left = await until(() => user.processes().length === 0, 'the end of all', { patienceMs: END_WITHIN_MS }).catch(() => user.processes())
    for (const pid of left ?? []) kill(pid, 'SIGKILL')
  }
}

/** @param {number} pid @param {NodeJS.Signals} signal */
function kill (pid, signal) {
  try {
    process.kill(pid, signal)
  } catch {
    // ESRCH: it has ended in between.
  }
}
