import { existsSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.ts'
import { hostFolder } from '../system/host-folder.ts'
import { keepConnections } from '../system/http.ts'
import { isAlive } from '../system/process-identity.ts'
import { readAnnounced, readToken } from './announced.ts'
import { createApiClient, waitUntil, type ApiClient, type Deadline } from './api-client.ts'
import { ANSWER_WITHIN_MS } from './reachable.ts'
import type { Agent } from 'node:http'
import type { AppView } from '../host/api-apps.ts'
import type { Master } from './find-master.ts'

type Env = Record<string, string | undefined>

const ORDER_WITHIN_MS = 30_000

/**
 * Finds the host of this user, and its token. Returns null: none runs.
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
export function findHost (env: Env): Master | null {
  const folder = hostFolder(env)
  const announced = readAnnounced({ folder, isNamed: Boolean(env.CLUSTERDECK_HOST_DIR) }, env)
  if (announced === null || !announced.recipient.processes.some(isAlive)) return null
  const { url, fingerprint, recipient } = announced
  return { url, token: readToken([folder, announced.folder]), fingerprint, recipient, dataDir: folder, app: null }
}

/** Returns the host of this user @throws {DeckError} no-master: none runs; else as findHost() does */
export function expectHost (env: Env): Master {
  const host = findHost(env)
  if (host === null) throw new DeckError('no-master', 'no host of this user runs')
  return host
}

export function callHost (host: Master,
  { env, timeoutMs = ANSWER_WITHIN_MS, signal }: { env: Env, timeoutMs?: number, signal?: AbortSignal }): ApiClient
{
  const findAgain = async () => {
    const found = findHost(env)
    if (found) return found
    throw new DeckError('no-master', `the host of ${host.dataDir} has ended`)
  }
  return createApiClient(host, { timeoutMs, signal, findAgain })
}

export type LastingHost = ReturnType<typeof lastingHost>

/** Calls a host for as long as it runs, whatever master it has, and however long that is. */
export function lastingHost (first: Master, env: Env): Pick<ApiClient, 'get' | 'post' | 'stream'> {
  let kept: { url: string, pid?: number, agent: Agent } | undefined
  const call = (timeoutMs = ANSWER_WITHIN_MS) => callHost(withAgent(findHost(env) ?? first), { env, timeoutMs })
  return {
    get: async (path) => await call().get(path),
    // An order may have a config file run.
    post: async (path, body) => await call(ORDER_WITHIN_MS).post(path, body),
    async *stream (path, from) {
      yield* call().stream(path, from)
    }
  }

  /** Each master gets connections of its own. */
  function withAgent (host: Master) {
    const pid = host.recipient?.processes[0].pid
    if (kept?.url !== host.url || kept.pid !== pid)
      kept = { url: host.url, pid, agent: keepConnections(host.url, host) }
    return { ...host, agent: kept.agent }
  }
}

/** @returns of the host, by name */
export async function listApps (host: Pick<ApiClient, 'get'>): Promise<AppView[]> {
  return (await host.get<{ items: AppView[] }>('/apps')).items
}

/** Tells whether it has stopped its apps, where it has ended; null: it runs */
export function hasHostStopped (env: Env): boolean | null {
  if (findHost(env) !== null) return null
  // One that ends as it should withdraws what it has announced.
  return !existsSync(path.join(hostFolder(env), 'master.json'))
}

/**
 * Has a host stop an app, and waits for that, which may be the end of the host too: of one that was started for it,
 * with its last app. `onGoing`: it has workers that finish their requests. Returns the app as it was seen last.
 * @throws {DeckError} timed-out; no-master: the host has ended without stopping it
 */
export async function stopInHost (name: string, host: Pick<ApiClient, 'get' | 'post'> & Deadline, env: Env,
  onGoing: () => void = () => {}): Promise<AppView>
{
  let last = await host.post<AppView>(`/apps/${name}/stop`)
  if (last.state !== 'stopped') onGoing()
  await waitUntil(async () => {
    try {
      last = await host.get<AppView>(`/apps/${name}`)
      return last.state === 'stopped'
    } catch (error) {
      const hasStopped = error instanceof DeckError && error.code === 'no-master' ? hasHostStopped(env) : false
      if (hasStopped === false) throw error
      return hasStopped === true
    }
  }, host)
  return last
}

/** Tells whether somebody wants it to run */
export function isWanted ({ state }: Pick<AppView, 'state'>): boolean {
  return ['waiting', 'starting', 'running'].includes(state)
}

/** Tells whether it has workers, pages, and calls of its own */
export function isOpen ({ state }: { state: string }): boolean {
  return ['starting', 'running', 'stopping'].includes(state)
}
