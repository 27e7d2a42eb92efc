import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { openHistory, type History } from '../../db/history.ts'
import { pastOf } from '../../db/joint-history.ts'
import { logsLeftIn } from '../../server/app/past.ts'
import { createAlerts } from '../../server/alerts/alerts.ts'
import { createNotices } from '../../server/events/notices.ts'
import { DeckError } from '../../server/errors.ts'
import { viewOf } from '../../server/host/app-view.ts'
import { fake } from './fake.ts'
import { createFakeDeck } from './fake-deck.ts'
import { tempFolder } from './folder.ts'
import type { Past } from '../../db/past.ts'
import type { Config } from '../../server/config/config.ts'
import type { HostedApp } from '../../server/host/hosted-app.ts'
import type { Deck } from '../../server/deck.ts'
import type { EventStream } from '../../server/events/stream.ts'
import type { AppView, Apps } from '../../server/host/api-apps.ts'

/** What is behind a port whose host is there for this deck alone. `name`: of its app, in the paths of that port */
export function behindPort (deck: Deck, history: History, name = 'app') {
  const { alerts, notices, events } = deck
  const opened = { deck, history, run: <T>(work: () => T) => work() }
  const view = () => {
    const { app: { entry, cwd } } = deck.snapshot()
    return viewOf(
      fake<HostedApp>({ name, state: 'running', reason: null, isRetried: false, nextTryAt: null, order: { cwd },
        dataDir: `${cwd}/.clusterdeck`, config: fake<Config>({ entry, cwd }), part: { app: { deck } } })
    )
  }
  const apps: Apps = { ...createFakeApps({ names: [], history, events }), only: name, alerts, notices,
    list: () => [view()], view, states: () => [{ name, state: 'running' }], opened: () => opened, identity: () => name }
  return { apps, events, history }
}

/**
 * The apps of a host without processes, for tests of the admin side: each open one is a fake deck over a history file
 * of its own.
 */
type FakeDeck = ReturnType<typeof createFakeDeck>
/** what becomes of an app that is ordered to start, and of its deck; without it, it runs */
type Start = { view?: Partial<AppView>, deck?: Parameters<FakeDeck['set']>[0] }
/** `open`, `closeApp`: as if by itself; `set`: changes what the view says, and tells nobody */
type FakeApps =
  & Apps
  & { lastWords: Past, lastWordsOf: Map<string, Past>,
    orders: { type: string, name: string, actor: string, more?: unknown }[], deck: (name: string) => FakeDeck,
    whenStarted: (name: string, start: Start) => void, open: (name: string, changes?: Partial<AppView>) => void,
    closeApp: (name: string, changes?: Partial<AppView>) => void,
    set: (name: string, changes: Partial<AppView>) => void, closeAll: () => void }

