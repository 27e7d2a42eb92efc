import { DeckError, errorText } from '../errors.ts'
import { noteExit, type Exit, type KeptData, type Predecessor } from '../keeper/link.ts'
import { openAppPart, type AppPart, type Lent } from './app-part.ts'
import { valueIn } from '../config/value-in.ts'
import { differencesOf, type Differences } from '../app/differences.ts'
import { areServing, hasLeftWorkers } from '../handover/checkpoint.ts'
import { wayBack } from '../app/way-back.ts'
import { createRecovery, OF_PART, OF_START } from './recovery.ts'
import { untilReplaced, untilServed } from './until-served.ts'
import { restoredConfig, type Config } from '../config/config.ts'
import type { AppOrder } from '../config/orders.ts'
import type { AppRecord, Records } from './records.ts'
import type { ConfigFile } from '../config/apps.ts'
import type { AppState } from '../config/app-states.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

export type HostedApp = ReturnType<typeof createHostedApp>
/** Who wants it to stop. `comesBack`: it is started again with the host. */
type StopOrder = { actor: string, comesBack: boolean }

/** What another master has left of an app. */
export type Arrival = {
  /** that master */
  before: Predecessor,
  /** what it is, in words */
  from: string,
  /** by the keeper's key */
  sockets: ReadonlyMap<string, { handle: SocketHandle, data?: KeptData }>,
  /** is replaced by whoever wants to know how its workers end */
  onExit: (exit: Exit) => void
}

/**
 * An app of a host, which runs or does not. What there is of it in this process is its part; where that fails, it is
 * made anew.
 */
