import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { appName } from '../config/app-name.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError, errorText } from '../errors.ts'
import { checkedRuns } from '../app/runs.ts'
import { hasLeftWorkers } from '../handover/checkpoint.ts'
import { readRuns } from '../system/data-dir.ts'
import { openTogether } from '../handover/joint-upgrade.ts'
import { isReady } from '../words/health.ts'
import { changedVariables, differenceTexts, type Differences } from '../app/differences.ts'
import { createHostedApp, type Arrival, type HostedApp } from './hosted-app.ts'
import { viewOf } from './app-view.ts'
import { readFileOf } from './order-config.ts'
import type { AppOrder } from '../config/orders.ts'
import type { AppRecord, Records } from './records.ts'
import type { AppView, OrderedView } from './api-apps.ts'
import type { Config } from '../config/config.ts'
import type { ConfigFile } from '../config/apps.ts'
import type { Lent } from './app-part.ts'
import type { NewEvent, Publisher } from '../events/stream.ts'
import type { Log } from '../system/log.ts'

export type Apps = ReturnType<typeof createApps>
/** an app of a deck that is to come */
type Expected = { name: string, order: AppOrder, dataDir: string }

/** So often an app has to fail until it is told once more: after about a minute. */
const STAYS_DOWN_AFTER = 6
/** Several apps are started side by side, in any order. */
const OTHERS_START_WITHIN_MS = 1000
/** How often an app that depends on others looks at them. */
const LOOK_EVERY_MS = 500

