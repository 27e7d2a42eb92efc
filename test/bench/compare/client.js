import { execFile } from 'node:child_process'
import http from 'node:http'
import { createRequire } from 'node:module'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'

const AUTOCANNON = createRequire(import.meta.url).resolve('autocannon')
const run = promisify(execFile)
const PATIENCE_MS = 60_000
/** Who has no answer by then has hung. */
export const HUNG_MS = 3000
const LOOK_AGAIN_MS = 10
const LISTENS_AGAIN_MS = 3
/** Whoever hangs is not waited for. */
const BURST_MS = 100

/** @typedef {{ perSecond: number, total: number, failed: number, p50Ms: number, p99Ms: number }} Load */

/**
 * Requests from a process of its own.
 * @param {number} port @param {{ path?: string, connections: number, seconds: number, isClosing?: boolean }} how `isClosing`: a connection per request
 * @returns {Promise<Load>}
 */
export async function load (port, { path = '/hello', connections, seconds, isClosing = false }) {
  const headers = isClosing ? ['-H', 'connection=close'] : []
  const { stdout } = await run(process.execPath, [AUTOCANNON, '-j', '-n', '-c', String(connections), '-d', String(seconds), ...headers, `http://127.0.0.1:${port}${path}`], { maxBuffer: 1e7 })
  const { requests, errors, non2xx, latency, duration } = JSON.parse(stdout)
  return { perSecond: requests.total / duration, total: requests.total, failed: errors + non2xx, p50Ms: latency.p50, p99Ms: latency.p99 }
}

/**
 * Requests of a client on a core of its own that is faster than any server here: wrk, or else autocannon.
 * @param {number} port @param {{ connections: number, seconds: number }} how
 * @returns {Promise<number>} how many were answered
 */
export async function saturate (port, { connections, seconds }) {
  try {
    const { stdout } = await run('taskset', ['-c', '0', 'wrk', '-t1', `-c${connections}`, `-d${seconds}s`, `http://127.0.0.1:${port}/hello`])
    return Number(/(\d+) requests in/.exec(stdout)?.[1])
  } catch {
    // ENOENT: one of them is not installed.
    return (await load(port, { connections, seconds })).total
  }
}

/** Gives processes a core of their own, where there is a program that can. @param {number[]} pids */
export async function pin (pids) {
  for (const pid of pids) await run('taskset', ['-acp', '1', String(pid)]).catch(() => {})
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

/** @param {number} port @returns {Promise<void>} resolves with the first answer there; looking costs next to nothing */
export async function untilAnswer (port) {
  while (!await isAnswered(port)) await wait(LISTENS_AGAIN_MS)
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
