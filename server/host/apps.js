import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { appName } from '../config/app-name.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError, errorText } from '../errors.js'
import { hasLeftWorkers } from '../handover/checkpoint.js'
import { openTogether } from '../handover/joint-upgrade.js'
import { isReady } from '../health.js'
import { createHostedApp } from './hosted-app.js'
import { viewOf } from './app-view.js'
import { readConfigOf, readFileOf } from './order-config.js'

/** @typedef {ReturnType<typeof createApps>} Apps */
/** @typedef {import('./app-list.js').AppOrder} AppOrder */
/** @typedef {import('./app-view.js').AppView} AppView */
/** @typedef {import('./hosted-app.js').HostedApp} HostedApp */
/** @typedef {import('../config/apps.js').ConfigFile} ConfigFile */
/** @typedef {{ name: string, order: AppOrder, dataDir: string }} Expected  an app of a deck that is to come */
/** @typedef {import('./hosted-app.js').Arrival} Arrival */

/** Several apps are started side by side, in any order. */
const OTHERS_START_WITHIN_MS = 1000
/** How often an app that depends on others looks at them. */
const LOOK_EVERY_MS = 500

/**
 * The apps of a host.
 * @param {object} parts
 * @param {ReturnType<typeof import('./app-list.js').createAppList>} parts.list  where they are remembered
 * @param {import('./hosted-app.js').Lent} parts.lent
 * @param {(name: string) => void} parts.forget  drops what the keeper has of an app
 * @param {import('../events/stream.js').EventStream} parts.events  of the host
 * @param {import('../system/log.js').Log} parts.log
 * @param {boolean} [parts.isBeside]  another master has the list, until `takeOver`
 */
