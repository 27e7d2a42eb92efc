import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { io } from 'socket.io-client'
import { FIXTURES, startDeck } from '../../support/deck.js'
import { tempFolder } from '../../support/folder.js'
import { createOwner } from '../../support/owner.js'
import { freePort } from '../../support/ports.js'
import { openUser } from '../../support/user.js'
import { untilAnswered } from './client.js'
import { CLI, PEERS, versionOf } from './install.js'
import { INSTALLS } from './installs.js'

/**
 * One way to run the same app.
 * @typedef {object} Running
 * @property {number} port
 * @property {() => number[]} managers  pids of those that answer no request
 * @property {() => Promise<number[]>} workers  pids; none: they are no processes of their own
 * @property {(() => Promise<void>) | null} reload  resolves once all workers are new; null: it cannot
 * @property {() => Promise<() => void>} [view]  opens its page, and returns what closes that
 * @property {() => Promise<void>} stop
 *
 * @typedef {object} How
 * @property {string[]} [through]  a program and its arguments, which starts what follows
 * @property {Prepared} [prepared]
 *
 * @typedef {{ folder: string, end: () => Promise<void> }} Prepared  what there is before the start that is measured: a folder of data, perhaps with processes
 *
 * @typedef {object} Peer
 * @property {string} name
 * @property {import('./installs.js').Install} [install]
 * @property {() => Promise<Prepared>} [prepare]
 * @property {(workers: number, port: number, how?: How) => Promise<Running>} start
 */

const APP = path.join(FIXTURES, 'compared-app.cjs')
const CLUSTER = path.join(FIXTURES, 'compared-cluster.cjs')
const owner = createOwner()

/** Whatever still runs of any of them. */
export const endPeers = owner.end

/** @type {Record<string, Peer>} by the name of a flag */
export const ALL = Object.freeze({
  node: { name: 'one process', start: (_workers, port, how) => startProcess([APP], 1, port, {}, how) },
  shared: { name: 'node:cluster, shared', start: (workers, port, how) => startProcess([CLUSTER], workers, port, { POLICY: 'shared' }, how) },
  'round-robin': { name: 'node:cluster, round-robin', start: (workers, port, how) => startProcess([CLUSTER], workers, port, { POLICY: 'round-robin' }, how) },
  clusterdeck: { name: 'clusterdeck', install: INSTALLS.clusterdeck, start: (workers, port, how) => startClusterdeck(workers, port, how) },
  pm2: { name: 'PM2', install: INSTALLS.pm2, start: startPm2 },
  watt: { name: 'Watt', install: INSTALLS.watt, start: startWatt }
})

/** What only some rows are about. @type {Record<string, Peer & { of: string }>} */
export const VARIANTS = Object.freeze({
  restart: { of: 'clusterdeck', name: 'clusterdeck, restart', start: (workers, port) => startClusterdeck(workers, port, { kind: 'restart' }) },
  standby: { of: 'clusterdeck', name: 'clusterdeck, one standby', start: (workers, port) => startClusterdeck(workers, port, { flags: ['--standby', '1'] }) },
  later: { of: 'clusterdeck', name: 'clusterdeck, once more', prepare: runClusterdeckOnce, start: (workers, port, how) => startClusterdeck(workers, port, how) },
  host: { of: 'clusterdeck', name: 'clusterdeck, its host runs', prepare: startHostOfClusterdeck, start: startInHost },
  clone: { of: 'clusterdeck', name: 'clusterdeck, npm ci of a clone', install: INSTALLS.clone, start: (workers, port, how) => startClusterdeck(workers, port, how) },
  daemon: { of: 'pm2', name: 'PM2, its daemon runs', prepare: startDaemonOfPm2, start: startPm2 }
})

