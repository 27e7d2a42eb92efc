import { execFile, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { FIXTURES, startDeck } from '../../support/deck.js'
import { tempFolder } from '../../support/folder.js'
import { PEERS, versionOf, WATT_NODE } from './install.js'
import { untilAnswered } from './client.js'

/**
 * One way to run the same app.
 * @typedef {object} Running
 * @property {number} port
 * @property {() => number[]} managers  pids of those that answer no request
 * @property {() => Promise<number[]>} workers  pids; none: they are no processes of their own
 * @property {(() => Promise<void>) | null} reload  resolves once all workers are new; null: it cannot
 * @property {() => Promise<void>} stop
 *
 * @typedef {{ name: string, start: (workers: number, port: number) => Promise<Running> }} Peer
 */

const APP = path.join(FIXTURES, 'compared-app.cjs')
const CLUSTER = path.join(FIXTURES, 'compared-cluster.cjs')
const run = promisify(execFile)

/** @type {Record<string, Peer>} by the name of a flag */
export const ALL = Object.freeze({
  node: { name: 'one process', start: (_workers, port) => startProcess([APP], 1, port) },
  shared: { name: 'node:cluster, shared', start: (workers, port) => startProcess([CLUSTER], workers, port, { POLICY: 'shared' }) },
  'round-robin': { name: 'node:cluster, round-robin', start: (workers, port) => startProcess([CLUSTER], workers, port, { POLICY: 'round-robin' }) },
  clusterdeck: { name: 'clusterdeck', start: (workers, port) => startClusterdeck(workers, port) },
  pm2: { name: 'PM2', start: startPm2 },
  watt: { name: 'Watt', start: startWatt }
})

/** What only some rows are about. @type {Record<string, Peer>} */
export const VARIANTS = Object.freeze({
  again: { name: 'node:cluster, shared, once more', start: (workers, port) => ALL.shared.start(workers, port) },
  restart: { name: 'clusterdeck, restart', start: (workers, port) => startClusterdeck(workers, port, { kind: 'restart' }) },
  standby: { name: 'clusterdeck, one standby', start: (workers, port) => startClusterdeck(workers, port, { flags: ['--standby', '1'] }) }
})

/** @param {string[]} args of node @param {number} workers @param {number} port @param {Record<string, string>} [env] @returns {Promise<Running>} */
async function startProcess (args, workers, port, env = {}) {
  const child = start(process.execPath, args, { env: { PORT: String(port), WORKERS: String(workers), ...env } })
  await untilAnswered(port, workers)
  const isAlone = args[0] === APP
  return {
    port,
    managers: () => isAlone ? [] : [child.pid],
    workers: async () => isAlone ? [child.pid] : childrenOf(child.pid),
    reload: null,
    stop: () => child.end()
  }
}

/** @param {number} workers @param {number} port @param {{ flags?: string[], kind?: 'deploy' | 'restart' }} [how] @returns {Promise<Running>} */
async function startClusterdeck (workers, port, { flags = [], kind = 'deploy' } = {}) {
  const deck = await startDeck({ after () {} }, APP, { workers, flags, env: { PORT: String(port) } })
  await deck.until({ ready: workers })
  return {
    port,
    managers: () => [Number(deck.child.pid), deck.masterPid],
    workers: async () => (await deck.status()).workers.map((/** @type {any} */ { pid }) => pid),
    async reload () { await deck.rollout(kind) },
    async stop () { await deck.stop() }
  }
}

/** @param {number} workers @param {number} port @returns {Promise<Running>} */
async function startPm2 (workers, port) {
  const { pm2, daemon } = createPm2({ PORT: String(port) })
  await pm2('start', APP, '--name', 'app', '-i', String(workers))
  await untilAnswered(port, workers)
  return {
    port,
    managers: () => [daemon()],
    workers: async () => childrenOf(daemon()),
    async reload () { await pm2('reload', 'app') },
    async stop () { await pm2('kill') }
  }
}

/** PM2 with a home of its own. @param {Record<string, string | undefined>} env */
export function createPm2 (env) {
  const home = tempFolder()
  const cli = path.join(PEERS, 'node_modules', 'pm2', 'bin', 'pm2')
  return {
    pm2: (/** @type {string[]} */ ...args) => run(process.execPath, [cli, ...args], { env: { ...process.env, ...env, PM2_HOME: home }, maxBuffer: 1e8 }),
    /** Once an app has been started. @returns {number} its pid */
    daemon: () => Number(readFileSync(path.join(home, 'pm2.pid'), 'utf8'))
  }
}

/** @param {number} workers @param {number} port @returns {Promise<Running>} */
async function startWatt (workers, port) {
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
  const child = start(WATT_NODE, [cli, 'start'], { cwd: folder })
  await untilAnswered(port, workers)
  return {
    port,
    managers: () => [child.pid],
    workers: async () => [],
    async reload () { await run(WATT_NODE, [cli, 'restart', String(child.pid)], { cwd: folder }) },
    stop: () => child.end()
  }
}

/**
 * Each in a session of its own, as Linux shares the CPU between sessions.
 * @param {string} program @param {string[]} args @param {{ env?: Record<string, string>, cwd?: string }} [options]
 */
function start (program, args, { env = {}, cwd } = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, cwd, stdio: 'ignore', detached: true })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  return {
    pid: Number(child.pid),
    async end () {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(timer)
    }
  }
}

/** @param {number} pid @returns {number[]} */
export function childrenOf (pid) {
  const file = `/proc/${pid}/task/${pid}/children`
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split(' ').filter(Boolean).map(Number) : []
}
