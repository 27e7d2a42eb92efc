import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { io } from 'socket.io-client'
import { FIXTURES, startDeck } from '../../support/deck.ts'
import { tempFolder } from '../../support/folder.ts'
import { createOwner } from '../../support/owner.ts'
import { freePort } from '../../support/ports.ts'
import { openUser, type User } from '../../support/user.ts'
import { childrenOf } from '../../../server/system/children.ts'
import { untilAnswered } from './client.ts'
import { CLI, PEERS, versionOf } from './install.ts'
import { INSTALLS, type Install } from './installs.ts'

/** One way to run the same app. */
export type Running = {
  port: number,
  /** pids of those that answer no request */
  managers: () => number[],
  /** pids; none: they are no processes of their own */
  workers: () => Promise<number[]>,
  /** resolves once all workers are new; null: it cannot */
  reload: (() => Promise<void>) | null,
  /** opens its page, and returns what closes that */
  view?: () => Promise<() => void>,
  stop: () => Promise<void>
}
type How = {
  /** a program and its arguments, which starts what follows */
  through?: string[],
  prepared?: Prepared
}
/** what there is before the start that is measured: a folder of data, perhaps with processes */
type Prepared = { folder: string, end: () => Promise<void> }
export type Peer = { name: string, install?: Install, prepare?: () => Promise<Prepared>,
  start: (workers: number, port: number, how?: How) => Promise<Running> }

const APP = path.join(FIXTURES, 'compared-app.cjs')
const CLUSTER = path.join(FIXTURES, 'compared-cluster.cjs')
const owner = createOwner()

/** Whatever still runs of any of them. */
export const endPeers = owner.end

/** by the name of a flag */
export const ALL: Record<string, Peer> = Object.freeze({
  node: { name: 'one process', start: (_workers, port, how) => startProcess([APP], 1, port, {}, how) },
  shared: { name: 'node:cluster, shared', start: (workers, port, how) =>
    startProcess([CLUSTER], workers, port, { POLICY: 'shared' }, how) },
  'round-robin': { name: 'node:cluster, round-robin', start: (workers, port, how) =>
    startProcess([CLUSTER], workers, port, { POLICY: 'round-robin' }, how) },
  clusterdeck: { name: 'clusterdeck', install: INSTALLS.clusterdeck, start: (workers, port, how) =>
    startClusterdeck(workers, port, how) },
  pm2: { name: 'PM2', install: INSTALLS.pm2, start: startPm2 },
  watt: { name: 'Watt', install: INSTALLS.watt, start: startWatt }
})

/** What only some rows are about. */
export const VARIANTS: Record<string, Peer & { of: string }> = Object.freeze({
  restart: { of: 'clusterdeck', name: 'clusterdeck, restart', start: (workers, port) =>
    startClusterdeck(workers, port, { kind: 'restart' }) },
  standby: { of: 'clusterdeck', name: 'clusterdeck, one standby', start: (workers, port) =>
    startClusterdeck(workers, port, { flags: ['--standby', '1'] }) },
  later: { of: 'clusterdeck', name: 'clusterdeck, once more', prepare: runClusterdeckOnce,
    start: (workers, port, how) => startClusterdeck(workers, port, how) },
  host: { of: 'clusterdeck', name: 'clusterdeck, its host runs', prepare: startHostOfClusterdeck, start: startInHost },
  clone: { of: 'clusterdeck', name: 'clusterdeck, npm ci of a clone', install: INSTALLS.clone,
    start: (workers, port, how) => startClusterdeck(workers, port, how) },
  daemon: { of: 'pm2', name: 'PM2, its daemon runs', prepare: startDaemonOfPm2, start: startPm2 }
})

/** `args`: of node */
async function startProcess (args: string[], workers: number, port: number, env: Record<string, string>,
  { through = [] }: How = {}): Promise<Running>
{
  const child = start([...through, process.execPath, ...args], {
    env: { PORT: String(port), WORKERS: String(workers), ...env }
  })
  await untilAnswered(port, workers)
  const isAlone = args[0] === APP
  return { port, managers: () => isAlone ? [] : [child.pid],
    workers: async () => isAlone ? [child.pid] : childrenOf(child.pid), reload: null, async stop () {
    await child.end()
  } }
}

async function startClusterdeck (workers: number, port: number,
  { flags = [], kind = 'deploy', through, prepared }: How & { flags?: string[], kind?: 'deploy' | 'restart' } =
    {}): Promise<Running>
{
  const deck = await startDeck(owner, APP, { workers, flags, cli: CLI, env: { PORT: String(port) },
    dataDir: prepared?.folder, launch: { through, isFollowed: false } })
  // Whoever asks the API has it loaded, and others are not asked either.
  await untilAnswered(port, workers)
  return { port, managers: () => [Number(deck.child.pid), deck.masterPid],
    workers: async () => childrenOf(deck.masterPid), async reload () {
    deck.follow()
    await deck.rollout(kind)
  }, view: () => openPage(deck.adminUrl, deck.token), async stop () {
    await deck.stop()
  } }
}

/** As one who restarts it finds it: a folder with a history. */
async function runClusterdeckOnce (): Promise<Prepared> {
  const prepared = { folder: tempFolder(), async end () {} }
  const running = await startClusterdeck(2, await freePort(), { prepared })
  await running.stop()
  return prepared
}