/** @param {string[]} args of node @param {number} workers @param {number} port @param {Record<string, string>} env @param {How} [how] @returns {Promise<Running>} */
async function startProcess (args, workers, port, env, { through = [] } = {}) {
  const child = start([...through, process.execPath, ...args], { env: { PORT: String(port), WORKERS: String(workers), ...env } })
  await untilAnswered(port, workers)
  const isAlone = args[0] === APP
  return {
    port,
    managers: () => isAlone ? [] : [child.pid],
    workers: async () => isAlone ? [child.pid] : childrenOf(child.pid),
    reload: null,
    async stop () { await child.end() }
  }
}

/** @param {number} workers @param {number} port @param {How & { flags?: string[], kind?: 'deploy' | 'restart' }} [how] @returns {Promise<Running>} */
async function startClusterdeck (workers, port, { flags = [], kind = 'deploy', through, prepared } = {}) {
  const deck = await startDeck(owner, APP, { workers, flags, cli: CLI, env: { PORT: String(port) }, dataDir: prepared?.folder, launch: { through } })
  await deck.until({ ready: workers })
  return {
    port,
    managers: () => [Number(deck.child.pid), deck.masterPid],
    workers: async () => (await deck.status()).workers.map((/** @type {any} */ { pid }) => pid),
    async reload () { await deck.rollout(kind) },
    view: () => openPage(deck.adminUrl, deck.token),
    async stop () { await deck.stop() }
  }
}

/** As one who restarts it finds it: a folder with a history. @returns {Promise<Prepared>} */
async function runClusterdeckOnce () {
  const prepared = { folder: tempFolder(), async end () {} }
  const running = await startClusterdeck(2, await freePort(), { prepared })
  await running.stop()
  return prepared
}

/** What other apps of this user run in already, as the daemon of PM2. @returns {Promise<Prepared & { user: import('../../support/user.js').User }>} */
async function startHostOfClusterdeck () {
  const hostOwner = createOwner()
  const user = openUser(hostOwner, { cli: CLI })
  await user.startHost()
  return { folder: user.home, end: hostOwner.end, user }
}

/** @param {number} workers @param {number} port @param {How} [how] @returns {Promise<Running>} */
async function startInHost (workers, port, { through = [], prepared } = {}) {
  const { user } = /** @type {Awaited<ReturnType<typeof startHostOfClusterdeck>>} */ (prepared)
  const [program, ...words] = [...through, process.execPath, CLI, 'start', APP, '--detach', '--name', 'app', '--workers', String(workers)]
  const [code] = await once(spawn(program, words, { cwd: user.home, env: { ...process.env, ...user.env, PORT: String(port) }, stdio: 'ignore' }), 'exit')
  if (code !== 0) throw new Error(`clusterdeck start --detach: expected exit code 0, received ${code}`)
  return {
    port,
    managers: user.managers,
    workers: async () => (await user.ask(user.deck('app'), '/status')).body.workers.map((/** @type {any} */ { pid }) => pid),
    reload: null,
    // It ends with its host.
    async stop () {}
  }
}

/** A viewer of the page of clusterdeck, whose browser follows what happens. @param {string} url @param {string} token @returns {Promise<() => void>} */
export async function openPage (url, token) {
  const authorization = `Bearer ${token}`
  await (await fetch(url, { headers: { authorization } })).text()
  const socket = io(url, { transports: ['websocket'], forceNew: true, extraHeaders: { authorization } })
  await new Promise((resolve) => socket.on('connect', () => socket.emit('watch', '/', resolve)))
  return () => { socket.close() }
}

/** @param {number} workers @param {number} port @param {How} [how] @returns {Promise<Running>} */
async function startPm2 (workers, port, { through, prepared } = {}) {
  const env = { PORT: String(port) }
  const { pm2, kill, daemon } = createPm2(owner, env, { home: prepared?.folder, through })
  await pm2('start', APP, '--name', 'app', '-i', String(workers))
  await untilAnswered(port, workers)
  return {
    port,
    managers: () => [daemon()],
    workers: async () => childrenOf(daemon()),
    async reload () { await pm2('reload', 'app') },
    async stop () { await (prepared ? pm2('delete', 'all') : kill()) }
  }
}