export function createApps ({ records, lent, forget, events, log, isBeside = false }: {
  /** where they are remembered */
  records: Records,
  lent: Lent,
  /** drops what the keeper has of an app, by its id */
  forget: (id: string) => void,
  /** of the host */
  events: Publisher,
  log: Log,
  /** another master has the records, until `takeOver` */
  isBeside?: boolean
}) {
  const apps: Map<string, HostedApp> = new Map()
  const watchers: Set<() => void> = new Set()
  /** Those that are being removed. */
  const leaving: Set<HostedApp> = new Set()
  /** Those that come from a deck, until they serve here. */
  const arriving: Map<HostedApp, Promise<unknown>> = new Map()
  /** From then on the records are the next master's. */
  let isHandedOver = false
  /** Nothing starts any more. */
  let isEnding = false
  for (const record of records.read()) put(record)

  return {
    /** @returns by name */
    list: (): AppView[] => inOrder().map(viewOf),

    /** Asks no history, as the rest of a view does. @returns by name */
    states: (): Pick<AppView, 'name' | 'state'>[] => inOrder().map(({ name, state }) => ({ name, state })),

    /** @throws {DeckError} not-found */
    view: (name: string): AppView => viewOf(find(name)),

    identity: (name: string): string | null => apps.get(name)?.id ?? null,

    /** Null: it does not run */
    opened (name: string): ReturnType<import('./api-apps.ts').Apps['opened']> {
      const part = apps.get(name)?.answering
      return part ? { deck: part.app.deck, history: part.app.history, run: part.run } : null
    },

    /** Of the data folders of those that are open, by name. */
    tokens: () => [...apps.values()].flatMap(({ name, part }) => part ? [[name, part.token] as [string, string]] : []),

    /** All of them, for those who look after the process. */
    all: () => [...apps.values()],

    /** Starts those that ran when the host was there last. */
    startAll () {
      for (const app of apps.values())
        if (app.record.wish === 'running') startInOrder(app, { actor: 'system', isOrdered: false })
    },

    /**
     * In an upgrade: opens those that take part, and waits until the other master has gone. `upgrading`: their ids;
     * null: all that are to run. Returns `begin`: to be called once the host is there, too.
     * @throws {DeckError} upgrade-failed
     */
    async openNext (lines: Parameters<typeof openTogether>[2], upgrading: readonly string[] | null) {
      const ids = upgrading ?? [...apps.values()].filter(({ record }) => record.wish === 'running').map(({ id }) => id)
      const { opened, failed } = await openTogether(ids, { open: (id) => withId(id).openFirst(), whyOf }, lines)
      return { parts: [...opened.values()].map(({ part }) => part), failed: [...failed.values()], begin () {
        for (const { begin } of opened.values()) begin()
        for (const [id, error] of failed) withId(id).fail(error)
      } }
    },

    /** Opens all of them. Returns `begin`: as of `openNext`. @throws what a start throws */
    async openAll (how: Parameters<HostedApp['openFirst']>[0]) {
      const opened = await Promise.all([...apps.values()].map((app) => app.openFirst(how)))
      return { parts: opened.map(({ part }) => part), failed: [], begin: () => opened.forEach(({ begin }) => begin()) }
    },

    /**
     * From here on the records are this master's. The other one may have changed them since, but for the apps that take
     * part in the upgrade.
     */
    takeOver () {
      isBeside = false
      const known = records.read()
      const isIdle = (name: string) => ['stopped', undefined].includes(apps.get(name)?.state)
      for (const name of [...apps.keys()])
        if (isIdle(name) && !known.some((record) => record.name === name)) apps.delete(name)
      for (const record of known) {
        if (isIdle(record.name)) put(record)
        else apps.get(record.name)?.change({ order: record.order })
      }
    },

    /**
     * Takes an app in, and starts it. One that runs here already stays as it is, unless the order is to be applied: then
     * the order counts from the next deploy on, and what needs none counts now. `isIdle`: it is not started.
     * @returns with what of the order does not run yet, in words
     * @throws {DeckError} invalid-config, unknown-option, entry-not-found, name-taken, app-running: it runs, and the
     * words of the order say something else
     */
    async add (order: AppOrder,
      { actor, isIdle = false, applies = false }: { actor: string, isIdle?: boolean, applies?: boolean }
    ): Promise<OrderedView> {
      const file = await readFileOf(order)
      const { name, dataDir, entry, isNamed, config } = await readOrder(order, file)
      const known = apps.get(name)
      checkFolder(dataDir, known)
      if (known && !isNamed && !applies) await checkEntry(entry, known)
      if (known && known.dataDir !== dataDir)
        throw taken('name', name, `which has its data in ${known.dataDir}; choose one by --name`)
      // What is about to run is not known before.
      await known?.opening
      if (known?.part && known.state !== 'stopping') {
        checkStays(known)
        const differences = known.compare(order, config)
        if (applies) known.apply(order, config, { actor })
        else if (differences.isOfWords && differences.options.length > 0) throw runsAlready(name, differences)
        await known.stored()
        return { ...viewOf(known), notApplied: differenceTexts(differences) }
      }
      const app = known ??
        put({ version: 1, id: randomUUID(), name, dataDir, wish: isIdle ? 'stopped' : 'running', order, runs: null })
      if (!known) tell('app.added', app, { actor })
      checkStays(app)
      app.change({ order })
      tellChange()
      if (!isIdle) startInOrder(app, { actor, isOrdered: true, file })
      await app.stored()
      return { ...viewOf(app), notApplied: [] }
    },

    /**
     * Gives an app the variables of another shell, from its next deploy on. `isDry`: nothing is changed.
     * @returns the names of those that differ from what runs
     * @throws {DeckError} not-found, not-stored
     */
    async changeVariables (name: string, env: AppOrder['env'], { isDry }: { isDry: boolean }): Promise<string[]> {
      const app = find(name)
      const names = changedVariables((app.record.runs?.order ?? app.order).env, env)
      if (!isDry) app.change({ order: { ...app.order, env } })
      await records.stored(app.id)
      return names
    },

    /**
     * Looks whether an app of a deck could be one of this host's.
     * @throws {DeckError} as `add`
     */
    async expect (order: AppOrder): Promise<Expected> {
      const { name, dataDir } = await readOrder(order)
      const expected = { name, dataDir, order }
      checkNew(expected)
      return expected
    },

    /**
     * Goes on with an app that a deck has let go of. It is remembered only once its own workers serve.
     * @throws {DeckError} name-taken, start-failed; then nothing of it is left here, and its old workers serve on
     */
    async adopt (expected: Expected, arrival: Arrival, { actor }: { actor: string }) {
      await arrive({ ...expected, runs: checkedRuns(readRuns(expected.dataDir)) }, arrival.sockets,
        (app) => app.adopt(arrival, actor))
      tell('app.added', expected, { actor,
        message: `${expected.name} has moved into this host with its workers, from ${arrival.from}` })
    },

    /**
     * Starts an app in the place of a program of no deck. It is remembered only once its workers serve.
     * @throws {DeckError} name-taken, start-failed; then nothing of it is left here
     */
    async replace (expected: Expected,
      { sockets, from, abandoned }: Pick<Arrival, 'sockets' | 'from'> & { abandoned: Promise<string> },
      { actor }: { actor: string })
    {
      await arrive(expected, sockets, (app) => app.replace({ from, abandoned }, actor))
      tell('app.added', expected, { actor, message: `${expected.name} has moved into this host, from ${from}` })
    },

    /** @throws {DeckError} not-found */
    async start (name: string, { actor }: { actor: string }): Promise<AppView> {
      const app = find(name)
      checkStays(app)
      startInOrder(app, { actor, isOrdered: true })
      await app.stored()
      return viewOf(app)
    },

    /** `atOnce`: its workers finish nothing @throws {DeckError} not-found */
    async stop (name: string, { actor, atOnce = false }: { actor: string, atOnce?: boolean }): Promise<AppView> {
      const app = find(name)
      if (atOnce) app.kill(actor)
      else app.stop(actor)
      await app.stored()
      return viewOf(app)
    },

    /**
     * Takes an app off the list, once it has stopped. `purge`: its data folder goes too.
     * @throws {DeckError} not-found
     */
    async remove (name: string, { actor, purge = false }: { actor: string, purge?: boolean }): Promise<AppView> {
      const app = find(name)
      checkStays(app)
      leaving.add(app)
      app.stop(actor)
      app.closed.then(() => {
        leaving.delete(app)
        apps.delete(name)
        forget(app.id)
        records.remove(app.id)
        tell('app.removed', app, { actor })
        if (purge) removeFolder(app.dataDir)
        tellChange()
      })
      return viewOf(app)
    },

    /**
     * @param handler an app was added, opened, closed or removed
     * @returns ends it
     */
    onChange (handler: () => void): () => void {
      watchers.add(handler)
      return () => watchers.delete(handler)
    },

    /** Lets all of them finish, side by side. Returns once nothing is left of them. */
    async leave (actor: string): Promise<void> {
      for (const app of apps.values()) app.leave(actor)
      await Promise.all([...apps.values()].map((app) => app.closed))
    },

    /** Ends what is left of them. `exitCode`: 1: without any grace. */
    async end (exitCode: number) {
      isEnding = true
      await Promise.all([...apps.values()].map((app) => app.end(exitCode)))
      await records.close()
    },

    /** The next master of an upgrade has them. */
    async handOver () {
      isHandedOver = true
      await records.close()
      await Promise.all(arriving.values())
      // What is about to end does so before the others are without a master.
      await Promise.all([...apps.values()].filter(({ state }) => state === 'stopping').map(({ closed }) => closed))
      await Promise.all([...apps.values()].map((app) => app.handOver()))
    }
  }

  /** @throws {DeckError} name-taken, and what `begin` throws; then nothing of it is left here */
  async function arrive (expected: Expected & Partial<Pick<AppRecord, 'runs'>>, sockets: Arrival['sockets'],
    begin: (app: HostedApp) => Promise<void>)
  {
    const { name, order, dataDir, runs = null } = expected
    if (isHandedOver) throw new DeckError('stopping', 'the host is ending')
    checkNew(expected)
    const id = randomUUID()
    lent.links.give(id, sockets)
    const app = put({ version: 1, id, name, dataDir, wish: 'running', order, runs })
    const settled: PromiseWithResolvers<void> = Promise.withResolvers()
    arriving.set(app, settled.promise)
    try {
      await begin(app)
      arriving.delete(app)
      app.change({})
    } catch (error) {
      app.giveUp()
      apps.delete(name)
      forget(id)
      throw error
    } finally {
      arriving.delete(app)
      settled.resolve()
      tellChange()
    }
  }

  /** @returns as its configuration says now; `isNamed`: by somebody */
  async function readOrder (order: AppOrder,
    file?: ConfigFile | null
  ): Promise<{ name: string, dataDir: string, entry: string, isNamed: boolean, config: Config }> {
    const config = await lent.readConfig(order, { name: order.name, file })
    const name = order.name ?? config.name
    return { name: name ?? appName(config), dataDir: config.dataDir, entry: config.entry, isNamed: name !== undefined,
      config }
  }

  /**
   * Two apps of one folder are called the same as long as nobody names them.
   * @throws {DeckError} name-taken
   */
  async function checkEntry (entry: string, { name, order }: HostedApp) {
    // What cannot be read any more is to be replaced.
    const before = await readOrder(order).then((read) => read.entry, () => entry)
    if (before !== entry)
      throw taken('name', name,
        `which runs ${before}; choose --name and --data-dir for another app, or add --apply to run ${entry} in its place`)
  }

  /** `own`: the one that has it already @throws {DeckError} name-taken */
  function checkFolder (dataDir: string, own?: HostedApp) {
    const twin = [...apps.values()].find((each) => each.dataDir === dataDir && each !== own)
    if (twin) throw taken('dataDir', dataDir, `the folder of ${twin.name}; choose one by --data-dir`)
  }

  /** @throws {DeckError} name-taken */
  function checkNew ({ name, dataDir }: Expected) {
    const known = apps.get(name)
    if (known) throw taken('name', name, `which has its data in ${known.dataDir}; choose one by --name`)
    checkFolder(dataDir)
  }

  function put (record: AppRecord) {
    const app = createHostedApp(record, lent, { onChange: () => tellState(app),
      onRetry: () => startInOrder(app, { actor: 'system', isOrdered: false, isRetry: true }), records,
      isRemembered: () => !isBeside && !isHandedOver && !arriving.has(app) })
    apps.set(record.name, app)
    return app
  }

  function inOrder () {
    return [...apps.values()].sort((one, other) => one.name < other.name ? -1 : 1)
  }

  function whyOf (id: string, error: unknown) {
    const title = lent.titleOf(byId(id)?.name ?? id)
    return title === null ? errorText(error) : `${title}: ${errorText(error)}`
  }

  function byId (id: string): HostedApp | undefined {
    return [...apps.values()].find((each) => each.id === id)
  }

  /** @throws {DeckError} not-found */
  function withId (id: string): HostedApp {
    const app = byId(id)
    if (app) return app
    throw new DeckError('not-found', 'the other master has an app that this one does not know')
  }

  /** @throws {DeckError} not-found */
  function find (name: string): HostedApp {
    const app = apps.get(name)
    if (app) return app
    const known = apps.size === 0 ? 'it has none' : `it has ${[...apps.keys()].sort().join(', ')}`
    throw new DeckError('not-found',
      `This host has no app ${JSON.stringify(name)}${didYouMean(name, apps.keys())}; ${known}`)
  }

  /** @throws {DeckError} stopping */
  function checkStays (app: HostedApp) {
    if (leaving.has(app)) throw new DeckError('stopping', `${app.name} is being removed`)
  }

  /** Once it has stopped, and those that it depends on are ready. `file`: as it has just been read. */
  function startInOrder (app: HostedApp,
    { actor, isOrdered, isRetry = false, file }: { actor: string, isOrdered: boolean, isRetry?: boolean,
      file?: ConfigFile | null })
  {
    if (app.state === 'stopping') {
      app.change({ wish: 'running' })
      app.closed.then(() => {
        if (app.record.wish === 'running' && !leaving.has(app) && !isEnding) startInOrder(app, { actor, isOrdered })
      })
      return
    }
    if (app.state !== 'stopped' && app.state !== 'failed') return
    const { dependsOn } = app.order
    // Else all that there is to say would be among the tries.
    if (!isRetry) tell('app.started', app, { actor })
    // Workers that a dead master has left need this one now, whatever has become of the other apps.
    app.start({ isOrdered,
      ...(dependsOn.length === 0 || hasLeftWorkers(app.dataDir) ? { file } : { untilReady: untilReady(dependsOn) }) })
  }

  function tell (type: string, { name }: { name: string }, more: Partial<NewEvent> = {}) {
    events.publish({ type, actor: 'system', detail: { app: name }, ...more })
  }

  /** @returns why one of them does not get ready; null: all are */
  function untilReady (names: string[]): Promise<string | null> {
    const begunAt = performance.now()
    return new Promise((resolve) => {
      const timer = setInterval(look, LOOK_EVERY_MS)
      watchers.add(look)
      look()

      function look () {
        const missing = names.find((name) => !isUp(apps.get(name)))
        const app = missing === undefined ? undefined : apps.get(missing)
        const isIdle = app?.state === 'failed' || app?.state === 'stopped'
        if (missing !== undefined && app && (!isIdle || performance.now() - begunAt < OTHERS_START_WITHIN_MS)) return
        watchers.delete(look)
        clearInterval(timer)
        resolve(missing === undefined ? null : `it depends on ${missing}, which ${stateText(app)}`)
      }
    })
  }

  function tellState (app: HostedApp) {
    if (app.state === 'stopped') tell('app.stopped', app)
    const { state, failures, reason } = app
    if (state === 'failed' && failures <= 1) tell('app.failed', app, { message: reason })
    if (state === 'failed' && failures === STAYS_DOWN_AFTER)
      tell('app.failed', app, { message: `${app.name} stays down, after ${failures} tries: ${reason}` })
    if (state === 'running' && failures > 0)
      tell('app.recovered', app, {
        message: `${app.name} runs again, after ${failures} ${failures === 1 ? 'try' : 'tries'} that failed`
      })
    tellChange()
  }

  function tellChange () {
    for (const handler of watchers) handler()
  }

  function removeFolder (folder: string) {
    try {
      rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      log.error({ err: error }, `the data folder ${folder} could not be removed: ${errorText(error)}`)
    }
  }
}

function runsAlready (name: string, differences: Differences) {
  return new DeckError('app-running',
    `${name} runs already, with other options: ${
      differenceTexts({ ...differences, variables: [] }).join(', ')
    } (what runs → this order). Nothing was changed; to run it so, add --apply, or choose another --name and --data-dir for another app`)
}

function taken (option: 'name' | 'dataDir', received: string, whose: string) {
  return new DeckError('name-taken',
    `${option}: expected one that no other app of this host has, received ${JSON.stringify(received)}, ${whose}`)
}

function stateText (app: HostedApp | undefined) {
  if (!app) return 'this host does not have'
  return app.state === 'failed' ? `failed (${app.reason})` : 'is stopped'
}

/** Tells whether it runs, with all of its workers ready or at their end */
function isUp (app: HostedApp | undefined): boolean {
  return Boolean(app?.part && app.state === 'running' && isReady(app.part.app.supervisor.snapshot()))
}