/** What other apps of this user run in already, as the daemon of PM2. */
async function startHostOfClusterdeck (): Promise<Prepared & { user: User }> {
  const hostOwner = createOwner()
  const user = openUser(hostOwner, { cli: CLI })
  await user.startHost()
  return { folder: user.home, end: hostOwner.end, user }
}

async function startInHost (workers: number, port: number, { through = [], prepared }: How = {}): Promise<Running> {
  const { user } = prepared as Awaited<ReturnType<typeof startHostOfClusterdeck>>
  const [program, ...words] = [...through, process.execPath, CLI, 'start', APP, '--detach', '--name', 'app',
    '--workers', String(workers)]
  const [code] = await once(
    spawn(program, words, { cwd: user.home, env: { ...process.env, ...user.env, PORT: String(port) },
      stdio: 'ignore' }),
    'exit'
  )
  if (code !== 0) throw new Error(`clusterdeck start --detach: expected exit code 0, received ${code}`)
  return {
    port,
    managers: user.managers,
    workers: async () =>
      (await user.ask(user.deck('app'), '/status')).body.workers.map(({ pid }: { pid: number }) => pid),
    reload: null,
    // It ends with its host.
    async stop () {}
  }
}

/** A viewer of the page of clusterdeck, whose browser follows what happens. */
export async function openPage (url: string, token: string): Promise<() => void> {
  const authorization = `Bearer ${token}`
  await (await fetch(url, { headers: { authorization } })).text()
  const socket = io(url, { transports: ['websocket'], forceNew: true, extraHeaders: { authorization } })
  await new Promise((resolve) => socket.on('connect', () => socket.emit('watch', '/', resolve)))
  return () => {
    socket.close()
  }
}

async function startPm2 (workers: number, port: number, { through, prepared }: How = {}): Promise<Running> {
  const env = { PORT: String(port) }
  const { pm2, kill, daemon } = createPm2(env, { home: prepared?.folder, through })
  await pm2('start', APP, '--name', 'app', '-i', String(workers))
  await untilAnswered(port, workers)
  return { port, managers: () => [daemon()], workers: async () => childrenOf(daemon()), async reload () {
    await pm2('reload', 'app')
  }, async stop () {
    await (prepared ? pm2('delete', 'all') : kill())
  } }
}

async function startDaemonOfPm2 (): Promise<Prepared> {
  const folder = tempFolder()
  const { pm2, kill } = createPm2({}, { home: folder })
  await pm2('ping')
  return { folder, end: kill }
}

/**
 * PM2 with a home of its own. `through`: a program and its arguments, which
 * starts the first command.
 */
export function createPm2 (env: Record<string, string>,
  { home = tempFolder(), through = [] }: { home?: string, through?: string[] } = {})
{
  const cli = path.join(PEERS, 'node_modules', 'pm2', 'bin', 'pm2')
  let isFirst = true
  let last: Promise<unknown> = Promise.resolve()
  let killing: Promise<void> | undefined
  owner.after(kill)
  return {
    pm2,
    kill,
    /** Once an app has been started. Returns its pid. */
    daemon: (): number => Number(readFileSync(path.join(home, 'pm2.pid'), 'utf8'))
  }

  /** One command after the other: one that is about to start the daemon would do so after its end. */
  function pm2 (...args: string[]): Promise<void> {
    const done = last.then(() => runCommand(args))
    last = done.catch(() => {})
    return done
  }

  function kill () {
    return (killing ??= pm2('kill'))
  }

  async function runCommand (args: string[]) {
    const [program, ...words] = [...(isFirst ? through : []), process.execPath, cli, ...args]
    isFirst = false
    // No pipes, whose end would be that of its daemon.
    const child = spawn(program, words, { env: { ...process.env, ...env, PM2_HOME: home }, stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`pm2 ${args.join(' ')}: expected exit code 0, received ${code}`)
  }
}

async function startWatt (workers: number, port: number, { through = [] }: How = {}): Promise<Running> {
  const folder = path.join(PEERS, 'watt')
  const app = path.join(folder, 'app')
  mkdirSync(app, { recursive: true })
  copyFileSync(APP, path.join(app, 'app.cjs'))
  const files = { 'package.json': { name: 'bench', private: true },
    'app/package.json': { name: 'app', main: 'app.cjs' },
    'app/watt.json': {
      $schema: `https://schemas.platformatic.dev/@platformatic/node/${versionOf('@platformatic/node')}.json`
    },
    'watt.json': { $schema: `https://schemas.platformatic.dev/wattpm/${versionOf('wattpm')}.json`,
      server: { hostname: '127.0.0.1', port }, logger: { level: 'error' }, entrypoint: 'app',
      applications: [{ id: 'app', path: './app', workers }] } }
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(folder, name), JSON.stringify(content))
  const cli = path.join(PEERS, 'node_modules', 'wattpm', 'bin', 'cli.js')
  const child = start([...through, process.execPath, cli, 'start'], { cwd: folder })
  await untilAnswered(port, workers)
  return { port, managers: () => [child.pid], workers: async () => [], async reload () {
    await owner.run(process.execPath, [cli, 'restart', String(child.pid)], { cwd: folder })
  }, async stop () {
    await child.end()
  } }
}

/** Each in a session of its own, as Linux shares the CPU between sessions. */
function start ([program, ...args]: string[], { env = {}, cwd }: { env?: Record<string, string>, cwd?: string } = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, cwd, stdio: 'ignore', detached: true })
  return { pid: Number(child.pid), end: owner.spawned(child) }
}