export function createHostedApp (first: AppRecord, lent: Lent, { onChange, onRetry, records, isRemembered }: {
  onChange: () => void,
  /** it could not be started, and is due again */
  onRetry: () => void,
  records: Pick<Records, 'save' | 'stored' | 'isStored'>,
  /** not: another master has the records, or the app is not the host's yet */
  isRemembered: () => boolean
}) {
  const { id, name, dataDir } = first
  let record = first
  let status: { state: AppState, reason: string | null } = { state: 'stopped', reason: null }
  /** as it was read last */
  let config: Config | null = null
  /** The one that is here; after a fault, the one that has failed, until the next is made. */
  let part: AppPart | null = null
  /** Resolves once it is open, or cannot be. */
  let opening: Promise<unknown> = Promise.resolve()
  /** Resolves once nothing of it is left in this process. */
  let closed: PromiseWithResolvers<void> = Promise.withResolvers()
  closed.resolve()
  let stopOrder: StopOrder | null = null
  /** The next master has it, so nothing begins here any more. */
  let isHandedOver = false
  const recovery = createRecovery(OF_PART)
  const retry = createRecovery(OF_START)
  /** Whether a person's order has not been ready yet: then the next try is for that order, too. */
  let isOrderOpen = false
  /** How often it could not be started since it ran last. */
  let failures = 0
  /** How those workers and runs of jobs have ended that a part has left. */
  const exits: Exit[] = []

  return {
    name,
    id,
    dataDir,
    get record () {
      return record
    },
    /** As somebody has asked last. */
    get order () {
      return record.order
    },
    get state () {
      return status.state
    },
    get reason () {
      return status.reason
    },
    get config () {
      return config
    },
    /** Its part in this process, unless that is about to leave. */
    get part () {
      return part?.isOpen ? part : null
    },
    /** Its part, which answers requests also while it leaves; null: the app has failed, or is closed. */
    get answering () {
      return isIn('failed') ? null : part
    },
    /** What this process has of it, also while that leaves. */
    get present () {
      return part?.app ?? null
    },
    /** Whether it has failed for a while only: its part of this host is made anew. */
    get isRetried () {
      return isBeingRecovered() && record.wish === 'running'
    },
    /** Resolves once it is open, or cannot be. */
    get opening () {
      return opening
    },
    get failures () {
      return failures
    },
    /** When it is started again, as it could not be; ISO 8601. */
    get nextTryAt () {
      return retry.dueAt
    },
    get closed () {
      return closed.promise
    },

    /** Changes what is remembered of it. */
    change,

    /** What an order has that does not run. It has to be open. `config`: as the order says now */
    compare (order: AppOrder, config: Config): Differences {
      const { app } = part as AppPart
      return differencesOf(app, record.runs?.order ?? record.order, order, config)
    },

    /** The order counts from the next deploy on, and what needs none counts now. */
    apply (order: AppOrder, next: Config, { actor }: { actor: string }) {
      const { app: { deck, settings }, run } = part as AppPart
      const changed = settings.changesIn(next, settings.current).filter(({ takesEffect }) => takesEffect === 'now')
      run(() => {
        deck.configure({ actor,
          wanted: Object.fromEntries(changed.map(({ name }) => [name, valueIn(next, name.split('.'))])) })
        if (next.workers !== deck.snapshot().desiredWorkers)
          deck.dispatch({ type: 'scale', workers: next.workers, actor })
      })
      change({ order })
    },

    /** Resolves once the disk has what is remembered of it. @throws {DeckError} not-stored */
    async stored () {
      await part?.app.kept.stored()
      await records.stored(id)
    },

    /**
     * Starts it, unless it runs. `isOrdered`: by somebody: else it goes on with what ran; `untilReady`: resolves once
     * the apps that it depends on are ready, with the reason why one is not; `file`: its config file, as it has just
     * been read.
     */
    async start (
      { isOrdered, untilReady, file }: { isOrdered: boolean, untilReady?: Promise<string | null>,
        file?: ConfigFile | null }
    ) {
      isOrderOpen ||= isOrdered
      if (record.wish !== 'running') change({ wish: 'running' })
      retry.endPause()
      if (isBeingRecovered()) {
        stopOrder = null
        if (recovery.isPausing) await openAgain()
        return
      }
      if (!isIn('stopped', 'failed')) return
      if (untilReady) {
        become('waiting')
        const missing = await untilReady
        // It may have been stopped meanwhile.
        if (!isIn('waiting') || isHandedOver) return
        if (missing !== null) return close('failed', missing)
      }
      await open({ isOrdered: isOrderOpen, file })
    },

    /**
     * Goes on with what another master has left, and waits until its own workers have taken the place of those.
     * @throws {DeckError} start-failed; then it is closed here, and those workers serve on
     */
    async adopt (arrival: Arrival, actor: string) {
      arrival.onExit = keepExit
      await open({ before: arrival.before })
      const opened = part
      if (!opened?.isOpen) throw new DeckError('start-failed', String(status.reason))
      // If somebody stops it meanwhile, or its part here fails and is made anew, that is the host's matter already.
      const missing = await Promise.race([untilServed(opened.app),
        Promise.race([opened.fault, closed.promise]).then(() => null)])
      if (missing) {
        await giveBack(opened, missing)
        throw new DeckError('start-failed', missing)
      }
      opened.app.events.publish({ type: 'app.adopted', actor,
        message: `moved into the host as ${name}, from ${arrival.from}` })
    },

    /**
     * Starts it in the place of a program of no deck, which serves on meanwhile, and waits until its workers serve
     * where that one does.
     * @param how `from`: that program, in words; `abandoned`: whoever wants it has gone
     * @throws {DeckError} start-failed; then none of its workers is left
     */
    async replace ({ from, abandoned }: { from: string, abandoned: Promise<string> }, actor: string) {
      await open({})
      const opened = part
      if (!opened?.isOpen) throw new DeckError('start-failed', String(status.reason))
      const ended = closed.promise.then(() => status.reason ?? 'it was stopped')
      const missing = await Promise.race([untilReplaced(opened.app), opened.fault.then(errorText), ended, abandoned])
      if (missing === null) {
        opened.app.events.publish({ type: 'app.adopted', actor,
          message: `started in this host as ${name}, in the place of ${from}` })
        return
      }
      this.stop(actor)
      await closed.promise
      throw new DeckError('start-failed', missing)
    },

    /** Lets its workers finish. */
    stop (actor: string) {
      change({ wish: 'stopped' })
      this.giveUp()
      if (isIn('failed') && !isBeingRecovered()) return become('stopped')
      drain({ actor, comesBack: false })
    },

    /** It is not started again where it has failed. */
    giveUp () {
      retry.endPause()
      isOrderOpen = false
      failures = 0
    },

    /** Ends it at once, where it is open. */
    async kill (actor: string) {
      this.stop(actor)
      if (part?.isOpen) await endPart(part, { exitCode: 1 })
    },

    /** Lets its workers finish because the host ends: it is started again with the host. */
    leave (actor: string) {
      retry.endPause()
      drain({ actor, comesBack: true })
    },

    /** Ends what is left of it, as the host ends. `exitCode`: 1: without any grace. */
    async end (exitCode: number) {
      retry.endPause()
      if (isBeingRecovered()) close('stopped')
      if (isIn('waiting')) become('stopped')
      stopOrder ??= { actor: 'system', comesBack: true }
      if (part?.isOpen) await endPart(part, { exitCode })
    },

    /**
     * Opens it before its host is there: in an upgrade its workers start beside those of the other master, and this
     * waits until that one has gone. Returns `begin`: the host is there, too.
     * @throws {import('../errors.ts').DeckError} upgrade-failed, and what a start throws
     */
    async openFirst (how: { isOrdered?: boolean, refused?: string } = {}) {
      const opened = part = await openPart(how)
      return { part: opened, begin: () => begin(opened, how) }
    },

    /** It could not be opened in an upgrade that has succeeded without it. */
    fail (error: unknown) {
      close('failed', errorText(error))
    },

    /** The next master of an upgrade has it. */
    async handOver () {
      isHandedOver = true
      recovery.endPause()
      retry.endPause()
      await opening
      if (isIn('stopping')) await closed.promise
      await (part?.isOpen ? part.handOver() : part?.left)
    }
  }

  function isIn (...states: AppState[]) {
    return states.includes(status.state)
  }

  function change (changed: Partial<Pick<AppRecord, 'wish' | 'order' | 'runs'>>) {
    record = { ...record, ...changed }
    if (isRemembered()) records.save(record)
  }

  function become (state: AppState, reason: string | null = null) {
    status = { state, reason }
    if (part === null && isIn('stopped', 'failed')) lent.links.closeUnserved(id, () => hasLeftWorkers(dataDir))
    // Whoever hears of it is no part of the app.
    lent.scopes.outside(onChange)
  }

  /** Whether its part has failed, and the next one is yet to be opened. */
  function isBeingRecovered () {
    return isIn('failed') && (part !== null || recovery.isPausing)
  }

  function drain (wanted: StopOrder) {
    if (isIn('waiting')) return become('stopped')
    if (!isBeingRecovered() && !isIn('starting', 'running')) return
    stopOrder = wanted
    // Workers that a part has left can only be ended by another part, which is opened for that: at once, or as soon as
    // the one before has let go of them.
    if (!isBeingRecovered()) drainPart(wanted)
    else if (recovery.isPausing) openAgain()
  }

  /** A part that is not open yet is drained once it is. */
  function drainPart ({ actor }: StopOrder) {
    if (part?.isOpen) part.app.deck.dispatch({ type: 'stop', actor })
    become('stopping')
  }

  /**
   * `file`: as it has just been read; `before`: the master that it comes from; `refused`: why what ran starts in place
   * of what was ordered
   */
  async function open (
    how: { isOrdered?: boolean, file?: ConfigFile | null, before?: Arrival['before'] | null, refused?: string }
  ) {
    opening = lent.scopes.outside(() => openPart(how)).then((opened) => begin(opened, how)).catch((error) => {
      const reason = [how.refused, errorText(error)].filter(Boolean).join('; and what ran cannot be started: ')
      if (how.isOrdered && record.runs !== null && stopOrder === null && !isHandedOver)
        return openInstead(`the order cannot be started: ${reason}`)
      if (recovery.fault === null || stopOrder !== null) return close('failed', reason)
      become('failed', `its part of this host failed, and cannot be made anew: ${errorText(error)}`)
      tryAgain()
    })
    await opening
  }

  async function openPart (
    { isOrdered = false, file, before = null, refused }: Parameters<typeof open>[0]
  ): Promise<AppPart> {
    const { fault } = recovery
    if (part === null) closed = Promise.withResolvers()
    const { runs } = record
    become('starting', refused === undefined ? null : `${refused}; ${runs?.release.id} runs instead`)
    const ran = isOrdered || !runs?.variables ? null : await restoredConfig(runs.config)
    config = ran ?? await lent.readConfig(record.order, { name, file })
    return await openAppPart({ id, name, order: (ran && runs?.order) ?? record.order, config,
      origin: { fault, exits, before }, isOrdered,
      reload: (launchIn) => lent.readConfig(record.order, { name, isAgain: true, launchIn }),
      source: () => ({ order: lent.keepsOrders ? record.order : null, inherited: record.order.env }),
      runs: { read: () => record.runs, save: noteRuns, stored: () => records.stored(id),
        isStored: () => records.isStored(id) } }, lent)
  }

  function noteRuns (runs: NonNullable<AppRecord['runs']>) {
    const isAnother = runs.release.id !== record.runs?.release.id
    change({ runs })
    // A refused start is past once another release runs.
    if (isAnother && isIn('running') && status.reason !== null) become('running')
  }

  /** `isOrdered`: what ran takes its place if it does not get ready; `refused`: it does so here, and why */
  function begin (opened: AppPart, { isOrdered = false, refused }: { isOrdered?: boolean, refused?: string } = {}) {
    recovery.end()
    part = opened
    opened.begin({ state: () => status.state, onRunning () {
      if (!isIn('starting')) return
      retry.end()
      isOrderOpen = false
      become('running', status.reason)
      failures = 0
    }, async onDoubted (reason) {
      if (isOrdered) await rollBack(opened, reason)
    }, async onBlocked (reason) {
      if (isOrdered && await rollBack(opened, reason)) return
      await endPart(opened, { exitCode: 1, state: 'failed', reason })
    }, onFinished: () => endPart(opened, { exitCode: 0 }) })
    if (refused !== undefined)
      opened.tell({ type: 'start.rolled-back', release: opened.app.first.release.id, message: status.reason })
    lent.scopes.outside(() => opened.fault.then((error) => onFault(opened, error)))
    if (stopOrder !== null) drainPart(stopOrder)
  }

  /** What was ordered does not get ready: what ran starts in its place. Returns whether it can, and is another one. */
  async function rollBack (current: AppPart, reason: string): Promise<boolean> {
    const { runs, order } = record
    const ran = runs && await restoredConfig(runs.config)
    if (!ran || !config || !current.isOpen || stopOrder !== null || isHandedOver) return false
    // Workers that a master before has left serve on, and would end with this part.
    if (areServing(current.app.restored.left)) return false
    const way = await wayBack(current.app, { runs, config: ran }, { order, config })
    if (way === null || !current.isOpen || stopOrder !== null || isHandedOver) return false
    const refused = `${way.started} did not get ready: ${reason}`
    const whyNot = way.whyNot ?? lent.byNextMaster?.whyNot() ?? null
    if (whyNot !== null) {
      current.tell({ type: 'rollback.refused', release: runs.release.id, message: `${refused}, but ${whyNot}` })
      return false
    }
    const { first: { release }, releases } = current.app
    if (release.id !== runs.release.id) releases.settle({ release: release.id, outcome: 'failed', rollout: null })
    await current.stop(1).catch(() => {})
    // Somebody may have stopped it meanwhile.
    if (stopOrder !== null || isHandedOver) close('stopped')
    else if (lent.byNextMaster) lent.byNextMaster.start(runs, refused)
    else await openInstead(refused)
    return true
  }

  /** `refused`: why what ran starts in place of what was ordered */
  async function openInstead (refused: string) {
    isOrderOpen = false
    await open({ refused })
  }

  /** Its workers serve on, and it is made anew. */
  async function onFault (faulty: AppPart, error: unknown) {
    // It is being closed anyway.
    if (!faulty.isOpen) return
    const { message } = recovery.begin(error)
    const left = faulty.letGo(keepExit)
    become('failed', `its part of this host failed, and is made anew; its workers serve on: ${message}`)
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

  function keepExit (exit: Exit) {
    noteExit(exits, exit)
    if (part?.isOpen) part.reaped(exit)
  }

  /** Leaves it to another master, for which this one is as if it had never been. */
  async function giveBack (current: AppPart, why: string) {
    await current.move(`the app did not move into the host: ${why}`).catch((error) =>
      lent.log.error({ err: error, app: name }, 'an app could not be given back as it should')
    )
    close('failed', why)
  }

  async function endPart (current: AppPart,
    { exitCode, state = 'stopped', reason = null }: { exitCode: number, state?: 'stopped' | 'failed',
      reason?: string | null })
  {
    if (!current.isOpen) return
    await current.stop(exitCode).catch((error) => {
      reason ??= errorText(error)
    })
    if (state === 'stopped' && !stopOrder?.comesBack) {
      // Its own page has stopped it. After an order to the host, somebody may have started it again meanwhile.
      if (stopOrder === null) change({ wish: 'stopped' })
      // What is not kept yet is kept later.
      await records.stored(id).catch(() => {})
    }
    close(state, reason)
  }

  function close (state: 'stopped' | 'failed', reason: string | null = null) {
    recovery.endPause()
    part = null
    // Somebody may have stopped it while its start failed. It has failed all the same where workers of it serve on.
    if (stopOrder !== null && recovery.fault === null) [state, reason] = ['stopped', null]
    stopOrder = null
    if (state === 'failed') {
      failures++
      retry.begin(reason)
      if (record.wish === 'running' && !isHandedOver) lent.scopes.outside(() => retry.later(onRetry))
    }
    become(state, reason)
    closed.resolve()
  }
}
