import { createEnd } from '../app/end.js'
import { openApp } from '../app/app.js'
import { recordPast, startWorkers, watchDataDir } from '../app/start.js'
import { takePolicy } from '../cluster/policy.js'
import { followNext } from '../handover/old-master.js'
import { createClosers } from '../system/closers.js'
import { openDataDir } from '../system/data-dir.js'
import { createLog } from '../system/log.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { prefixOf } from '../terminal.js'
import { createAnnouncement } from './announcement.js'
import { readConfigOf } from './order-config.js'

/** @typedef {Awaited<ReturnType<typeof openAppPart>>} AppPart */
/** @typedef {import('./app-list.js').AppOrder} AppOrder */
/** A part that has failed may not be able to close either. */
const CLOSED_WITHIN_MS = 3000

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
 * @property {import('./turns.js').Turns} turns  of the apps that start
 * @property {import('./turns.js').Turns} rolloutTurns  of the apps that are being deployed
 * @property {import('../handover/joint-upgrade.js').JointUpgrade} upgrade
 * @property {(name: string) => import('./announcement.js').Address} addressOf
 * @property {Pick<import('./fleet-membership.js').FleetMembership, 'isWanted' | 'of' | 'enter'>} fleetMembership
 */

/**
 * What a part goes on with. `fault`: what has ended the part before it in this process; `exits`: how the workers and runs have ended that
 * such a part has left; `before`: the other master that the app comes from.
 * @typedef {Required<Pick<import('../keeper/app-links.js').LinkOptions, 'fault' | 'exits' | 'before'>>} Origin
 */

/**
 * What a part asks of whoever has opened it, and tells them. `state`: the state of the app, for its fleet; `onBlocked`: the app cannot
 * start, and why; `onFinished`: its workers have ended as they were told.
 * @typedef {{ state: () => import('../config/app-states.js').AppState, onRunning: () => void, onBlocked: (reason: string) => void, onFinished: () => void }} Beginning
 */

/**
 * Opens the part of an app in this process: all that the app has here, from its data folder to its workers. It is opened once and
 * leaves once, and what is thrown in it is its own fault: whoever wants the app here again opens another part.
 * @param {{ name: string, order: AppOrder, config: import('../config/config.js').Config, origin: Origin }} app
 * @param {Lent} lent
 * @throws what a start throws; then nothing of it is open
 */
export async function openAppPart ({ name, order, config, origin }, lent) {
  /** @type {PromiseWithResolvers<unknown>} */
  const fault = Promise.withResolvers()
  const closers = createClosers()
  const scope = lent.scopes.open(name, {
    onFault (error) {
      lent.log.error({ err: error, app: name }, 'the part of the host for an app failed')
      fault.resolve(error)
    }
  })
  const { app, services } = await scope.run(() => openInside().catch(closeAgain))
  const end = createEnd(app, closers)
  /** Resolves once it has left. @type {Promise<void> | null} */
  let leaving = null

  return {
    app,

    /** The first thing that is thrown in it and that nobody catches, whenever that is. */
    fault: fault.promise,

    /** Whether nothing has made it leave yet. */
    get isOpen () { return leaving === null },

    /** Resolves once it has left; undefined: nothing has made it leave. It never rejects: whoever makes it leave hears what goes wrong. */
    get left () { return leaving?.catch(() => {}) },

    /** Does what somebody else wants of it, and whatever follows from that, as a part of the app. @template T @param {() => T} work @returns {T} */
    run: (work) => scope.run(work),

    /**
     * Its workers start, or go on.
     * @param {Beginning} how
     */
    begin (how) { scope.call(() => beginInside(how)) },

    /** @param {import('../keeper/link.js').Exit} exit of a process that is no child of this one, or that a part before has started */
    reaped (exit) { scope.call(() => app.supervisor.reaped(exit)) },

    /** @param {number} exitCode 1: without any grace */
    stop: (exitCode) => leave(() => end.stop(exitCode)),

    /** The next master has it. */
    handOver: () => leave(end.handOver),

    /** It goes on in another process. @param {string} message */
    move: (message) => leave(async () => { await end.move(message) }),

    /**
     * Its workers serve on, and its jobs run on, for the next part.
     * @param {(exit: import('../keeper/link.js').Exit) => void} onExit  of one of them
     */
    letGo: (onExit) => leave(() => waitAtMost(letGoInside(onExit).catch(noteTrouble), CLOSED_WITHIN_MS))
  }

  async function openInside () {
    takePolicy(config.dispatch)
    const dataDir = openDataDir(config.dataDir)
    const keeper = closers.add(lent.links.of(name, { ...origin, call: scope.call }), (_, { hasFailed }) => lent.links.close(name, { keepsSockets: hasFailed }))
    const services = {
      ...lent,
      keeper,
      upgrade: lent.upgrade.of(name),
      turns: lent.turns.of(name),
      rolloutTurns: lent.rolloutTurns.of(name),
      closers,
      log: closers.add(createLog(dataDir.logFile), ({ close }) => close()),
      terminal: lent.terminalOf(name),
      streams: { ...lent.streams, prefix: prefixOf(name) },
      fleet: () => lent.fleetMembership.of(name),
      joinsFleet: lent.fleetMembership.isWanted,
      publicUrl: () => lent.addressOf(name).publicUrl,
      isMove: origin.before !== null
    }
    if (config.launch) services.terminal.resolved(config.launch)
    if (dataDir.away) services.terminal.fail(dataDir.away)
    return { services, app: await openApp({ config, reload: (launchIn) => readConfigOf(order, { name, launchIn }), dataDir, environment: order.env }, services) }
  }

  /** @param {unknown} error @returns {Promise<never>} */
  async function closeAgain (error) {
    // What its workers listen on is there for the next try.
    const hasFailed = origin.fault !== null
    await closers.close({ handsOver: hasFailed, hasFailed }).catch(() => {})
    scope.close()
    throw error
  }

  /** @param {Beginning} how */
  function beginInside ({ state, onRunning, onBlocked, onFinished }) {
    const { supervisor, logs, events } = app
    const { announce, register, withdraw } = createAnnouncement(app, services, () => lent.addressOf(name))
    logs.start()
    register()
    closers.add(withdraw, (_, { handsOver }) => { if (!handsOver) withdraw() })
    announce()
    startWorkers(app, services, recordPast(app, services))
    watchDataDir(app, services)
    events.subscribe(({ type }) => { if (type === 'history.recovered') announce() })
    followNext({ keeper: services.keeper, supervisor, events })
    services.keeper.on('reaped', supervisor.reaped)
    closers.add(lent.fleetMembership.enter({
      app: name,
      deck: app.deck,
      state,
      folder: app.dataDir.folder,
      root: app.config.releases.root,
      url: lent.addressOf(name).publicUrl,
      log: services.log,
      scope
    }), (leave) => leave())
    supervisor.running.then(onRunning)
    supervisor.startBlocked.then(({ message }) => onBlocked(message))
    supervisor.finished.then(onFinished)
  }

  /** @param {(exit: import('../keeper/link.js').Exit) => void} onExit */
  async function letGoInside (onExit) {
    const { exits } = await end.letGo()
    for (const exit of exits) exit.then(onExit)
  }

  /** @param {unknown} error */
  function noteTrouble (error) {
    lent.log.error({ err: error, app: name }, 'the part of the host for an app could not let go as it should')
  }

  /** @param {() => Promise<void>} work @returns {Promise<void>} */
  function leave (work) {
    leaving ??= scope.run(work).finally(scope.close)
    return leaving
  }
}
