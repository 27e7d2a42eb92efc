import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.js'
import { hostFolder } from '../system/host-folder.js'
import { keepConnections } from '../system/http.js'
import { isAlive } from '../system/process-identity.js'
import { readAnnounced, readToken } from './announced.js'
import { createApiClient } from './api-client.js'
import { ANSWER_WITHIN_MS } from './reachable.js'
import { waitUntil } from './wait-until.js'

/** @typedef {import('../api/apps.js').AppView} AppView */
/** @typedef {Record<string, string | undefined>} Env */

const ORDER_WITHIN_MS = 30_000

/**
 * Finds the host of this user, and its token.
 * @param {Env} env
 * @returns {import('./find-master.js').Master | null} null: none runs
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
export function findHost (env) {
  const folder = hostFolder(env)
  const announced = readAnnounced({ folder, isNamed: Boolean(env.CLUSTERDECK_HOST_DIR) }, env)
  if (announced === null || !announced.recipient.processes.some(isAlive)) return null
  const { url, fingerprint, recipient } = announced
  return { url, token: readToken([folder, announced.folder]), fingerprint, recipient, dataDir: folder, app: null }
}

/**
 * @param {Env} env
 * @returns {import('./find-master.js').Master} the host of this user
 * @throws {DeckError} no-master: none runs; else as findHost() does
 */
export function expectHost (env) {
  const host = findHost(env)
  if (host === null) throw new DeckError('no-master', 'no host of this user runs')
  return host
}

/**
 * @param {import('./find-master.js').Master} host @param {{ env: Env, timeoutMs?: number, signal?: AbortSignal }} how
 * @returns {import('./api-client.js').ApiClient}
 */
export function callHost (host, { env, timeoutMs = ANSWER_WITHIN_MS, signal }) {
  const findAgain = async () => {
    const found = findHost(env)
    if (found) return found
    throw new DeckError('no-master', `the host of ${host.dataDir} has ended`)
  }
  return createApiClient(host, { timeoutMs, signal, findAgain })
}

/**
 * Calls a host for as long as it runs, whatever master it has, and however long that is.
 * @typedef {ReturnType<typeof lastingHost>} LastingHost
 *
 * @param {import('./find-master.js').Master} first @param {Env} env
 * @returns {Pick<import('./api-client.js').ApiClient, 'get' | 'post' | 'stream'>}
 */
export function lastingHost (first, env) {
  /** @type {{ url: string, pid?: number, agent: import('node:http').Agent } | undefined} */
  let kept
  const call = (timeoutMs = ANSWER_WITHIN_MS) => callHost(withAgent(findHost(env) ?? first), { env, timeoutMs })
  return {
    get: async (path) => await call().get(path),
    // An order may have a config file run.
    post: async (path, body) => await call(ORDER_WITHIN_MS).post(path, body),
    async * stream (path, from) { yield * call().stream(path, from) }
  }

  /** Each master gets connections of its own. @param {import('./find-master.js').Master} host */
  function withAgent (host) {
    const pid = host.recipient?.processes[0].pid
    if (kept?.url !== host.url || kept.pid !== pid) kept = { url: host.url, pid, agent: keepConnections(host.url, host) }
    return { ...host, agent: kept.agent }
  }
}

/**
 * @param {Env} env
 * @returns {Promise<AppView[]>} by name; none where no host runs
 * @throws {DeckError} data-dir-unusable, unauthenticated, no-master, timed-out: it does not answer
 */
export async function appsOfHost (env) {
  const host = findHost(env)
  return host === null ? [] : (await callHost(host, { env }).get('/apps')).items
}

/** @param {Env} env @returns {boolean | null} whether it has stopped its apps, where it has ended; null: it runs */
export function hasHostStopped (env) {
  if (findHost(env) !== null) return null
  // One that ends as it should withdraws what it has announced.
  return !existsSync(path.join(hostFolder(env), 'master.json'))
}

/**
 * Waits until an app has stopped, which may be the end of its host too: of one that was started for it, with its last app.
 * @param {string} name @param {{ host: Pick<import('./api-client.js').ApiClient, 'get'>, env: Env, signal: AbortSignal, timeoutMs: number }} how
 * @returns {Promise<AppView | null>} as it was seen last
 * @throws {DeckError} timed-out; no-master: the host has ended without stopping it
 */
export async function untilStopped (name, { host, env, signal, timeoutMs }) {
  /** @type {AppView | null} */
  let last = null
  await waitUntil(async () => {
    try {
      last = /** @type {AppView} */ (await host.get(`/apps/${name}`))
      return last.state === 'stopped'
    } catch (error) {
      const hasStopped = error instanceof DeckError && error.code === 'no-master' ? hasHostStopped(env) : false
      if (hasStopped === false) throw error
      return hasStopped === true
    }
  }, signal, timeoutMs)
  return last
}

/** @param {Pick<AppView, 'state'>} app @returns {boolean} whether somebody wants it to run */
export function isWanted ({ state }) {
  return ['waiting', 'starting', 'running'].includes(state)
}

/** @param {Pick<AppView, 'state'>} app @returns {boolean} whether it has workers, pages, and calls of its own */
export function isOpen ({ state }) {
  return ['starting', 'running', 'stopping'].includes(state)
}

/** @param {Pick<AppView, 'name' | 'state' | 'reason'>} app */
export function notRunning ({ name, state, reason }) {
  const text = `${name} ${state === 'failed' ? 'has' : 'is'} ${state}`
  return new DeckError('app-not-running', `${reason === null ? text : `${text}: ${reason}`} (clusterdeck start ${name})`)
}
