import { createEnd } from '../app/end.js'
import { openApp } from '../app/app.js'
import { recordPast, startWorkers, watchDataDir } from '../app/start.js'
import { takePolicy } from '../cluster/policy.js'
import { loadConfig } from '../config/config.js'
import { errorText } from '../errors.js'
import { followNext } from '../handover/old-master.js'
import { createClosers } from '../system/closers.js'
import { openDataDir } from '../system/data-dir.js'
import { createDeferred } from '../system/deferred.js'
import { closeLog, createLog } from '../system/log.js'
import { createAnnouncement } from './announcement.js'

/** @typedef {ReturnType<typeof createHostedApp>} HostedApp */
/** @typedef {import('./app-list.js').AppOrder} AppOrder */
/** @typedef {'waiting' | 'starting' | 'running' | 'stopping' | 'stopped' | 'failed'} AppState */

/**
 * What a host lends each of its apps.
 * @typedef {object} Lent
 * @property {import('../keeper/app-links.js').AppLinks} links
 * @property {(name: string) => import('../terminal.js').Lines} terminalOf
 * @property {import('../app/app.js').HostServices['streams']} streams
 * @property {import('../app/app.js').HostServices['software']} software
 * @property {import('../app/app.js').HostServices['others']} others
 * @property {import('../app/turn.js').Turns} turns
 * @property {import('../handover/joint-upgrade.js').JointUpgrade} upgrade
 * @property {(name: string) => import('./announcement.js').Address} addressOf
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
  /** Resolves once nothing of it is left in this process. @type {ReturnType<typeof createDeferred<void>>} */
  let closed = createDeferred()
  closed.reach()
  let isKept = !isStopped
  /** By whom it is to stop, where it has just begun to open. @type {string | null} */
  let stopper = null
  let isLeaving = false
  /** Nothing begins any more. */
  let isHandedOver = false
  /** Resolves once it is open, or cannot be. @type {Promise<unknown>} */
  let opening = Promise.resolve()
  let isClosing = false

  return {
    name,
    dataDir: folder,
    get order () { return order },
    get state () { return state },
    get reason () { return reason },
    get config () { return config },
    get opened () { return opened },
    /** Whether it is to run when the host starts. */
    get isKept () { return isKept },
    get closed () { return closed.reached },

    /** @param {AppOrder} next  counts from its next start on */
    changeOrder (next) { order = next },

    /**
     * Starts it, unless it runs.
     * @param {{ untilReady?: Promise<string | null> }} [how]  resolves once the apps that it depends on are ready, with the reason why one is not
     */
    async start ({ untilReady } = {}) {
      isKept = true
      if (state !== 'stopped' && state !== 'failed') return
      if (untilReady) {
        change('waiting')
        const missing = await untilReady
        // It may have been stopped meanwhile.
        if (!isIn('waiting') || isHandedOver) return
        if (missing !== null) return change('failed', missing)
      }
      opening = open()
      await opening
    },

    /** Lets its workers finish. @param {string} actor */
    stop (actor) {
      isKept = false
      if (state === 'waiting' || state === 'failed') return change('stopped')
      drain(actor)
    },

    /** The same, because the host ends: it is started again with the host. @param {string} actor */
    leave (actor) {
      isLeaving = true
      if (state === 'waiting') return change('stopped')
      drain(actor)
    },

    /** Ends what is left of it. @param {number} exitCode 1: without any grace */
    async end (exitCode) {
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
      return { begin: () => run(prepared) }
    },

    /** It could not be opened in an upgrade that has succeeded without it. @param {unknown} error */
    fail (error) { close('failed', errorText(error)) },

    /** The next master of an upgrade has it. */
    async handOver () {
      isHandedOver = true
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
    onChange()
  }

  /** @param {string} actor */
  function drain (actor) {
    if (state === 'stopped' || state === 'failed' || state === 'stopping') return
    stopper = actor
    opened?.app.deck.dispatch({ type: 'stop', actor })
    change('stopping')
  }

  /** @param {string} [launchIn] the folder in which a script is looked up */
  async function readConfig (launchIn) {
    const { flags, env, cwd, config: file, app } = order
    return await loadConfig({ flags: { ...flags, name, config: file, app }, env, cwd, isAgain: true, isApart: true, launchIn })
  }

  async function open () {
    try {
      run(await prepare())
    } catch (error) {
      close('failed', errorText(error))
    }
  }

  /** @returns {Promise<Prepared>} */
  async function prepare () {
    closed = createDeferred()
    change('starting')
    const closers = createClosers()
    try {
      config = await readConfig()
      takePolicy(config.dispatch)
      const dataDir = openDataDir(config.dataDir)
      const keeper = closers.add(lent.links.of(name), () => lent.links.close(name))
      const services = {
        ...lent,
        keeper,
        upgrade: lent.upgrade.of(name),
        closers,
        log: closers.add(createLog(dataDir.logFile), closeLog),
        terminal: lent.terminalOf(name),
        fleet: () => null
      }
      if (config.launch) services.terminal.resolved(config.launch)
      if (dataDir.away) services.terminal.fail(dataDir.away)
      return { services, app: await openApp({ config, reload: readConfig, dataDir, environment: order.env }, services) }
    } catch (error) {
      await closers.close().catch(() => {})
      throw error
    }
  }

  /** @param {Prepared} prepared */
  function run ({ app, services }) {
    const end = createEnd(app, services.closers)
    opened = { app, end }
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
    supervisor.running.then(() => { if (state === 'starting') change('running') })
    supervisor.startBlocked.then(({ message }) => endWith(1, 'failed', message))
    supervisor.finished.then(() => endWith(0, 'stopped', null))
    if (stopper !== null) app.deck.dispatch({ type: 'stop', actor: stopper })
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
    opened = null
    isClosing = false
    stopper = null
    change(next, why)
    closed.reach()
  }
}

/**
 * @typedef {{ app: import('../app/app.js').App, end: ReturnType<typeof createEnd> }} Opened
 * @typedef {{ app: import('../app/app.js').App, services: import('../app/app.js').HostServices }} Prepared
 */
