import { DeckError, errorText } from '../errors.js'
import { noteExit } from '../keeper/link.js'
import { openAppPart } from './app-part.js'
import { readConfigOf } from './order-config.js'
import { createRecovery } from './recovery.js'
import { untilReplaced, untilServed } from './until-served.js'

/** @typedef {ReturnType<typeof createHostedApp>} HostedApp */
/** @typedef {import('./app-list.js').AppOrder} AppOrder */
/** @typedef {import('./app-part.js').AppPart} AppPart */
/** @typedef {import('./app-part.js').Lent} Lent */
/** @typedef {import('../config/apps.js').ConfigFile} ConfigFile */
/** @typedef {import('../config/app-states.js').AppState} AppState */
/**
 * Who wants it to stop. `comesBack`: it is started again with the host.
 * @typedef {{ actor: string, comesBack: boolean }} StopOrder
 */

/**
 * What another master has left of an app.
 * @typedef {object} Arrival
 * @property {import('../keeper/link.js').Predecessor} before  that master
 * @property {string} from  what it is, in words
 * @property {ReadonlyMap<string, { handle: import('../keeper/link.js').SocketHandle, data?: import('../keeper/link.js').KeptData }>} sockets  by the keeper's key
 * @property {(exit: import('../keeper/link.js').Exit) => void} onExit  is replaced by whoever wants to know how its workers end
 */

/**
 * An app of a host, which runs or does not. What there is of it in this process is its part; where that fails, it is made anew.
 * @param {import('./app-list.js').Entry} entry
 * @param {Lent} lent
 * @param {{ onChange: () => void }} hooks
 */
