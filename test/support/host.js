import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { CLI } from './deck.js'
import { tempFolder } from './folder.js'
import { untilFound } from './until.js'

const PATIENCE_MS = 60_000

/** @typedef {Awaited<ReturnType<typeof startHost>>} Host */

/**
 * Runs `clusterdeck host` as a service manager would, in processes of its own. It ends with the test, and all of its apps.
 * @param {import('./deck.js').TestOwner} t
 * @param {{ folder?: string, flags?: string[], env?: Record<string, string> }} [options]  `folder`: of a host before
 */
export async function startHost (t, { folder = tempFolder(), flags = [], env = {} } = {}) {
  const child = spawn(process.execPath, [CLI, 'host', '--admin-port', '0', ...flags], {
    env: { ...process.env, CLUSTERDECK_HOST_DIR: folder, ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text })
  const exited = once(child, 'exit')
  /** @type {Promise<unknown> | undefined} */
  let stopping
  t.after(() => (stopping ??= stop()))
  const about = await seen(() => orNull(request('/host')), 'the host')

  return {
    folder,
    child,
    exited,
    /** Of the first master. */
    about,
    api,
    request,
    stop: () => (stopping ??= stop()),

    /** @param {object} order */
    add: (order) => request('/apps', { method: 'POST', body: order }),

    /** @param {string} name @param {(app: any) => unknown} isIt */
    untilApp: (name, isIt) => seen(async () => {
      const app = await orNull(request(`/apps/${name}`))
      return app !== null && isIt(app) ? app : null
    }, name),

    /** @param {(apps: Record<string, any>) => unknown} areThey */
    untilApps: (areThey) => seen(async () => {
      const apps = await orNull(appsByName())
      return apps !== null && areThey(apps) ? apps : null
    }, 'its apps'),

    /** @param {number} pid of the master before @returns {Promise<any>} the next one */
    untilNext: (pid) => seen(async () => {
      const next = await orNull(request('/host'))
      return next?.pid === pid ? null : next
    }, 'the next master')
  }

  /** @returns {Promise<Record<string, any>>} */
  async function appsByName () {
    const { items } = await request('/apps')
    return Object.fromEntries(items.map((/** @type {any} */ app) => [app.name, app]))
  }

  /** @param {string} route below /api/v1 @param {{ method?: string, body?: object, bearer?: string }} [what] `bearer`: a token of somebody else */
  async function api (route, { method = 'GET', body, bearer } = {}) {
    const { adminUrl } = JSON.parse(readFileSync(path.join(folder, 'master.json'), 'utf8'))
    const token = bearer ?? readFileSync(path.join(folder, 'admin.token'), 'utf8').trim()
    // A kept connection may be one that a master which was killed has left.
    const headers = { authorization: `Bearer ${token}`, connection: 'close', ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${adminUrl}/api/v1${route}`, { method, headers, body: body && JSON.stringify(body) })
    return { status: response.status, body: /** @type {any} */ (await response.json()) }
  }

  /** @param {string} route @param {Parameters<typeof api>[1]} [what] @returns {Promise<any>} what it is answered @throws where that is a refusal */
  async function request (route, what) {
    const { status, body } = await api(route, what)
    if (status >= 400) throw Object.assign(new Error(`${status}: ${body.detail}`), { code: body.code })
    return body
  }

  /** @template T @param {() => Promise<T | null>} look @param {string} what @returns {Promise<T>} */
  function seen (look, what) {
    const lookWhileItRuns = async () => {
      const found = await look()
      if (!found && child.exitCode !== null) throw new Error(`the host has ended with ${child.exitCode}: ${output}`)
      return found
    }
    return untilFound(lookWhileItRuns, () => `${what}: ${output}`, { patienceMs: PATIENCE_MS })
  }

  async function stop () {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGINT'), PATIENCE_MS)
    const [code, signal] = await exited
    clearTimeout(timer)
    return { code, signal }
  }
}

/** Between two masters nobody answers. @template T @param {Promise<T>} answer @returns {Promise<T | null>} */
async function orNull (answer) {
  try {
    return await answer
  } catch {
    return null
  }
}