/** `fleet`: of the host, which joins one where this is given; `history`, `events`: of the host itself */
export function createFakeApps (
  { names, now = Date.now, wall, fleet, history, events }: { names: readonly string[], now?: () => number,
    wall?: () => number, fleet?: Apps['fleet'], history: History, events: EventStream }
): FakeApps {
  const folder = tempFolder()
  const all: Map<string,
    { changes: Partial<AppView>, id: string,
      opened: { deck: FakeDeck, history: History, run: <T>(work: () => T) => T } | null }> = new Map()
  const handlers: Set<() => void> = new Set()
  const starts: Map<string, Start> = new Map()
  const dataDirs: Map<string, string> = new Map()
  let count = 0
  const lastWords: Past = { events: [], crashes: [], lines: [] }
  const lastWordsOf: FakeApps['lastWordsOf'] = new Map()
  const orders: FakeApps['orders'] = []
  for (const name of names) openApp(name)

  const apps: FakeApps = { only: null, orders, adoptions: { async begin ({ name = null, actor }) {
    orders.push({ type: 'adopt', name: String(name), actor })
    return { view: { id: 1, state: 'waiting', app: null, reason: null }, path: path.join(folder, 'deck'),
      secret: 'once' }
  }, view (id) {
    if (id !== 1) throw new DeckError('not-found', `There is no adoption ${id}`)
    return { id, state: 'done', app: 'shop', reason: null }
  } }, list: () => [...all.keys()].sort().map(viewOf),
    states: () => [...all.keys()].sort().map(viewOf).map(({ name, state }) => ({ name, state })),
    view: (name) => viewOf(known(name)), identity: (name) => all.get(name)?.id ?? null, tokens: () => [],
    opened: (name) => all.get(name)?.opened ?? null, async add (order, { actor, isIdle }) {
    const name = order.name ?? order.app ?? path.basename(order.cwd)
    orders.push({ type: 'add', name, actor, more: order })
    const isKnown = all.has(name)
    if (isKnown && viewOf(name).cwd !== order.cwd)
      throw new DeckError('name-taken',
        `name: expected a name that no app of this host has, received "${name}" (${
          viewOf(name).cwd
        }); choose one by --name`)
    if (!isKnown) openApp(name, { cwd: order.cwd })
    if (isIdle && !isKnown) apps.closeApp(name, { state: 'stopped' })
    if (!isIdle && !(isKnown && all.get(name)?.opened)) begin(name)
    return { ...viewOf(name), notApplied: [] }
  }, async changeVariables (name, env, { isDry }) {
    if (isDry) return []
    orders.push({ type: 'variables', name: known(name), actor: '', more: env })
    return Object.keys(env)
  }, async start (name, { actor }) {
    orders.push({ type: 'start', name: known(name), actor })
    begin(name)
    return viewOf(name)
  }, async stop (name, { actor, atOnce }) {
    orders.push({ type: 'stop', name: known(name), actor, ...(atOnce && { more: { atOnce } }) })
    apps.closeApp(name, { state: 'stopped' })
    return viewOf(name)
  }, async remove (name, { purge, actor }) {
    orders.push({ type: 'remove', name: known(name), actor, more: { purge } })
    const view = { ...viewOf(name), state: 'stopping' as const }
    close(name)
    all.delete(name)
    tell()
    return view
  }, onChange (handler) {
    handlers.add(handler)
    return () => {
      handlers.delete(handler)
    }
  }, upgradeHost ({ actor, execPath, note }) {
    orders.push({ type: 'upgrade-host', name: '', actor, more: { execPath, note } })
    return { startedAt: '2026-01-01T00:00:00.000Z', actor, note }
  }, stopHost ({ actor }) {
    orders.push({ type: 'stop-host', name: '', actor })
  }, past: pastOf((name) => apps.opened(name), history), left: (name) => lastWordsOf.get(name) ?? lastWords, lastWords,
    lastWordsOf, leftLogs: (name) => logsLeftIn(dataDirs.get(name) ?? folder),
    notices: createNotices({ history, events }),
    alerts: createAlerts({ configured: [], store: history.alerts, events,
      deck: () => ({ host: 'web-1', app: 'host web-1', isHost: true, url: null, entry: folder, pid: 4000,
        version: '0.1.0' }), log: { warn () {} }, appNames: () => [...all.keys()] }, {
      fetch: async (to) => new Response(null, { status: String(to).endsWith('/gone') ? 410 : 204 })
    }), fleet: fleet ?? (() => null), joinsFleet: fleet !== undefined,
    about: () => ({ pid: 4000, keeperPid: 3999, version: '0.1.0', nodeVersion: 'v20.20.2',
      startedAt: '2026-01-01T00:00:00.000Z', folder, apps: all.size, upgrade: null, upgradeFailure: null }),
    deck: (name) => all.get(name)!.opened!.deck, whenStarted: (name, start) => {
      starts.set(name, start)
    }, open (name, changes = {}) {
    openApp(name, changes)
    tell()
  }, closeApp (name, changes = {}) {
    close(name)
    all.set(name, { id: idOf(name), changes: { ...placeOf(name), health: null, workers: null, ...changes },
      opened: null })
    tell()
  }, set (name, changes) {
    Object.assign(all.get(name)!.changes, changes)
  }, closeAll () {
    for (const name of all.keys()) close(name)
  } }
  return apps

  function openApp (name: string, changes: Partial<AppView> = {}) {
    const home = path.join(folder, name)
    mkdirSync(home, { recursive: true })
    const history = all.get(name)?.opened?.history ?? openHistory({ file: ':memory:', clock: () => 0 })
    const deck = createFakeDeck({ history, now, wall })
    const { app, master } = deck.snapshot()
    dataDirs.set(name, path.dirname(deck.logs.folder))
    deck.set({ app: { ...app, name, cwd: home }, master: { ...master, isShared: true } })
    all.set(name, { id: idOf(name), changes: { cwd: home, ...placeOf(name), ...changes },
      opened: { deck, history, run: (work) => work() } })
  }

  function begin (name: string) {
    const { view = {}, deck } = starts.get(name) ?? {}
    if (view.state === 'failed') return apps.closeApp(name, view)
    openApp(name, view)
    if (deck) apps.deck(name).set(deck)
    tell()
  }

  /** What stays the same whether it runs or not. */
  function placeOf (name: string): Partial<AppView> {
    const { cwd, dataDir } = all.get(name)?.changes ?? {}
    return { ...(cwd !== undefined && { cwd }), ...(dataDir !== undefined && { dataDir }) }
  }

  function close (name: string) {
    all.get(name)?.opened?.history.close()
  }

  function idOf (name: string) {
    return all.get(name)?.id ?? String(++count)
  }

  function tell () {
    for (const handler of handlers) handler()
  }

  function known (name: string) {
    if (!all.has(name)) throw new DeckError('not-found', `There is no app ${JSON.stringify(name)} on this host`)
    return name
  }

  function viewOf (name: string): AppView {
    const { changes, opened } = all.get(name)!
    const status = opened?.deck.status()
    return { name, state: opened ? 'running' : 'stopped', reason: null, isRetried: false, nextTryAt: null,
      entry: '/srv/app/app.js', cwd: path.join(folder, name), configFile: null,
      dataDir: path.join(folder, name, '.clusterdeck'), path: `/apps/${name}`, startedAt: '2026-01-01T00:00:00.000Z',
      health: status ? { tone: status.health.tone, text: status.health.text, hint: status.health.hint } : null,
      workers: status ? { ready: status.readyWorkers, desired: status.desiredWorkers } : null,
      cpu: opened ? 12.5 : null, memoryBytes: opened ? 128 * 1024 * 1024 : null, requestsPerSecond: opened ? 250 : null,
      p99Ms: opened ? 12 : null, restarts: opened ? 0 : null, openCrashes: opened ? 0 : null,
      release: opened ? 'r1' : null, lastDeploy: null, addresses: opened ? ['http://localhost:3000'] : [], ...changes }
  }
}
