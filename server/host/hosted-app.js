import { createEnd } from '../app/end.js'
import { openApp } from '../app/app.js'
import { recordPast, startWorkers, watchDataDir } from '../app/start.js'
import { takePolicy } from '../cluster/policy.js'
import { DeckError, errorText, toError } from '../errors.js'
import { followNext } from '../handover/old-master.js'
import { createClosers } from '../system/closers.js'
import { openDataDir } from '../system/data-dir.js'
import { createDeferred } from '../system/deferred.js'
import { closeLog, createLog } from '../system/log.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { prefixOf } from '../terminal.js'
import { createAnnouncement } from './announcement.js'
import { readConfigOf } from './order-config.js'
import { untilServed } from './until-served.js'

/** @typedef {ReturnType<typeof createHostedApp>} HostedApp */
/** @typedef {import('./app-list.js').AppOrder} AppOrder */
/** @typedef {import('../config/apps.js').ConfigFile} ConfigFile */
/** Where something is thrown in an app's part of this host, that part is made anew after this time, then after twice that, and so on. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 30_000
/** After this time without a fault the next one is the first again. */
const FORGOTTEN_AFTER_MS = 60_000
/** A part that has failed may not be able to close either. */
const CLOSED_WITHIN_MS = 3000

/** @typedef {'waiting' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed'} AppState */

/**
 * What a host lends each of its apps.
 * @typedef {object} Lent
 * @property {import('../keeper/app-links.js').AppLinks} links
 * @property {import('./app-scopes.js').AppScopes} scopes
 * @property {import('../system/log.js').Log} log  of the host
 * @property {(name: string) => import('../terminal.js').Lines} terminalOf
 * @property {import('../app/app.js').HostServices['streams']} streams
 * @property {import('../app/app.js').HostServices['software']} software
 * @property {import('../app/app.js').HostServices['others']} others
 * @property {import('../app/turn.js').Turns} turns
 * @property {import('../handover/joint-upgrade.js').JointUpgrade} upgrade
 * @property {(name: string) => import('./announcement.js').Address} addressOf
 * @property {Pick<import('./fleet-membership.js').FleetMembership, 'isWanted' | 'of' | 'enter'>} fleetMembership
 */

/**
 * What another master has left of an app.
 * @typedef {object} Arrival
 * @property {import('../keeper/link.js').Predecessor} before  that master
 * @property {ReadonlyMap<string, { handle: import('../keeper/link.js').SocketHandle, data?: import('../keeper/link.js').KeptData }>} sockets  by the keeper's key
 * @property {(exit: import('../keeper/link.js').Exit) => void} onExit  is replaced by whoever wants to know how its workers end
 */

/**
 * An app of a host, which runs or does not.
 * @param {import('./app-list.js').Entry} entry
 * @param {Lent} lent
 * @param {{ onChange: () => void }} hooks
 */
