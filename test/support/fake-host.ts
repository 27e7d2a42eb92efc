import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { json } from 'node:stream/consumers'
import path from 'node:path'
import { didYouMean } from '../../server/config/nearest.ts'
import { registerDeck, withdrawDeck } from '../../server/system/running-decks.ts'
import { startAdmin, TOKEN, type Admin } from './admin.ts'
import { runCliHere } from './cli-here.ts'
import { tempFolder } from './folder.ts'
import type { TestContext } from 'node:test'
import type { ChildProcess } from 'node:child_process'
import type { AddressInfo } from 'node:net'
import type { AppView } from '../../server/api/apps.ts'
import type { AppOrder } from '../../server/config/orders.ts'
import type { Seen } from './event-log.ts'

/** to add an app, or to upgrade the host */
type Order = Seen<AppOrder> & { type?: string }
export type FakeHost = Awaited<ReturnType<typeof startFakeHost>>
/** `admin`: null unless it runs */
type App = { view: AppView, admin: Admin | null }
/** what becomes of an app that is started, and of its deck; without it, it runs */
type Start = { view?: Partial<AppView>, deck?: object }

/** Which states have no pages. */
const CLOSED = ['waiting', 'stopped', 'failed']

/**
 * A host without processes, which answers as a host does. Behind each app that runs is a real admin port over a deck
 * without processes. `apps`: by name, which run unless they say otherwise.
 */
