import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { tempFolder } from './folder.js'
import { freePort } from './ports.js'
import { until } from './until.js'

/**
 * Real servers of NATS, for the tests of the fleet.
 * @typedef {Awaited<ReturnType<typeof startNats>>} Nats
 */

const PROGRAM = find()

/** Why the tests of the fleet are skipped, false where they are not. */
export const withoutNats = PROGRAM === null && 'no nats-server: it is neither on the PATH nor in NATS_SERVER'

if (withoutNats && process.env.CI) throw new Error(withoutNats)

/** @returns {string | null} */
function find () {
  const names = [process.env.NATS_SERVER, ...String(process.env.PATH).split(path.delimiter).map((folder) => path.join(folder, 'nats-server'))]
  return names.find((name) => name && isProgram(name)) ?? null
}

/** @param {string} name */
function isProgram (name) {
  try {
    accessSync(name, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * One server with JetStream, on a port that it keeps.
 * @param {Pick<import('node:test').TestContext, 'after'>} t  it ends with this
 * @param {{ config?: (port: number) => string }} [options]  `config`: further lines of its configuration
 */
export async function startNats (t, { config = () => '' } = {}) {
  const folder = tempFolder()
  const port = await freePort()
  const store = path.join(folder, 'jetstream')
  const file = path.join(folder, 'nats.conf')
  writeFileSync(file, `listen: "127.0.0.1:${port}"\nserver_name: "nats-${port}"\nmax_payload: 8MB\njetstream { store_dir: ${JSON.stringify(store)}, max_file_store: 64GB, max_memory_store: 256MB }\n${config(port)}\n`)
  /** @type {import('node:child_process').ChildProcess | null} */
  let child = null
  let output = ''
  t.after(() => kill())
  await start()

  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    start,
    kill,
    store,
    get output () { return output },
    get pid () { return /** @type {number} */ (child?.pid) },

    /** Of a stream, those of one subject. @param {string} stream @param {string} filter */
    async purge (stream, filter) {
      const connection = await connect({ servers: `nats://127.0.0.1:${port}` })
      await (await jetstreamManager(connection)).streams.purge(stream, { filter })
      await connection.close()
    },

    /** What it has stored is gone with it. */
    async wipe () {
      await kill()
      rmSync(store, { recursive: true, force: true })
      await start()
    },

    /** @param {NodeJS.Signals} signal such as SIGSTOP */
    signal: (signal) => child?.kill(signal)
  }

  async function start () {
    child = spawn(/** @type {string} */ (PROGRAM), ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr?.setEncoding('utf8').on('data', (text) => { output += text })
    await until(() => isOpen(port), 'the server of NATS to listen').catch((error) => { throw new Error(`${error.message}: ${output.slice(-2000)}`, { cause: error }) })
  }

  /** @param {NodeJS.Signals} [signal]  SIGTERM lets it write what it has in memory */
  async function kill (signal = 'SIGKILL') {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
}

/**
 * Three servers that are one, each of which can be cut off from the others: they reach each other through the test alone.
 * @param {Pick<import('node:test').TestContext, 'after'>} t
 */
export async function startNatsCluster (t) {
  const count = 3
  const ports = await Promise.all(Array.from({ length: count }, freePort))
  const links = await Promise.all(Array.from({ length: count * count }, (_, index) => createLink(t, { to: ports[index % count] })))
  const servers = []
  for (let index = 0; index < count; index++) {
    const routes = links.slice(index * count, (index + 1) * count).filter((_, other) => other !== index).map(({ port }) => `nats-route://127.0.0.1:${port}`)
    servers.push(startNats(t, {
      // What they would tell each other of their addresses is where nobody answers.
      config: () => `cluster { name: three, listen: "127.0.0.1:${ports[index]}", advertise: "127.0.0.1:1", no_advertise: true, routes: ${JSON.stringify(routes)} }`
    }))
  }
  const all = await Promise.all(servers)
  /** Nothing, while its servers agree on a leader. @param {string} stream @returns {Promise<Partial<import('@nats-io/jetstream').ClusterInfo>>} */
  const clusterOf = async (stream) => {
    const connection = await connect({ servers: all[0].url })
    try {
      return (await (await jetstreamManager(connection)).streams.info(stream)).cluster ?? {}
    } catch {
      return {}
    } finally {
      await connection.close()
    }
  }
  const linksOf = (/** @type {number} */ index) => links.filter((_, at) => Math.floor(at / count) === index || at % count === index)
  return {
    servers: all,
    urls: all.map(({ url }) => url),

    /** @param {string} stream @returns {Promise<Nats>} who leads it, while all are there */
    async leaderOf (stream) {
      /** @type {Nats | undefined} */
      let found
      await until(async () => {
        const { leader } = await clusterOf(stream)
        found = all.find(({ port }) => leader === `nats-${port}`)
        return found !== undefined
      }, `a leader of ${stream}`)
      return /** @type {Nats} */ (/** @type {unknown} */ (found))
    },

    /** Once all servers have all of a stream. @param {string} stream */
    untilWhole: (stream) => until(async () => {
      const { leader, replicas = [] } = await clusterOf(stream)
      return leader !== undefined && replicas.length === count - 1 && replicas.every(({ current }) => current)
    }, `all of ${stream} on all servers`),

    /** @param {number} index  one of them is alone from now on */
    cut: (index) => linksOf(index).forEach((link) => link.cut()),
    /** @param {number} index */
    mend: (index) => linksOf(index).forEach((link) => link.mend())
  }
}

/**
 * A way to a port of this machine that can be cut, and on which everything can take its time.
 * @param {Pick<import('node:test').TestContext, 'after'>} t
 * @param {{ to: number, delayMs?: number }} options
 */
export async function createLink (t, { to, delayMs = 0 }) {
  /** @type {Set<net.Socket>} */
  const sockets = new Set()
  let isCut = false
  /** @type {string | null} */
  let nonsense = null
  let delay = delayMs
  const server = net.createServer((near) => {
    if (isCut) return near.destroy()
    if (nonsense !== null) {
      sockets.add(near)
      near.on('error', () => {})
      return near.write(nonsense)
    }
    const far = net.connect(to, '127.0.0.1')
    for (const [one, other] of [[near, far], [far, near]]) {
      let dueAt = 0
      sockets.add(one)
      one.on('data', (data) => {
        dueAt = Math.max(dueAt, performance.now() + delay)
        whenDue(() => { if (!other.destroyed) other.write(data) })
      })
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        whenDue(() => other.destroySoon())
      })

      /** @param {() => void} work  after all that is on its way */
      function whenDue (work) {
        const ms = dueAt - performance.now()
        if (ms <= 0) work()
        else setTimeout(work, Math.ceil(ms))
      }
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = /** @type {net.AddressInfo} */ (server.address())
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    /** Both ends of each connection. */
    get sockets () { return sockets.size },
    cut () {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    mend () { isCut = false },
    /** @param {string} text  what everybody who connects hears, and nothing else */
    babble (text) { nonsense = text },
    /** @param {number} ms */
    slow (ms) { delay = ms }
  }
}

/** @param {number} port */
async function isOpen (port) {
  const socket = net.connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
