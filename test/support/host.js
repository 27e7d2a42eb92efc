import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { CLI } from './deck.js'
import { tempFolder } from './folder.js'

const PATIENCE_MS = 60_000

/**
 * Runs `clusterdeck host` as a service manager would, in processes of its own. It ends with the test, and all of its apps.
 * @param {import('./deck.js').TestOwner} t
 * @param {{ folder?: string, flags?: string[], env?: Record<string, string | undefined> }} [options]  `folder`: of a host before
 */
export async function startHost (t, { folder = tempFolder(), flags = ['--admin-port', '0'], env = {} } = {}) {
  const child = spawn(process.execPath, [CLI, 'host', ...flags], {
    env: { ...process.env, CLUSTERDECK_HOST_DIR: folder, ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output.text += text })
  const exited = once(child, 'exit')
  /** @type {Promise<unknown> | undefined} */
  let stopping
  t.after(() => (stopping ??= stop()))
  const about = await until(async () => await readOrNull('/host'))

  return {
    folder,
    child,
    exited,
    about,
    output,
    request,
    apps,
    stop: () => (stopping ??= stop()),

    /** @param {object} order */
    add: (order) => request('/apps', { method: 'POST', body: order }),

    /** @param {string} name @param {(app: any) => unknown} isIt */
    untilApp: (name, isIt) => until(async () => {
      const app = await readOrNull(`/apps/${name}`)
      return app !== null && isIt(app) ? app : null
    }),

    /** Waits until each app that is to run has all of its workers. */
    untilAllRun: () => until(async () => {
      const items = await apps().catch(() => null)
      return items?.every((/** @type {any} */ { state, workers }) => state === 'stopped' || (state === 'running' && workers.ready === workers.desired)) ? items : null
    }),

    /** @param {number} pid of the master before @returns {Promise<any>} the next one */
    untilNext: (pid) => until(async () => {
      const next = await readOrNull('/host')
      return next !== null && next.pid !== pid ? next : null
    })
  }

  async function apps () {
    return (await request('/apps')).items
  }

  /** @param {string} route below /api/v1 @param {{ method?: string, body?: object }} [what] @returns {Promise<any>} */
  async function request (route, { method = 'GET', body } = {}) {
    const { adminUrl } = JSON.parse(readFileSync(path.join(folder, 'master.json'), 'utf8'))
    const token = readFileSync(path.join(folder, 'admin.token'), 'utf8').trim()
    const response = await fetch(`${adminUrl}/api/v1${route}`, {
      method, headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }, body: body && JSON.stringify(body)
    })
    const answer = /** @type {any} */ (await response.json())
    if (!response.ok) throw Object.assign(new Error(`${response.status}: ${answer.detail}`), { code: answer.code })
    return answer
  }

  /** Between two masters nobody answers. @param {string} route */
  async function readOrNull (route) {
    try {
      return await request(route)
    } catch {
      return null
    }
  }

  /** @template T @param {() => Promise<T | null>} look @returns {Promise<T>} */
  async function until (look) {
    const end = performance.now() + PATIENCE_MS
    for (;;) {
      const found = await look()
      if (found !== null) return found
      if (child.exitCode !== null || performance.now() > end) throw new Error(`it did not happen (exit code ${child.exitCode}): ${output.text}`)
      await wait(30)
    }
  }

  async function stop () {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGINT'), PATIENCE_MS)
    const [code, signal] = await exited
    clearTimeout(timer)
    return { code, signal }
  }
}