export function createHostedApp ({ name, id, order: firstOrder, dataDir, isStopped }, lent, { onChange }) {
  let order = firstOrder
  let isKept = !isStopped
  /** @type {{ state: AppState, reason: string | null }} */
  let status = { state: 'stopped', reason: null }
  /** @type {import('../config/config.js').Config | null} as it was read last */
  let config = null
  /** The one that is here; after a fault, the one that has failed, until the next is made. @type {AppPart | null} */
  let part = null
  /** Resolves once it is open, or cannot be. @type {Promise<unknown>} */
  let opening = Promise.resolve()
  /** Resolves once nothing of it is left in this process. @type {PromiseWithResolvers<void>} */
  let closed = Promise.withResolvers()
  closed.resolve()
  /** @type {StopOrder | null} */
  let stopOrder = null
  /** The next master has it, so nothing begins here any more. */
  let isHandedOver = false
  const recovery = createRecovery()
  /** How those workers and runs of jobs have ended that a part has left. @type {import('../keeper/link.js').Exit[]} */
  const exits = []

  return {
    name,
    id,
    dataDir,
    get order () { return order },
    get state () { return status.state },
    get reason () { return status.reason },
    get config () { return config },
    /** Its part in this process, unless that is about to leave. */
    get part () { return part?.isOpen ? part : null },
    /** What this process has of it, also while that leaves. */
    get present () { return part?.app ?? null },
    /** Whether it is to run when the host starts. */
    get isKept () { return isKept },
    /** Whether it has failed for a while only: its part of this host is made anew. */
    get isRetried () { return isBeingRecovered() && isKept },
    get closed () { return closed.promise },

    /** @param {AppOrder} next  counts from its next start on */
    changeOrder (next) { order = next },

    /**
     * Starts it, unless it runs.
     * @param {{ untilReady?: Promise<string | null>, file?: ConfigFile | null }} [how]  `untilReady`: resolves once the apps that it depends on are
     *   ready, with the reason why one is not; `file`: its config file, as it has just been read
     */
    async start ({ untilReady, file } = {}) {
      isKept = true
      if (isBeingRecovered()) {
        stopOrder = null
        if (recovery.isPausing) await openAgain()
        return
      }
      if (!isIn('stopped', 'failed')) return
      if (untilReady) {
        change('waiting')
        const missing = await untilReady
        // It may have been stopped meanwhile.
        if (!isIn('waiting') || isHandedOver) return
        if (missing !== null) return change('failed', missing)
      }
      await open({ file })
    },

    /**
     * Goes on with what another master has left, and waits until its own workers have taken the place of those.
     * @param {Arrival} arrival @param {string} actor
     * @throws {DeckError} start-failed; then it is closed here, and those workers serve on
     */
    async adopt (arrival, actor) {
      arrival.onExit = keepExit
      await open({ before: arrival.before })
      const opened = part
      if (!opened?.isOpen) throw new DeckError('start-failed', String(status.reason))
      // If somebody stops it meanwhile, or its part here fails and is made anew, that is the host's matter already.
      const missing = await Promise.race([untilServed(opened.app), Promise.race([opened.fault, closed.promise]).then(() => null)])
      if (missing) {
        await giveBack(opened, missing)
        throw new DeckError('start-failed', missing)
      }
      opened.app.events.publish({ type: 'app.adopted', actor, message: `moved into the host as ${name}, from ${arrival.from}` })
    },

    /**
     * Starts it in the place of a program of no deck, which serves on meanwhile, and waits until its workers serve where that one does.
     * @param {{ from: string, abandoned: Promise<string> }} how  `from`: that program, in words; `abandoned`: whoever wants it has gone
     * @param {string} actor
     * @throws {DeckError} start-failed; then none of its workers is left
     */
    async replace ({ from, abandoned }, actor) {
      await open({})
      const opened = part
      if (!opened?.isOpen) throw new DeckError('start-failed', String(status.reason))
      const ended = closed.promise.then(() => status.reason ?? 'it was stopped')
      const missing = await Promise.race([untilReplaced(opened.app), opened.fault.then(errorText), ended, abandoned])
      if (missing === null) {
        opened.app.events.publish({ type: 'app.adopted', actor, message: `started in this host as ${name}, in the place of ${from}` })
        return
      }
      this.stop(actor)
      await closed.promise
      throw new DeckError('start-failed', missing)
    },

    /** Lets its workers finish. @param {string} actor */
    stop (actor) {
      isKept = false
      if (isIn('failed') && !isBeingRecovered()) return change('stopped')
      drain({ actor, comesBack: false })
    },

    /** Ends it at once, where it is open. @param {string} actor */
    async kill (actor) {
      this.stop(actor)
      if (part?.isOpen) await endPart(part, { exitCode: 1 })
    },

    /** Lets its workers finish because the host ends: it is started again with the host. @param {string} actor */
    leave (actor) { drain({ actor, comesBack: true }) },

    /** Ends what is left of it, as the host ends. @param {number} exitCode 1: without any grace */
    async end (exitCode) {
      if (isBeingRecovered()) close('stopped')
      if (isIn('waiting')) change('stopped')
      stopOrder ??= { actor: 'system', comesBack: true }
      if (part?.isOpen) await endPart(part, { exitCode })
    },

    /**
     * In an upgrade: starts its workers beside those of the other master, and waits until that one has gone.
     * @returns {Promise<{ begin: () => void }>}  `begin`: the host is there, too
     * @throws {import('../errors.js').DeckError} upgrade-failed, and what a start throws
     */
    async openNext () {
      const next = await openPart({})
      return { begin: () => begin(next) }
    },

    /** It could not be opened in an upgrade that has succeeded without it. @param {unknown} error */
    fail (error) { close('failed', errorText(error)) },

    /** The next master of an upgrade has it. */
    async handOver () {
      isHandedOver = true
      recovery.endPause()
      await opening
      if (isIn('stopping')) await closed.promise
      await (part?.isOpen ? part.handOver() : part?.left)
    }
  }

  /** @param {AppState[]} states */
  function isIn (...states) {
    return states.includes(status.state)
  }

  /** @param {AppState} state @param {string | null} [reason] */
  function change (state, reason = null) {
    status = { state, reason }
    // Whoever hears of it is no part of the app.
    lent.scopes.outside(onChange)
  }

  /** Whether its part has failed, and the next one is yet to be opened. */
  function isBeingRecovered () {
    return isIn('failed') && (part !== null || recovery.isPausing)
  }

  /** @param {StopOrder} wanted */
  function drain (wanted) {
    if (isIn('waiting')) return change('stopped')
    if (!isBeingRecovered() && !isIn('starting', 'running')) return
    stopOrder = wanted
    // Workers that a part has left can only be ended by another part, which is opened for that: at once, or as soon as the one before
    // has let go of them.
    if (!isBeingRecovered()) drainPart(wanted)
    else if (recovery.isPausing) openAgain()
  }

  /** @param {StopOrder} by  a part that is not open yet is drained once it is */
  function drainPart ({ actor }) {
    if (part?.isOpen) part.app.deck.dispatch({ type: 'stop', actor })
    change('stopping')
  }

  /** @param {{ file?: ConfigFile | null, before?: Arrival['before'] | null }} how  `file`: as it has just been read; `before`: the master that it comes from */
  async function open (how) {
    opening = lent.scopes.outside(() => openPart(how)).then(begin).catch((error) => {
      if (recovery.fault === null || stopOrder !== null) return close('failed', errorText(error))
      change('failed', `its part of this host failed, and cannot be made anew: ${errorText(error)}`)
      tryAgain()
    })
    await opening
  }

  /** @param {Parameters<typeof open>[0]} how @returns {Promise<AppPart>} */
  async function openPart ({ file, before = null }) {
    const { fault } = recovery
    if (part === null) closed = Promise.withResolvers()
    change('starting')
    config = await readConfigOf(order, { name, file })
    return await openAppPart({ name, order, config, origin: { fault, exits, before } }, lent)
  }

  /** @param {AppPart} opened */
  function begin (opened) {
    recovery.end()
    part = opened
    opened.begin({
      state: () => status.state,
      onRunning () { if (isIn('starting')) change('running') },
      onBlocked: (reason) => endPart(opened, { exitCode: 1, state: 'failed', reason }),
      onFinished: () => endPart(opened, { exitCode: 0 })
    })
    lent.scopes.outside(() => opened.fault.then((error) => onFault(opened, error)))
    if (stopOrder !== null) drainPart(stopOrder)
  }

  /**
   * Its workers serve on, and it is made anew.
   * @param {AppPart} faulty @param {unknown} error
   */
  async function onFault (faulty, error) {
    // It is being closed anyway.
    if (!faulty.isOpen) return
    const { message } = recovery.begin(error)
    const left = faulty.letGo(keepExit)
    change('failed', `its part of this host failed, and is made anew; its workers serve on: ${message}`)
    await left
    // Else the host has ended it meanwhile.
    if (part === faulty) tryAgain()
  }

  function tryAgain () {
    if (stopOrder !== null) return openAgain()
    if (!isHandedOver) lent.scopes.outside(() => recovery.later(openAgain))
  }

  async function openAgain () {
    recovery.endPause()
    if (!isHandedOver) await open({})
  }

  /** @param {import('../keeper/link.js').Exit} exit */
  function keepExit (exit) {
    noteExit(exits, exit)
    if (part?.isOpen) part.reaped(exit)
  }

  /** Leaves it to another master, for which this one is as if it had never been. @param {AppPart} current @param {string} why */
  async function giveBack (current, why) {
    await current.move(`the app did not move into the host: ${why}`).catch((error) => lent.log.error({ err: error, app: name }, 'an app could not be given back as it should'))
    close('failed', why)
  }

  /** @param {AppPart} current @param {{ exitCode: number, state?: 'stopped' | 'failed', reason?: string | null }} how */
  async function endPart (current, { exitCode, state = 'stopped', reason = null }) {
    if (!current.isOpen) return
    await current.stop(exitCode).catch((error) => { reason ??= errorText(error) })
    if (state === 'stopped' && !stopOrder?.comesBack) isKept = false
    close(state, reason)
  }

  /** @param {'stopped' | 'failed'} state @param {string | null} [reason] */
  function close (state, reason = null) {
    recovery.endPause()
    part = null
    stopOrder = null
    change(state, reason)
    closed.resolve()
  }
}
