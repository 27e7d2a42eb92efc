import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { createRequire } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createOwner } from '../../support/owner.ts'

const AUTOCANNON = createRequire(import.meta.url).resolve('autocannon')
const OPEN_LOOP = path.join(import.meta.dirname, 'open-loop.ts')
const CLIENT_CORE = '0'
/** One is enough for a worker alone. */
export const ONE_CORE = '1'
const SERVER_CORES = os.availableParallelism() > 2 ? `1-${os.availableParallelism() - 1}` : ONE_CORE
const { run } = createOwner()
const PATIENCE_MS = 60_000
/** Who has no answer by then has hung. */
export const HUNG_MS = 3000
const LOOK_AGAIN_MS = 10
const LISTENS_AGAIN_MS = 3
/** Whoever hangs is not waited for. */
const BURST_MS = 100

/** of what was answered; `p99MsOfAll`: what failed counts as the slowest answer */
type Load = { total: number, failed: number, p50Ms: number, p99Ms: number, p99MsOfAll: number }

/**
 * Requests at a fixed rate by a process of its own, until it is told to end. `isBusy`: it has a core of its own.
 */
export function loadAtRate (port: number,
  { path = '/hello', connections = 32, perSecond, isClosing = false, isBusy = false }: { path?: string,
    connections?: number, perSecond: number, isClosing?: boolean, isBusy?: boolean })
{
  const child = fork(OPEN_LOOP, [JSON.stringify({ port, path, connections, perSecond, isClosing, isBusy })], {
    execArgv: []
  })
  const pinned = isBusy ? run('taskset', ['-acp', CLIENT_CORE, String(child.pid)]).catch(() => {}) : null
  return {
    /** @returns since the last time */
    take: (): Promise<Load> => tell('take'),
    /** @returns since the last time */
    end: (): Promise<Load> => tell('end')
  }

  async function tell (word: 'take' | 'end'): Promise<Load> {
    await pinned
    child.send(word)
    const [load] = await once(child, 'message')
    return load
  }
}

/**
 * As many requests as are answered, for a client that is on a core of its own and faster than any server here: wrk, or
 * else autocannon. Returns how many were answered.
 */
export async function saturate (port: number,
  { path, connections, seconds }: { path: string, connections: number, seconds: number }): Promise<number>
{
  const url = `http://127.0.0.1:${port}${path}`
  try {
    const { stdout } = await run('taskset', ['-c', CLIENT_CORE, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, url])
    return Number(/(\d+) requests in/.exec(stdout)?.[1])
  } catch {
    // ENOENT: one of them is not installed.
    const { stdout } = await run(process.execPath, [AUTOCANNON, '-j', '-n', '-c', String(connections), '-d',
      String(seconds), url], { maxBuffer: 1e7 })
    return JSON.parse(stdout).requests.total
  }
}

/** Gives servers the cores that the client leaves, where there is a program that can. */
export async function pin (pids: number[], cores: string = SERVER_CORES) {
  for (const pid of pids) await run('taskset', ['-acp', cores, String(pid)]).catch(() => {})
}

/** @returns what answers on a fresh connection */
export function ask (port: number, path: string = '/who', patienceMs: number = HUNG_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get({ port, path, host: '127.0.0.1', agent: false, signal: AbortSignal.timeout(patienceMs) },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => {
          text += part
        }).on('end', () => resolve(text)).on('error', reject)
      })
    request.on('error', reject)
  })
}

/**
 * @param over nobody waits any longer
 * @returns resolves with the first answer there; looking costs next to nothing
 */
export async function untilAnswer (port: number, over?: AbortSignal): Promise<void> {
  while (!over?.aborted && !await isAnswered(port)) await wait(LISTENS_AGAIN_MS)
}

function isAnswered (port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n'))
    socket.on('data', () => resolve(true)).on('error', () => resolve(false)).on('data', () => socket.destroy())
  })
}

/** Asks until that many different workers have answered. `others`: than these. Returns who they are. */
export async function untilAnswered (port: number, count: number,
  { others = [], onFailure = () => {} }: { others?: string[], onFailure?: (error: Error) => void } = {}
): Promise<string[]> {
  const seen = new Set() as Set<string>
  const look = (who: string) => {
    if (!others.includes(who)) seen.add(who)
  }
  for (const endsAt = performance.now() + PATIENCE_MS; seen.size < count; await wait(LOOK_AGAIN_MS)) {
    if (performance.now() > endsAt)
      throw new Error(`${seen.size} of ${count} workers have answered within ${PATIENCE_MS} ms`)
    // One at a time would often be the same, where the fastest wins. But who asks takes from those who are starting.
    const all = Promise.all(Array.from({ length: 2 * count - 1 }, () => ask(port).then(look, onFailure)))
    await Promise.race([all, wait(BURST_MS)])
  }
  return [...seen]
}