export function createHostedApp ({ name, order: firstOrder, dataDir: folder, isStopped }, lent, { onChange }) {
  let order = firstOrder
  /** @type {AppState} */
  let state = 'stopped'
  /** @type {string | null} */
  let reason = null
  /** @type {import('../config/config.js').Config | null} as it was read last */
  let config = null
  /** @type {Opened | null} */
  let opened = null
  /** What is here of it, also while it closes. @type {import('../app/app.js').App | null} */
  let present = null
  /** Resolves once nothing of it is left in this process. @type {ReturnType<typeof createDeferred<void>>} */
  let closed = createDeferred()
  closed.reach()
  let isKept = !isStopped
  /** Who wants it to stop. @type {string | null} */
  let stopper = null
  let isLeaving = false
  /** The next master has it, so nothing begins here any more. */
  let isHandedOver = false
  /** Resolves once it is open, or cannot be. @type {Promise<unknown>} */
  let opening = Promise.resolve()
  let isClosing = false
  /** @type {import('./app-scopes.js').AppScope | null} */
  let scope = null
  /** What has been thrown in its part of this host, until that part is made anew. @type {import('../keeper/app-links.js').Fault | null} */
  let fault = null
  /** What has been thrown there while it was still being opened. @type {{ error: unknown } | null} */
  let early = null
  /** How workers have ended that such a part has left. @type {import('../keeper/link.js').Exit[]} */
  const exits = []
  let pauseMs = FIRST_PAUSE_MS
  let openedAt = -Infinity
  /** The master that it comes from, while it is taken over. @type {Arrival['before'] | null} */
  let before = null
  /** Resolves once something is thrown in its part of this host. @type {ReturnType<typeof createDeferred<void>>} */
  let faulty = createDeferred()
  /** @type {NodeJS.Timeout | null} until it is made anew */
  let pause = null

  return {
    name,
    dataDir: folder,
    get order () { return order },
    get state () { return state },
    get reason () { return reason },
    get config () { return config },
    get opened () { return opened },
    get present () { return present },
    /** Whether it is to run when the host starts. */
    get isKept () { return isKept },
    /** Whether it has failed for a while only: its part of this host is made anew. */
    get isRetried () { return state === 'failed' && fault !== null && isKept },
    get closed () { return closed.reached },

    /**
     * Does what somebody else wants of it as a part of the app, and so does whatever follows from that: what fails there later is a fault of this app.
     * @template T @param {() => T} work @returns {T}
     */
    run: (work) => scope ? scope.run(work) : work(),

    /** @param {AppOrder} next  counts from its next start on */
    changeOrder (next) { order = next },

    /**
     * Starts it, unless it runs.
     * @param {{ untilReady?: Promise<string | null>, file?: ConfigFile | null }} [how]  `untilReady`: resolves once the apps that it depends on are
     *   ready, with the reason why one is not; `file`: its config file, as it has just been read
     */
    async start ({ untilReady, file } = {}) {
      isKept = true
      if (pause) return await openAgain()
      if (state !== 'stopped' && state !== 'failed') return
      if (untilReady) {
        change('waiting')
        const missing = await untilReady
        // It may have been stopped meanwhile.
        if (!isIn('waiting') || isHandedOver) return
        if (missing !== null) return change('failed', missing)
      }
      opening = open(file)
      await opening
    },

    /**
     * Goes on with what another master has left, and waits until its own workers have taken the place of those.
     * @param {Arrival} arrival @param {string} actor
     * @throws {DeckError} start-failed; then it is closed here, and those workers serve on
     */
    async adopt (arrival, actor) {
      before = arrival.before
      arrival.onExit = noteExit
      opening = open()
      await opening
      before = null
      const current = opened
      if (!current) throw new DeckError('start-failed', String(reason))
      // If somebody stops it meanwhile, or its part here fails and is made anew, that is the host's matter already.
      const missing = await Promise.race([untilServed(current.app), faulty.reached, closed.reached])
      if (missing) {
        await giveBack(current, missing)
        throw new DeckError('start-failed', missing)
      }
      current.app.events.publish({ type: 'app.adopted', actor, message: `moved into the host as ${name}, from a deck of its own (pid ${arrival.before.pid})` })
    },

    /** Lets its workers finish. @param {string} actor */
    stop (actor) {
      isKept = false
      if (pause) return openToStop(actor)
      if (state === 'waiting' || state === 'failed') return change('stopped')
      drain(actor)
    },

    /** Ends it at once, where it is open. @param {string} actor */
    async kill (actor) {
      this.stop(actor)
      await endWith(1, 'stopped', null)
    },

    /** Lets its workers finish because the host ends: it is started again with the host. @param {string} actor */
    leave (actor) {
      isLeaving = true
      if (pause) return openToStop(actor)
      if (state === 'waiting') return change('stopped')
      drain(actor)
    },

    /** Ends what is left of it. @param {number} exitCode 1: without any grace */
    async end (exitCode) {
      if (pause) close('stopped', null)
      if (state === 'waiting') change('stopped')
      await opened?.end.stop(exitCode)
    },

    /**
     * In an upgrade: starts its workers beside those of the other master, and waits until that one has gone.
     * @returns {Promise<{ begin: () => void }>}  `begin`: the host is there, too
     * @throws {import('../errors.js').DeckError} upgrade-failed, and what a start throws
     */
    async openNext () {
      const prepared = await prepare()
      return { begin: () => begin(prepared) }
    },

    /** It could not be opened in an upgrade that has succeeded without it. @param {unknown} error */
    fail (error) { close('failed', errorText(error)) },

    /** The next master of an upgrade has it. */
    async handOver () {
      isHandedOver = true
      if (pause) clearTimeout(pause)
      await opening
      if (state === 'stopping' || isClosing) await closed.reached
      const current = opened
      opened = null
      await current?.end.handOver()
    }
  }

  /** @param {AppState} one */
  function isIn (one) {
    return state === one
  }

  /** @param {AppState} next @param {string | null} [why] */
  function change (next, why = null) {
    state = next
    reason = why
    // Whoever hears of it is no part of the app.
    lent.scopes.outside(onChange)
  }

  /** @param {string} actor */
  function drain (actor) {
    if (state === 'stopped' || state === 'failed' || state === 'stopping') return
    stopper = actor
    opened?.app.deck.dispatch({ type: 'stop', actor })
    change('stopping')
  }

  /** @param {ConfigFile | null} [file]  as it has just been read */
  async function open (file) {
    try {
      begin(await prepare(file))
    } catch (error) {
      if (fault === null || stopper !== null) return close('failed', errorText(error))
      change('failed', `its part of this host failed, and cannot be made anew: ${errorText(error)}`)
      tryAgain()
    }
  }

  /** @param {ConfigFile | null} [file]  as it has just been read @returns {Promise<Prepared>} */
  async function prepare (file) {
    if (fault === null) closed = createDeferred()
    change('starting')
    const own = lent.scopes.open(name, { onFault: (error) => onFault(error, own) })
    scope = own
    early = null
    return await own.run(() => openInScope(own, file))
  }

  /** @param {import('./app-scopes.js').AppScope} own @param {ConfigFile | null} [file] @returns {Promise<Prepared>} */
  async function openInScope (own, file) {
    const closers = createClosers()
    try {
      config = await readConfigOf(order, { name, file })
      takePolicy(config.dispatch)
      const dataDir = openDataDir(config.dataDir)
      const link = lent.links.of(name, { call: own.call, fault, exits, before })
      const keeper = closers.add(link, (_, { hasFailed }) => lent.links.close(name, { keepsSockets: hasFailed }))
      const services = {
        ...lent,
        keeper,
        upgrade: lent.upgrade.of(name),
        closers,
        log: closers.add(createLog(dataDir.logFile), closeLog),
        terminal: lent.terminalOf(name),
        streams: { ...lent.streams, prefix: prefixOf(name) },
        fleet: () => lent.fleetMembership.of(name),
        joinsFleet: lent.fleetMembership.isWanted
      }
      if (config.launch) services.terminal.resolved(config.launch)
      if (dataDir.away) services.terminal.fail(dataDir.away)
      return { services, own, app: await openApp({ config, reload: (launchIn) => readConfigOf(order, { name, launchIn }), dataDir, environment: order.env }, services) }
    } catch (error) {
      // What its workers listen on is there for the next try.
      await closers.close({ handsOver: fault !== null, hasFailed: fault !== null }).catch(() => {})
      throw error
    }
  }

  /** @param {Prepared} prepared */
  function begin ({ own, ...prepared }) {
    fault = null
    faulty = createDeferred()
    openedAt = performance.now()
    own.run(() => run(prepared, own))
    exits.length = 0
    if (early) onFault(early.error, own)
  }

  /** @param {Omit<Prepared, 'own'>} prepared @param {import('./app-scopes.js').AppScope} own */
  function run ({ app, services }, own) {
    const end = createEnd(app, services.closers)
    opened = { app, end }
    present = app
    const { supervisor, logs, events } = app
    const { announce, register, withdraw } = createAnnouncement(app, services, () => lent.addressOf(name))
    logs.start()
    register()
    services.closers.add(withdraw, (_, { handsOver }) => { if (!handsOver) withdraw() })
    announce()
    startWorkers(app, services, recordPast(app, services))
    watchDataDir(app, services)
    events.subscribe(({ type }) => { if (type === 'history.recovered') announce() })
    followNext({ keeper: services.keeper, supervisor, events })
    services.keeper.on('reaped', supervisor.reaped)
    services.closers.add(lent.fleetMembership.enter({
      app: name,
      deck: app.deck,
      state: () => state,
      folder: app.dataDir.folder,
      root: app.config.releases.root,
      url: lent.addressOf(name).publicUrl,
      log: services.log,
      scope: own
    }), (leave) => leave())
    supervisor.running.then(() => { if (state === 'starting') change('running') })
    supervisor.startBlocked.then(({ message }) => endWith(1, 'failed', message))
    supervisor.finished.then(() => endWith(0, 'stopped', null))
    if (stopper !== null) app.deck.dispatch({ type: 'stop', actor: stopper })
  }

  /**
   * Its workers serve on, and it is made anew.
   * @param {unknown} error @param {import('./app-scopes.js').AppScope} own
   */
  async function onFault (error, own) {
    const current = opened
    early = { error }
    faulty.reach()
    lent.log.error({ err: error, app: name }, 'the part of the host for an app failed')
    // It is still being opened, or is being closed anyway.
    if (!current) return
    opened = null
    own.close()
    const { message, stack = null } = toError(error)
    fault = { message, stack }
    if (performance.now() - openedAt > FORGOTTEN_AFTER_MS) pauseMs = FIRST_PAUSE_MS
    change('failed', `its part of this host failed, and is made anew; its workers serve on: ${message}`)
    await waitAtMost(own.run(async () => {
      const left = await current.end.letGo()
      for (const exit of left.exits) exit.then(noteExit)
    }), CLOSED_WITHIN_MS)
    tryAgain()
  }

  function tryAgain () {
    if (stopper !== null) return openAgain()
    pause = lent.scopes.outside(() => setTimeout(openAgain, pauseMs))
    pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)
  }

  /** @param {import('../keeper/link.js').Exit} exit */
  function noteExit (exit) {
    exits.push(exit)
    const { app } = opened ?? {}
    if (app) scope?.call(() => app.supervisor.reaped(exit))
  }

  async function openAgain () {
    if (pause) clearTimeout(pause)
    pause = null
    if (isHandedOver) return
    opening = open()
    await opening
  }

  /** Only a part of the host ends what it has left. @param {string} actor */
  function openToStop (actor) {
    stopper = actor
    openAgain()
  }

  /** Leaves it to another master, for which this one is as if it had never been. @param {Opened} current @param {string} why */
  async function giveBack ({ end }, why) {
    opened = null
    isClosing = true
    await scope?.run(() => end.move(`the app did not move into the host: ${why}`)).catch((error) => lent.log.error({ err: error, app: name }, 'an app could not be given back as it should'))
    close('failed', why)
  }

  /** @param {number} exitCode @param {'stopped' | 'failed'} next @param {string | null} why */
  async function endWith (exitCode, next, why) {
    const current = opened
    if (!current) return
    opened = null
    isClosing = true
    await current.end.stop(exitCode).catch((error) => { why ??= errorText(error) })
    if (next === 'stopped' && !isLeaving) isKept = false
    close(next, why)
  }

  /** @param {'stopped' | 'failed'} next @param {string | null} why */
  function close (next, why) {
    if (pause) clearTimeout(pause)
    pause = null
    opened = null
    present = null
    isClosing = false
    stopper = null
    scope?.close()
    change(next, why)
    closed.reach()
  }
}

/**
 * @typedef {{ app: import('../app/app.js').App, end: ReturnType<typeof createEnd> }} Opened
 * @typedef {{ app: import('../app/app.js').App, services: import('../app/app.js').HostServices, own: import('./app-scopes.js').AppScope }} Prepared
 */