export async function startFakeHost (t: TestContext, apps: Record<string, Partial<AppView>> = {}) {
  const folder = tempFolder()
  const env = { CLUSTERDECK_HOST_DIR: folder, CLUSTERDECK_RUNTIME_DIR: path.join(tempFolder(), 'running') }
  const known: Map<string, App> = new Map()
  /** the orders that have come, oldest first */
  const orders: Order[] = []
  /** what has changed something, oldest first */
  const calls: string[] = []
  /** by name */
  const starts: Map<string, Start> = new Map()
  /** What it says of itself, one after the other; the last one stays. */
  let abouts: [object, ...object[]] = [{}]
  let played: ChildProcess | null = null
  let connections = 0
  const server = http.createServer(answer).on('connection', () => connections++)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)))
  t.after(() => close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  announce(folder, { adminUrl: url })
  writeFileSync(path.join(folder, 'admin.token'), TOKEN, { mode: 0o600 })
  for (const [name, fields] of Object.entries(apps)) await addApp(name, fields)

  return {
    url,
    folder,
    env,
    orders,
    calls,
    /** How many it has got. */
    connections: () => connections,
    close,
    /** Says that it is another process, which it ends when it is stopped. */
    playFor (child: ChildProcess) {
      announce(folder, { adminUrl: url, pid: child.pid })
      played = child
    },
    add: addApp,
    view: (name: string) => known.get(name)?.view,
    deck: (name: string) => known.get(name)!.admin!.deck,
    whenStarted: (name: string, start: Start) => starts.set(name, start),
    change,
    /** `next`: what it says of itself from now on, one after the other */
    changeAbout (...next: [object, ...object[]]) {
      abouts = next
    },
    /** `line`: words, separated by blanks */
    cli: (line: string, place: { cwd?: string, env?: Record<string, string | undefined> } = {}) =>
      runCliHere(line.split(' ').filter(Boolean), { cwd: place.cwd ?? tempFolder(), env: { ...env, ...place.env } })
  }

  /** `isSilent`: without a word, as by SIGKILL */
  function close ({ isSilent = false }: { isSilent?: boolean } = {}) {
    server.close()
    server.closeAllConnections()
    if (!isSilent) rmSync(path.join(folder, 'master.json'), { force: true })
  }

  async function addApp (name: string, fields: Partial<AppView>) {
    const cwd = fields.cwd ?? tempFolder()
    const dataDir = fields.dataDir ?? path.join(cwd, '.clusterdeck')
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const view = { name, state: 'starting' as const, reason: null, isRetried: false, nextTryAt: null,
      entry: path.join(cwd, 'app.js'), cwd, configFile: null, dataDir, path: `/apps/${name}`, startedAt: null,
      health: null, workers: null, cpu: null, memoryBytes: null, requestsPerSecond: null, p99Ms: null, restarts: null,
      openCrashes: null, release: null, lastDeploy: null, addresses: [] }
    known.set(name, { view, admin: null })
    await change(name, { state: 'running', ...fields })
  }

  async function change (name: string, fields: Partial<AppView>) {
    const app = known.get(name) as App
    const { view } = app
    const next = { ...view, ...fields }
    const dataDir = String(next.dataDir)
    if (CLOSED.includes(next.state)) {
      app.admin = null
      Object.assign(view, fields, { startedAt: null, health: null, workers: null, addresses: [] })
      rmSync(path.join(dataDir, 'master.json'), { force: true })
      withdrawDeck({ dataDir, master: { pid: process.pid, startTime: null } }, env)
      return
    }
    app.admin ??= await startAdmin(t)
    Object.assign(view, { startedAt: '2026-01-01T00:00:00.000Z',
      health: { tone: 'ok', text: 'All 2 workers are ready', hint: '' }, workers: { ready: 2, desired: 2 }, cpu: 1.5,
      memoryBytes: 64 * 1024 * 1024, requestsPerSecond: 12, p99Ms: 8, restarts: 0, openCrashes: 0, release: 'r1',
      addresses: ['http://localhost:3000'] }, fields)
    const adminUrl = `${url}${view.path}`
    announce(dataDir, { adminUrl, host: folder })
    registerDeck({ name, entry: String(view.entry), cwd: view.cwd, dataDir, configFile: null, adminUrl,
      fingerprint: null, version: '0.1.0', startedAt: String(view.startedAt),
      master: { pid: process.pid, startTime: null }, keeper: null }, env)
  }

  async function answer (req: http.IncomingMessage, res: http.ServerResponse) {
    const { pathname, search } = new URL(String(req.url), 'http://host')
    if (pathname === '/healthz') return res.end()
    // As the rewrite of a host has it.
    const [, name, rest] =
      /^(?:\/apps\/([^/]+))(\/.*)$/.exec(
        pathname.replace(/^\/api\/v1(\/apps\/[^/]+)\/(?!(?:start|stop)$)/, '$1/api/v1/')
      ) ?? []
    if (name !== undefined) return passOn(name, `${rest}${search}`, req, res)
    if (req.headers.authorization !== `Bearer ${TOKEN}`) return refuse(res, 401, 'unauthenticated', 'Send the token')
    if (req.method !== 'GET') calls.push(`${req.method} ${pathname}${search}`)
    const [, called, action] = /^\/api\/v1\/apps\/([^/]+)(?:\/(start|stop))?$/.exec(pathname) ?? []
    const app = known.get(called)
    if (called !== undefined && !app)
      return refuse(res, 404, 'not-found',
        `no app is called ${JSON.stringify(called)}${didYouMean(called, known.keys())}`)
    if (req.method === 'GET' && pathname === '/api/v1/apps')
      return say(res, 200, {
        items: [...known.values()].map(({ view }) => view).sort((one, other) => one.name < other.name ? -1 : 1)
      })
    if (req.method === 'GET' && pathname === '/api/v1/host')
      return say(res, 200, { pid: process.pid, keeperPid: null, version: '0.1.0', nodeVersion: process.version,
        startedAt: '2026-01-01T00:00:00.000Z', folder, apps: known.size, upgrade: null, upgradeFailure: null,
        ...nextAbout() })
    if (req.method === 'GET' && pathname === '/api/v1/host/events')
      return say(res, 200, {
        items: [{ id: 7, at: '2026-01-01T00:00:00.000Z', type: 'job.failed', app: 'mail', slot: null, worker: null,
          release: null, cause: null, code: null, signal: null, actor: null, message: search }],
        next: null
      })
    if (req.method === 'POST' && pathname === '/api/v1/apps')
      return await takeOrder(await json(req) as Order, res, search.includes('start=false'))
    if (req.method === 'POST' && pathname === '/api/v1/host/upgrade') {
      orders.push(Object.assign({ type: 'upgrade-host' }, await json(req) as Order))
      return say(res, 202, { startedAt: '2026-01-01T00:00:00.000Z', actor: 'api', note: null })
    }
    if (req.method === 'POST' && pathname === '/api/v1/host/stop') {
      say(res, 202, {})
      played?.kill()
      return close()
    }
    if (!app) return refuse(res, 404, 'not-found', `no ${pathname}`)
    if (req.method === 'DELETE') {
      await change(called, { state: 'stopped' })
      known.delete(called)
      return say(res, 202, app.view)
    }
    if (action === 'start') return await startApp(called, res)
    if (action === 'stop') {
      const isNew = app.view.state !== 'stopped'
      if (isNew) await change(called, { state: 'stopped', reason: null })
      return say(res, isNew ? 202 : 200, app.view)
    }
    say(res, 200, app.view)
  }

  function nextAbout (): object {
    const [about, next, ...others] = abouts
    if (next) abouts = [next, ...others]
    return about
  }

  async function takeOrder (order: Order, res: http.ServerResponse, isIdle: boolean) {
    orders.push(order)
    const name = order.name ?? order.app ?? path.basename(order.cwd)
    if (known.has(name)) {
      if (known.get(name)?.view.cwd !== order.cwd)
        return refuse(res, 409, 'name-taken',
          `name: expected a name that no app of this host has, received ${JSON.stringify(name)}`)
      if (isIdle) return say(res, 200, { ...known.get(name)?.view, notApplied: [] })
      return await startApp(name, res)
    }
    await addApp(name, { cwd: order.cwd, entry: (order.flags.entry as string | undefined) ?? null, state: 'stopped' })
    if (isIdle) return say(res, 201, { ...known.get(name)?.view, notApplied: [] })
    await startApp(name, res, 201)
  }

  async function startApp (name: string, res: http.ServerResponse, status: number = 202) {
    const app = known.get(name) as App
    if (!CLOSED.includes(app.view.state)) return say(res, 200, { ...app.view, notApplied: [] })
    const { view, deck } = starts.get(name) ?? {}
    await change(name, { state: 'running', reason: null, ...view })
    if (deck) app.admin?.deck.set(deck)
    say(res, status, { ...app.view, notApplied: [] })
  }

  function passOn (name: string, where: string, req: http.IncomingMessage, res: http.ServerResponse) {
    const app = known.get(name)
    if (!app) return refuse(res, 404, 'not-found', `no app is called ${JSON.stringify(name)}`)
    if (app.admin === null)
      return refuse(res, 409, 'app-not-running',
        `${name} is ${app.view.state}: POST /api/v1/apps/${name}/start starts it`)
    const { port } = app.admin
    const sent = http.request({ port, host: '127.0.0.1', path: where, method: req.method,
      headers: { ...req.headers, host: `127.0.0.1:${port}` } }, (response) => {
      res.writeHead(Number(response.statusCode), response.headers)
      response.pipe(res)
    })
    sent.on('error', () => res.destroy())
    req.pipe(sent)
    res.on('close', () => sent.destroy())
  }
}

function announce (folder: string, fields: object) {
  writeFileSync(path.join(folder, 'master.json'),
    JSON.stringify({ pid: process.pid, startTime: null, keeper: null, startedAt: '2026-01-01T00:00:00.000Z',
      ...fields }), { mode: 0o600 })
}

function say (res: http.ServerResponse, status: number, body: unknown) {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function refuse (res: http.ServerResponse, status: number, code: string, detail: string) {
  res.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify({ status, code, detail }))
}
