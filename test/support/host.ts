import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { CLI, type Launch, type TestOwner } from './deck.ts'
import { tempFolder } from './folder.ts'
import { untilFound } from './until.ts'
import type { Readable } from 'node:stream'
import type { AppView } from '../../server/host/api-apps.ts'
import type { Host as HostView } from '../../server/host/api.ts'
import type { AnswerOrProblem, AnswerTo, Problem } from './answers.ts'

const PATIENCE_MS = 60_000

export type Host = Awaited<ReturnType<typeof startHost>>
type What<M extends string> = { method?: M, body?: object, bearer?: string }

/**
 * Runs `clusterdeck host` as a service manager would, in processes of its own. It ends with the test, and all of its
 * apps. `folder`: of a host before.
 */
export async function startHost (t: TestOwner,
  { folder = tempFolder(), flags = [], env = {}, launch: { through = [], descriptors = [], env: more } = {} }: {
    folder?: string,
    flags?: string[],
    env?: Record<string, string>,
    launch?: Pick<Launch, 'through' | 'descriptors' | 'env'>
  } = {})
{
  const [program, ...words] = [...through, process.execPath, CLI, 'host', '--admin-port', '0', ...flags]
  const child = spawn(program, words, { env: { ...process.env, CLUSTERDECK_HOST_DIR: folder, ...more, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...descriptors] }) as ChildProcessByStdio<null, Readable, Readable>
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  const exited = once(child, 'exit')
  let stopping: Promise<unknown> | undefined
  t.after(() => (stopping ??= stop()))
  const about: HostView = await seen(() => orNull(request('/host')), 'the host')

  return {
    folder,
    child,
    exited,
    /** Of the first master. */
    about,
    api,
    request,
    post: <P extends string>(route: P, body?: object) => request(route, { method: 'POST', body }),
    put: <P extends string>(route: P, body: object) => request(route, { method: 'PUT', body }),
    stop: () => (stopping ??= stop()),

    add: (order: object) => request('/apps', { method: 'POST', body: order }),

    /** Has it run a program of that code. `order`: what is to be otherwise. Returns the folder of the app. */
    async addCode (name: string, code: string, order: object = {}): Promise<string> {
      const cwd = tempFolder()
      writeFileSync(path.join(cwd, 'app.js'), code)
      await request('/apps', { method: 'POST',
        body: { name, cwd, flags: { entry: 'app.js', workers: '1' }, env: { PATH: process.env.PATH }, ...order } })
      return cwd
    },

    untilApp: (name: string, isIt: (app: AppView) => unknown) =>
      seen(async () => {
        const app = await orNull(request(`/apps/${name}`))
        return app !== null && isIt(app) ? app : null
      }, name),

    untilApps: (areThey: (apps: Record<string, AppView>) => unknown) =>
      seen(async () => {
        const apps = await orNull(appsByName())
        return apps !== null && areThey(apps) ? apps : null
      }, 'its apps'),

    /** `pid`: of the master before. Returns the next one. */
    untilNext: (pid: number): Promise<HostView> =>
      seen(async () => {
        const next = await orNull(request('/host'))
        return next?.pid === pid ? null : next
      }, 'the next master')
  }

  async function appsByName (): Promise<Record<string, AppView>> {
    const { items } = await request('/apps')
    return Object.fromEntries(items.map((app) => [app.name, app]))
  }

  /** `route`: below /api/v1; `bearer`: a token of somebody else */
  async function api<T = never, P extends string = string, M extends string = string> (route: P,
    { method, body, bearer }: What<M> = {})
  {
    const { adminUrl } = JSON.parse(readFileSync(path.join(folder, 'master.json'), 'utf8'))
    const token = bearer ?? readFileSync(path.join(folder, 'admin.token'), 'utf8').trim()
    // A kept connection may be one that a master which was killed has left.
    const headers = { authorization: `Bearer ${token}`, connection: 'close',
      ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${adminUrl}/api/v1${route}`, { method, headers, body: body && JSON.stringify(body) })
    return { status: response.status, body: await response.json() as AnswerOrProblem<M, P, T> }
  }

  /** Returns what it is answered @throws where that is a refusal */
  async function request<T = never, P extends string = string, M extends string = string> (route: P,
    what?: What<M>): Promise<AnswerTo<M, P, T>>
  {
    const { status, body } = await api<T, P, M>(route, what)
    if (status < 400) return body as AnswerTo<M, P, T>
    const { detail, code } = body as Problem
    throw Object.assign(new Error(`${status}: ${detail}`), { code })
  }

  function seen<T> (look: () => Promise<T | null>, what: string): Promise<T> {
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

/** Between two masters nobody answers. */
async function orNull<T> (answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch {
    return null
  }
}