export function createApps ({ list, lent, forget, events, log, isBeside = false }) {
  /** @type {Map<string, HostedApp>} */
  const apps = new Map()
  /** @type {Set<() => void>} */
  const watchers = new Set()
  /** Those that are being removed. @type {Set<HostedApp>} */
  const leaving = new Set()
  /** Those that come from a deck, until they serve here. @type {Map<HostedApp, Promise<unknown>>} */
  const arriving = new Map()
  /** From then on the list is the next master's. */
  let isHandedOver = false
  for (const entry of list.read()) put(entry)

  return {
    /** @returns {AppView[]} by name */
    list: () => inOrder().map(viewOf),

    /** Asks no history, as the rest of a view does. @returns {Pick<AppView, 'name' | 'state'>[]} by name */
    states: () => inOrder().map(({ name, state }) => ({ name, state })),

    /** @param {string} name @returns {AppView} @throws {DeckError} not-found */
    view: (name) => viewOf(find(name)),

    /** @param {string} name @returns {string | null} */
    identity (name) {
      const app = apps.get(name)
      return app ? app.id ?? '' : null
    },

    /** @param {string} name @returns {ReturnType<import('../api/apps.js').Apps['opened']>} null: it does not run */
    opened (name) {
      const app = apps.get(name)
      return app?.part ? { deck: app.part.app.deck, history: app.part.app.history, run: app.part.run } : null
    },

    /** All of them, for those who look after the process. */
    all: () => [...apps.values()],

    /** Starts those that ran when the host was there last. */
    startAll () {
      for (const app of apps.values()) if (app.isKept) startInOrder(app, 'system')
    },

    /**
     * In an upgrade: opens those that take part, and waits until the other master has gone.
     * @param {Parameters<typeof openTogether>[2]} lines @param {readonly string[] | null} upgrading  their names; null: all that are to run
     * @returns {Promise<() => void>} to be called once the host is there, too
     * @throws {DeckError} upgrade-failed
     */
    async openNext (lines, upgrading) {
      const names = upgrading ?? [...apps.values()].filter(({ isKept }) => isKept).map(({ name }) => name)
      const { opened, failed } = await openTogether(names, async (name) => await find(name).openNext(), lines)
      return () => {
        for (const { begin } of opened.values()) begin()
        for (const [name, error] of failed) find(name).fail(error)
      }
    },

    /** From here on the list is this master's. The other one may have changed it since, but for the apps that take part in the upgrade. */
    takeOver () {
      isBeside = false
      const entries = list.read()
      const isIdle = (/** @type {string} */ name) => ['stopped', undefined].includes(apps.get(name)?.state)
      for (const name of [...apps.keys()]) if (isIdle(name) && !entries.some((entry) => entry.name === name)) apps.delete(name)
      for (const entry of entries) {
        if (isIdle(entry.name)) put(entry)
        else apps.get(entry.name)?.changeOrder(entry.order)
      }
    },

    /**
     * Takes an app in, and starts it. It may be one that is here already, with another order: that one counts from its next start on.
     * @param {AppOrder} order @param {{ actor: string, isIdle?: boolean }} how  `isIdle`: it is not started @returns {Promise<AppView>}
     * @throws {DeckError} invalid-config, unknown-option, entry-not-found, name-taken
     */
    async add (order, { actor, isIdle = false }) {
      const file = await readFileOf(order)
      const { name, dataDir, entry, isNamed } = await readOrder(order, file)
      const known = apps.get(name)
      checkFolder(dataDir, known)
      if (known && !isNamed) await checkEntry(entry, known)
      if (known && known.dataDir !== dataDir) throw taken('name', name, `which has its data in ${known.dataDir}; choose one by --name`)
      const app = known ?? put({ name, id: randomUUID(), order, dataDir, isStopped: isIdle })
      if (!known) tell('app.added', app, { actor })
      checkStays(app)
      app.changeOrder(order)
      tellChange()
      if (!isIdle) startInOrder(app, actor, file)
      return viewOf(app)
    },

    /**
     * Looks whether an app of a deck could be one of this host's.
     * @param {AppOrder} order @returns {Promise<Expected>} @throws {DeckError} as `add`
     */
    async expect (order) {
      const { name, dataDir } = await readOrder(order)
      const expected = { name, dataDir, order }
      checkNew(expected)
      return expected
    },

    /**
     * Goes on with an app that a deck has let go of. It is remembered only once its own workers serve.
     * @param {Expected} expected @param {Arrival} arrival @param {{ actor: string }} by
     * @throws {DeckError} name-taken, start-failed; then nothing of it is left here, and its old workers serve on
     */
    async adopt (expected, arrival, { actor }) {
      await arrive(expected, arrival.sockets, (app) => app.adopt(arrival, actor))
      tell('app.added', expected, { actor, message: `${expected.name} has moved into this host with its workers, from ${arrival.from}` })
    },

    /**
     * Starts an app in the place of a program of no deck. It is remembered only once its workers serve.
     * @param {Expected} expected @param {Pick<Arrival, 'sockets' | 'from'> & { abandoned: Promise<string> }} program @param {{ actor: string }} by
     * @throws {DeckError} name-taken, start-failed; then nothing of it is left here
     */
    async replace (expected, { sockets, from, abandoned }, { actor }) {
      await arrive(expected, sockets, (app) => app.replace({ from, abandoned }, actor))
      tell('app.added', expected, { actor, message: `${expected.name} has moved into this host, from ${from}` })
    },

    /** @param {string} name @param {{ actor: string }} by @returns {Promise<AppView>} @throws {DeckError} not-found */
    async start (name, { actor }) {
      const app = find(name)
      checkStays(app)
      startInOrder(app, actor)
      return viewOf(app)
    },

    /**
     * @param {string} name @param {{ actor: string, atOnce?: boolean }} how  `atOnce`: its workers finish nothing
     * @returns {Promise<AppView>} @throws {DeckError} not-found
     */
    async stop (name, { actor, atOnce = false }) {
      const app = find(name)
      if (atOnce) app.kill(actor)
      else app.stop(actor)
      return viewOf(app)
    },

    /**
     * Takes an app off the list, once it has stopped.
     * @param {string} name @param {{ actor: string, purge?: boolean }} how  `purge`: its data folder goes too
     * @returns {Promise<AppView>} @throws {DeckError} not-found
     */
    async remove (name, { actor, purge = false }) {
      const app = find(name)
      checkStays(app)
      leaving.add(app)
      app.stop(actor)
      app.closed.then(() => {
        leaving.delete(app)
        apps.delete(name)
        forget(name)
        tell('app.removed', app, { actor })
        if (purge) removeFolder(app.dataDir)
        tellChange()
      })
      return viewOf(app)
    },

    /** @param {() => void} handler  an app was added, opened, closed or removed @returns {() => void} ends it */
    onChange (handler) {
      watchers.add(handler)
      return () => watchers.delete(handler)
    },

    /** Lets all of them finish, side by side. @param {string} actor @returns {Promise<void>} once nothing is left of them */
    async leave (actor) {
      for (const app of apps.values()) app.leave(actor)
      await Promise.all([...apps.values()].map((app) => app.closed))
    },

    /** Ends what is left of them. @param {number} exitCode 1: without any grace */
    async end (exitCode) { await Promise.all([...apps.values()].map((app) => app.end(exitCode))) },

    /** The next master of an upgrade has them. */
    async handOver () {
      isHandedOver = true
      await Promise.all(arriving.values())
      // What is about to end does so before the others are without a master.
      await Promise.all([...apps.values()].filter(({ state }) => state === 'stopping').map(({ closed }) => closed))
      await Promise.all([...apps.values()].map((app) => app.handOver()))
    }
  }

  /**
   * @param {Expected} expected @param {Arrival['sockets']} sockets @param {(app: HostedApp) => Promise<void>} begin
   * @throws {DeckError} name-taken, and what `begin` throws; then nothing of it is left here
   */
  async function arrive (expected, sockets, begin) {
    const { name, order, dataDir } = expected
    if (isHandedOver) throw new DeckError('stopping', 'the host is ending')
    checkNew(expected)
    lent.links.give(name, sockets)
    const app = put({ name, id: randomUUID(), order, dataDir, isStopped: false })
    /** @type {PromiseWithResolvers<void>} */
    const settled = Promise.withResolvers()
    arriving.set(app, settled.promise)
    try {
      await begin(app)
    } catch (error) {
      apps.delete(name)
      forget(name)
      throw error
    } finally {
      arriving.delete(app)
      settled.resolve()
      tellChange()
    }
  }

  /** @param {AppOrder} order @param {ConfigFile | null} [file] @returns {Promise<{ name: string, dataDir: string, entry: string, isNamed: boolean }>} as its configuration says now; `isNamed`: by somebody */
  async function readOrder (order, file) {
    const config = await readConfigOf(order, { name: order.name, file })
    const name = order.name ?? config.name
    return { name: name ?? appName(config), dataDir: config.dataDir, entry: config.entry, isNamed: name !== undefined }
  }

  /**
   * Two apps of one folder are called the same as long as nobody names them.
   * @param {string} entry @param {HostedApp} known @throws {DeckError} name-taken
   */
  async function checkEntry (entry, { name, order }) {
    // What cannot be read any more is to be replaced.
    const before = await readOrder(order).then((read) => read.entry, () => entry)
    if (before !== entry) throw taken('name', name, `which runs ${before}; choose --name and --data-dir for another app, or --name ${name} to run ${entry} in its place from its next start on`)
  }

  /** @param {string} dataDir @param {HostedApp} [own]  the one that has it already @throws {DeckError} name-taken */
  function checkFolder (dataDir, own) {
    const twin = [...apps.values()].find((each) => each.dataDir === dataDir && each !== own)
    if (twin) throw taken('dataDir', dataDir, `the folder of ${twin.name}; choose one by --data-dir`)
  }

  /** @param {Expected} expected @throws {DeckError} name-taken */
  function checkNew ({ name, dataDir }) {
    const known = apps.get(name)
    if (known) throw taken('name', name, `which has its data in ${known.dataDir}; choose one by --name`)
    checkFolder(dataDir)
  }

  /** @param {import('./app-list.js').Entry} entry */
  function put (entry) {
    const app = createHostedApp(entry, lent, { onChange: () => tellState(app) })
    apps.set(entry.name, app)
    return app
  }

  function inOrder () {
    return [...apps.values()].sort((one, other) => one.name < other.name ? -1 : 1)
  }

  /** @param {string} name @returns {HostedApp} @throws {DeckError} not-found */
  function find (name) {
    const app = apps.get(name)
    if (app) return app
    const known = apps.size === 0 ? 'it has none' : `it has ${[...apps.keys()].sort().join(', ')}`
    throw new DeckError('not-found', `This host has no app ${JSON.stringify(name)}${didYouMean(name, apps.keys())}; ${known}`)
  }

  /** @param {HostedApp} app @throws {DeckError} stopping */
  function checkStays (app) {
    if (leaving.has(app)) throw new DeckError('stopping', `${app.name} is being removed`)
  }

  /**
   * Once it has stopped, and those that it depends on are ready.
   * @param {HostedApp} app @param {string} actor @param {ConfigFile | null} [file]  as it has just been read
   */
  function startInOrder (app, actor, file) {
    if (app.state === 'stopping') {
      app.closed.then(() => { if (!leaving.has(app)) startInOrder(app, actor) })
      return
    }
    if (app.state !== 'stopped' && app.state !== 'failed') return
    const { dependsOn } = app.order
    tell('app.started', app, { actor })
    // Workers that a dead master has left need this one now, whatever has become of the other apps.
    app.start(dependsOn.length === 0 || hasLeftWorkers(app.dataDir) ? { file } : { untilReady: untilReady(dependsOn) })
  }

  /** @param {string} type @param {{ name: string }} app @param {Partial<import('../events/stream.js').NewEvent>} [more] */
  function tell (type, { name }, more = {}) {
    events.publish({ type, actor: 'system', detail: { app: name }, ...more })
  }

  /** @param {string[]} names @returns {Promise<string | null>} why one of them does not get ready; null: all are */
  function untilReady (names) {
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

  /** @param {HostedApp} app */
  function tellState (app) {
    if (app.state === 'stopped') tell('app.stopped', app)
    if (app.state === 'failed') tell('app.failed', app, { message: app.reason })
    tellChange()
  }

  function tellChange () {
    remember()
    for (const handler of watchers) handler()
  }

  /** A full disk keeps no app from running; the next change tries again. */
  function remember () {
    if (isBeside || isHandedOver) return
    try {
      list.write([...apps.values()].filter((app) => !arriving.has(app)).map(({ name, id, order, dataDir, isKept }) => ({ name, ...(id !== undefined && { id }), order, dataDir, isStopped: !isKept })))
    } catch (error) {
      log.error({ err: error }, 'the list of apps could not be written')
    }
  }

  /** @param {string} folder */
  function removeFolder (folder) {
    try {
      rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      log.error({ err: error }, `the data folder ${folder} could not be removed: ${errorText(error)}`)
    }
  }
}

/** @param {'name' | 'dataDir'} option @param {string} received @param {string} whose */
function taken (option, received, whose) {
  return new DeckError('name-taken', `${option}: expected one that no other app of this host has, received ${JSON.stringify(received)}, ${whose}`)
}

/** @param {HostedApp | undefined} app */
function stateText (app) {
  if (!app) return 'this host does not have'
  return app.state === 'failed' ? `failed (${app.reason})` : 'is stopped'
}

/** @param {HostedApp | undefined} app @returns {boolean} whether it runs, with all of its workers ready or at their end */
function isUp (app) {
  return Boolean(app?.part && app.state === 'running' && isReady(app.part.app.supervisor.snapshot()))
}
