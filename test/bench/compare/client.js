import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import { createRequire } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createOwner } from '../../support/owner.js'

const AUTOCANNON = createRequire(import.meta.url).resolve('autocannon')
const OPEN_LOOP = path.join(import.meta.dirname, 'open-loop.js')
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

/** @typedef {{ total: number, failed: number, p50Ms: number, p99Ms: number, p999Ms: number, p99MsOfAll: number }} Load  of what was answered; `p99MsOfAll`: what failed counts as the slowest answer */

/**
 * Requests at a fixed rate by a process of its own, until it is told to end.
 * @param {number} port
 * @param {{ path?: string, connections?: number, perSecond: number, isClosing?: boolean, isBusy?: boolean }} how `isBusy`: it has a core of its own
 */
export function loadAtRate (port, { path = '/hello', connections = 32, perSecond, isClosing = false, isBusy = false }) {
  const child = fork(OPEN_LOOP, [JSON.stringify({ port, path, connections, perSecond, isClosing, isBusy })], { execArgv: [] })
  const pinned = isBusy ? run('taskset', ['-acp', CLIENT_CORE, String(child.pid)]).catch(() => {}) : null
  return {
    /** @returns {Promise<Load>} since the last time */
    take: () => tell('take'),
    /** @returns {Promise<Load>} since the last time */
    end: () => tell('end')
  }

  /** @param {'take' | 'end'} word @returns {Promise<Load>} */
  async function tell (word) {
    await pinned
    child.send(word)
    const [load] = await once(child, 'message')
    return load
  }
}

/**
 * As many requests as are answered, for a client that is on a core of its own and faster than any server here: wrk, or else autocannon.
 * @param {number} port @param {{ path: string, connections: number, seconds: number }} how
 * @returns {Promise<number>} how many were answered
 */
export async function saturate (port, { path, connections, seconds }) {
  const url = `http://127.0.0.1:${port}${path}`
  try {
    const { stdout } = await run('taskset', ['-c', CLIENT_CORE, 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, url])
    return Number(/(\d+) requests in/.exec(stdout)?.[1])
  } catch {
    // ENOENT: one of them is not installed.
    const { stdout } = await run(process.execPath, [AUTOCANNON, '-j', '-n', '-c', String(connections), '-d', String(seconds), url], { maxBuffer: 1e7 })
    return JSON.parse(stdout).requests.total
  }
}

/** Gives servers the cores that the client leaves, where there is a program that can. @param {number[]} pids @param {string} [cores] */
export async function pin (pids, cores = SERVER_CORES) {
  for (const pid of pids) await run('taskset', ['-acp', cores, String(pid)]).catch(() => {})
}

/** @param {number} port @param {string} [path] @param {number} [patienceMs] @returns {Promise<string>} what answers on a fresh connection */
export function ask (port, path = '/who', patienceMs = HUNG_MS) {
  return new Promise((resolve, reject) => {
    const request = http.get({ port, path, host: '127.0.0.1', agent: false, signal: AbortSignal.timeout(patienceMs) }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part) => { text += part }).on('end', () => resolve(text)).on('error', reject)
    })
    request.on('error', reject)
  })
}

/** @param {number} port @param {AbortSignal} [over] nobody waits any longer @returns {Promise<void>} resolves with the first answer there; looking costs next to nothing */
export async function untilAnswer (port, over) {
  while (!over?.aborted && !await isAnswered(port)) await wait(LISTENS_AGAIN_MS)
}

/** @param {number} port @returns {Promise<boolean>} */
function isAnswered (port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n'))
    socket.on('data', () => resolve(true)).on('error', () => resolve(false)).on('data', () => socket.destroy())
  })
}

/**
 * Asks until that many different workers have answered.
 * @param {number} port @param {number} count @param {{ others?: string[], onFailure?: (error: Error) => void }} [how] `others`: than these
 * @returns {Promise<string[]>} who they are
 */
export async function untilAnswered (port, count, { others = [], onFailure = () => {} } = {}) {
  const seen = /** @type {Set<string>} */ (new Set())
  const look = (/** @type {string} */ who) => { if (!others.includes(who)) seen.add(who) }
  for (const endsAt = performance.now() + PATIENCE_MS; seen.size < count; await wait(LOOK_AGAIN_MS)) {
    if (performance.now() > endsAt) throw new Error(`${seen.size} of ${count} workers have answered within ${PATIENCE_MS} ms`)
    // One at a time would often be the same, where the fastest wins. But who asks takes from those who are starting.
    const all = Promise.all(Array.from({ length: 2 * count - 1 }, () => ask(port).then(look, onFailure)))
    await Promise.race([all, wait(BURST_MS)])
  }
  return [...seen]
}
