import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { jetstreamManager, type ClusterInfo } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { tempFolder } from './folder.ts'
import { freePort } from './ports.ts'
import { until } from './until.ts'
import type { TestContext } from 'node:test'

/** Real servers of NATS, for the tests of the fleet. */
export type Nats = Awaited<ReturnType<typeof startNats>>

const PROGRAM = find()

/** Why the tests of the fleet are skipped, false where they are not. */
export const withoutNats = PROGRAM === null && 'no nats-server: it is neither on the PATH nor in NATS_SERVER'

if (withoutNats && process.env.CI) throw new Error(withoutNats)

function find (): string | null {
  const names = [process.env.NATS_SERVER,
    ...String(process.env.PATH).split(path.delimiter).map((folder) => path.join(folder, 'nats-server'))]
  return names.find((name) => name && isProgram(name)) ?? null
}

function isProgram (name: string) {
  try {
    accessSync(name, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * One server with JetStream, on a port that it keeps. `t`: it ends with this; `config`: further lines of its
 * configuration.
 */
export async function startNats (t: Pick<TestContext, 'after'>,
  { config = () => '' }: { config?: (port: number) => string } = {})
{
  const folder = tempFolder()
  const port = await freePort()
  const store = path.join(folder, 'jetstream')
  const file = path.join(folder, 'nats.conf')
  writeFileSync(file,
    `listen: "127.0.0.1:${port}"\nserver_name: "nats-${port}"\nmax_payload: 8MB\njetstream { store_dir: ${
      JSON.stringify(store)
    }, max_file_store: 64GB, max_memory_store: 256MB }\n${config(port)}\n`)
  let child: ChildProcess | null = null
  let output = ''
  t.after(() => kill())
  await start()

  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    start,
    kill,
    store,
    get output () {
      return output
    },
    get pid () {
      return child?.pid as number
    },

    /** Of a stream, those of one subject. */
    async purge (stream: string, filter: string) {
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

    /** `signal`: such as SIGSTOP */
    signal: (signal: NodeJS.Signals) => child?.kill(signal)
  }

  async function start () {
    child = spawn(PROGRAM as string, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      output += text
    })
    await until(() => isOpen(port), 'the server of NATS to listen').catch((error) => {
      throw new Error(`${error.message}: ${output.slice(-2000)}`, { cause: error })
    })
  }

  /** `signal`: SIGTERM lets it write what it has in memory */
  async function kill (signal: NodeJS.Signals = 'SIGKILL') {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
}

/**
 * Three servers that are one, each of which can be cut off from the others: they reach each other through the test
 * alone.
 */
export async function startNatsCluster (t: Pick<TestContext, 'after'>) {
  const count = 3
  const ports = await Promise.all(Array.from({ length: count }, freePort))
  const links = await Promise.all(
    Array.from({ length: count * count }, (_, index) => createLink(t, { to: ports[index % count] }))
  )
  const servers = []
  for (let index = 0; index < count; index++) {
    const routes = links.slice(index * count, (index + 1) * count).filter((_, other) => other !== index).map((
      { port }
    ) => `nats-route://127.0.0.1:${port}`)
    servers.push(startNats(t, {
      // What they would tell each other of their addresses is where nobody answers.
      config: () =>
        `cluster { name: three, listen: "127.0.0.1:${
          ports[index]
        }", advertise: "127.0.0.1:1", no_advertise: true, routes: ${JSON.stringify(routes)} }`
    }))
  }
  const all = await Promise.all(servers)
  /** Nothing, while its servers agree on a leader. */
  const clusterOf = async (stream: string): Promise<Partial<ClusterInfo>> => {
    const connection = await connect({ servers: all[0].url })
    try {
      return (await (await jetstreamManager(connection)).streams.info(stream)).cluster ?? {}
    } catch {
      return {}
    } finally {
      await connection.close()
    }
  }
  const linksOf = (index: number) => links.filter((_, at) => Math.floor(at / count) === index || at % count === index)
  return {
    servers: all,
    urls: all.map(({ url }) => url),

    /** @returns who leads it, while all are there */
    async leaderOf (stream: string): Promise<Nats> {
      let found: Nats | undefined
      await until(async () => {
        const { leader } = await clusterOf(stream)
        found = all.find(({ port }) => leader === `nats-${port}`)
        return found !== undefined
      }, `a leader of ${stream}`)
      return found as unknown as Nats
    },

    /** Once all servers have all of a stream. */
    untilWhole: (stream: string) =>
      until(async () => {
        const { leader, replicas = [] } = await clusterOf(stream)
        return leader !== undefined && replicas.length === count - 1 && replicas.every(({ current }) => current)
      }, `all of ${stream} on all servers`),

    /** `index`: one of them is alone from now on */
    cut: (index: number) => linksOf(index).forEach((link) => link.cut()),
    mend: (index: number) => linksOf(index).forEach((link) => link.mend())
  }
}

/** A way to a port of this machine that can be cut, and on which everything can take its time. */
export async function createLink (t: Pick<TestContext, 'after'>,
  { to, delayMs = 0 }: { to: number, delayMs?: number })
{
  const sockets: Set<net.Socket> = new Set()
  let isCut = false
  let nonsense: string | null = null
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
        whenDue(() => {
          if (!other.destroyed) other.write(data)
        })
      })
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        whenDue(() => other.destroySoon())
      })

      /** `work`: after all that is on its way */
      function whenDue (work: () => void) {
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
  const { port } = server.address() as net.AddressInfo
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    /** Both ends of each connection. */
    get sockets () {
      return sockets.size
    },
    cut () {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    mend () {
      isCut = false
    },
    /** `text`: what everybody who connects hears, and nothing else */
    babble (text: string) {
      nonsense = text
    },
    slow (ms: number) {
      delay = ms
    }
  }
}

async function isOpen (port: number) {
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