/** @returns {Promise<Prepared>} */
async function startDaemonOfPm2 () {
  const folder = tempFolder()
  const { pm2, kill } = createPm2(owner, {}, { home: folder })
  await pm2('ping')
  return { folder, end: kill }
}

/**
 * PM2 with a home of its own.
 * @param {import('../../support/deck.js').TestOwner} t  its daemon ends with this @param {Record<string, string | undefined>} env
 * @param {{ home?: string, through?: string[] }} [how]  `through`: a program and its arguments, which starts the first command
 */
export function createPm2 (t, env, { home = tempFolder(), through = [] } = {}) {
  const cli = path.join(PEERS, 'node_modules', 'pm2', 'bin', 'pm2')
  let isFirst = true
  /** @type {Promise<unknown>} */
  let last = Promise.resolve()
  /** @type {Promise<void> | undefined} */
  let killing
  t.after(kill)
  return {
    pm2,
    kill,
    /** Once an app has been started. @returns {number} its pid */
    daemon: () => Number(readFileSync(path.join(home, 'pm2.pid'), 'utf8'))
  }

  /** One command after the other: one that is about to start the daemon would do so after its end. @param {...string} args @returns {Promise<void>} */
  function pm2 (...args) {
    const done = last.then(() => runCommand(args))
    last = done.catch(() => {})
    return done
  }

  function kill () {
    return (killing ??= pm2('kill'))
  }

  /** @param {string[]} args */
  async function runCommand (args) {
    const [program, ...words] = [...(isFirst ? through : []), process.execPath, cli, ...args]
    isFirst = false
    // No pipes, whose end would be that of its daemon.
    const child = spawn(program, words, { env: { ...process.env, ...env, PM2_HOME: home }, stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`pm2 ${args.join(' ')}: expected exit code 0, received ${code}`)
  }
}

/** @param {number} workers @param {number} port @param {How} [how] @returns {Promise<Running>} */
async function startWatt (workers, port, { through = [] } = {}) {
  const folder = path.join(PEERS, 'watt')
  const app = path.join(folder, 'app')
  mkdirSync(app, { recursive: true })
  copyFileSync(APP, path.join(app, 'app.cjs'))
  const files = {
    'package.json': { name: 'bench', private: true },
    'app/package.json': { name: 'app', main: 'app.cjs' },
    'app/watt.json': { $schema: `https://schemas.platformatic.dev/@platformatic/node/${versionOf('@platformatic/node')}.json` },
    'watt.json': {
      $schema: `https://schemas.platformatic.dev/wattpm/${versionOf('wattpm')}.json`,
      server: { hostname: '127.0.0.1', port },
      logger: { level: 'error' },
      entrypoint: 'app',
      applications: [{ id: 'app', path: './app', workers }]
    }
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), JSON.stringify(content))
  const cli = path.join(PEERS, 'node_modules', 'wattpm', 'bin', 'cli.js')
  const child = start([...through, process.execPath, cli, 'start'], { cwd: folder })
  await untilAnswered(port, workers)
  return {
    port,
    managers: () => [child.pid],
    workers: async () => [],
    async reload () { await owner.run(process.execPath, [cli, 'restart', String(child.pid)], { cwd: folder }) },
    async stop () { await child.end() }
  }
}

/**
 * Each in a session of its own, as Linux shares the CPU between sessions.
 * @param {string[]} command @param {{ env?: Record<string, string>, cwd?: string }} [options]
 */
function start ([program, ...args], { env = {}, cwd } = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, cwd, stdio: 'ignore', detached: true })
  return { pid: Number(child.pid), end: owner.spawned(child) }
}

/** @param {number} pid @returns {number[]} */
export function childrenOf (pid) {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').filter(Boolean).map(Number) : []
}
