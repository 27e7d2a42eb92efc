import { createEnd } from '../app/end.ts'
import { openApp, type HostServices } from '../app/app.ts'
import type { RunsStore } from '../app/runs.ts'
import { recordPast, startWorkers, watchDataDir } from '../app/start.ts'
import { takePolicy } from '../cluster/policy.ts'
import { followNext } from '../handover/old-master.ts'
import { createClosers } from '../system/closers.ts'
import { openDataDir } from '../system/data-dir.ts'
import { createLog, type Log } from '../system/log.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { prefixOf, type Lines } from '../terminal.ts'
import { createAnnouncement, type Address } from './announcement.ts'
import { untilDoubted } from './until-served.ts'
import type { AppOrder } from '../config/orders.ts'
import type { NewEvent } from '../events/stream.ts'
import type { AppSource } from '../app/app.ts'
import type { AppLinks, LinkOptions } from '../keeper/app-links.ts'
import type { AppScopes } from './app-scopes.ts'
import type { Turns } from './turns.ts'
import type { JointUpgrade } from '../handover/joint-upgrade.ts'
import type { FleetMembership } from './fleet-membership.ts'
import type { AppState } from '../config/app-states.ts'
import type { Config } from '../config/config.ts'
import type { Exit } from '../keeper/link.ts'

export type AppPart = Awaited<ReturnType<typeof openAppPart>>
/** A part that has failed may not be able to close either. */
const CLOSED_WITHIN_MS = 3000

/** What a host lends each of its apps. */
export type Lent = {
  links: AppLinks,
  scopes: AppScopes,
  /** of the host */
  log: Log,
  terminalOf: (name: string) => Lines,
  streams: HostServices['streams'],
  software: HostServices['software'],
  others: HostServices['others'],
  /** of the apps that start */
  turns: Turns,
  /** of the apps that are being deployed */
  rolloutTurns: Turns,
  upgrade: JointUpgrade,
  addressOf: (name: string) => Address,
  tellHostOf?: (name: string) => HostServices['tellHost'],
  fleetMembership: Pick<FleetMembership, 'isWanted' | 'of' | 'enter'>
}

/**
 * What a part goes on with. `fault`: what has ended the part before it in this process; `exits`: how the workers and
 * runs have ended that such a part has left; `before`: the other master that the app comes from.
 */
type Origin = Required<Pick<LinkOptions, 'fault' | 'exits' | 'before'>>

/**
 * What a part asks of whoever has opened it, and tells them. `state`: the state of the app, for its fleet; `onDoubted`:
 * it does not look as if the app would get ready, and why; `onBlocked`: it cannot start; `onFinished`: its workers have
 * ended as they were told.
 */
type Beginning = { state: () => AppState, onRunning: () => void, onDoubted: (reason: string) => void,
  onBlocked: (reason: string) => void, onFinished: () => void }

/**
 * Opens the part of an app in this process: all that the app has here, from its data folder to its workers. It is
 * opened once and leaves once, and what is thrown in it is its own fault: whoever wants the app here again opens
 * another part.
 * @throws what a start throws; then nothing of it is open
 */
export async function openAppPart ({ name, order, config, origin, reload, source, isOrdered, runs }:
  & Pick<AppSource, 'reload' | 'source' | 'isOrdered'>
  & {
    name: string,
    /** that it comes from */
    order: AppOrder,
    config: Config,
    origin: Origin,
    /** `before`: of a deck that it comes from */
    runs: (before: () => unknown) => RunsStore
  }, lent: Lent)
{
  const fault: PromiseWithResolvers<unknown> = Promise.withResolvers()
  const closers = createClosers()
  const scope = lent.scopes.open(name, { onFault (error) {
    lent.log.error({ err: error, app: name }, 'the part of the host for an app failed')
    fault.resolve(error)
  } })
  const { app, services } = await scope.run(() => openInside().catch(closeAgain))
  const end = createEnd(app, closers)
  /** Resolves once it has left. */
  let leaving: Promise<void> | null = null

  return {
    app,

    /** of its data folder */
    token: app.dataDir.token(),

    /** The first thing that is thrown in it and that nobody catches, whenever that is. */
    fault: fault.promise,

    /** Whether nothing has made it leave yet. */
    get isOpen () {
      return leaving === null
    },

    /**
     * Resolves once it has left; undefined: nothing has made it leave. It never rejects: whoever makes it leave hears
     * what goes wrong.
     */
    get left () {
      return leaving?.catch(() => {})
    },

    /** For its history. */
    tell (event: Pick<NewEvent, 'type' | 'release' | 'message'>) {
      scope.call(() => app.events.publish({ actor: 'system', ...event }))
    },

    /** Does what somebody else wants of it, and whatever follows from that, as a part of the app. */
    run: <T>(work: () => T): T => scope.run(work),

    /** Its workers start, or go on. */
    begin (how: Beginning) {
      scope.call(() => beginInside(how))
    },

    /** `exit`: of a process that is no child of this one, or that a part before has started */
    reaped (exit: Exit) {
      scope.call(() => app.supervisor.reaped(exit))
    },

    /** `exitCode`: 1: without any grace */
    stop: (exitCode: number) => leave(() => end.stop(exitCode)),

    /** The next master has it. */
    handOver: () => leave(end.handOver),

    /** It goes on in another process. */
    move: (message: string) =>
      leave(async () => {
        await end.move(message)
      }),

    /** Its workers serve on, and its jobs run on, for the next part. `onExit`: of one of them. */
    letGo: (onExit: (exit: Exit) => void) =>
      leave(() => waitAtMost(letGoInside(onExit).catch(noteTrouble), CLOSED_WITHIN_MS))
  }

  async function openInside () {
    takePolicy(config.dispatch)
    const dataDir = openDataDir(config.dataDir)
    const keeper = closers.add(lent.links.of(name, { ...origin, call: scope.call }),
      (_, { hasFailed }) => lent.links.close(name, { keepsSockets: hasFailed }))
    const services = { ...lent, keeper, upgrade: lent.upgrade.of(name), turns: lent.turns.of(name),
      rolloutTurns: lent.rolloutTurns.of(name), closers,
      log: closers.add(createLog(dataDir.logFile), ({ close }) => close()), terminal: lent.terminalOf(name),
      tellHost: lent.tellHostOf?.(name), streams: { ...lent.streams, prefix: prefixOf(name) },
      fleet: () => lent.fleetMembership.of(name), joinsFleet: lent.fleetMembership.isWanted,
      publicUrl: () => lent.addressOf(name).publicUrl, isMove: origin.before !== null }
    services.terminal.resolved(config)
    if (dataDir.away) services.terminal.fail(dataDir.away)
    return { services,
      app: await openApp({ config, reload, dataDir, environment: order.env, order, source, isOrdered,
        runs: runs(dataDir.runs.read) }, services) }
  }

  async function closeAgain (error: unknown): Promise<never> {
    // What its workers listen on is there for the next try.
    const hasFailed = origin.fault !== null
    await closers.close({ handsOver: hasFailed, hasFailed }).catch(() => {})
    scope.close()
    throw error
  }

  function beginInside ({ state, onRunning, onDoubted, onBlocked, onFinished }: Beginning) {
    const { supervisor, logs, events } = app
    const { announce, register, withdraw } = createAnnouncement(app, services, () => lent.addressOf(name))
    logs.start()
    register()
    closers.add(withdraw, (_, { handsOver }) => {
      if (!handsOver) withdraw()
    })
    announce()
    untilDoubted(app).then(onDoubted)
    startWorkers(app, services, recordPast(app, services))
    watchDataDir(app, services)
    events.subscribe(({ type }) => {
      if (type === 'history.recovered') announce()
    })
    followNext({ keeper: services.keeper, supervisor, events })
    services.keeper.on('reaped', supervisor.reaped)
    closers.add(
      lent.fleetMembership.enter({ app: name, deck: app.deck, state, folder: app.dataDir.folder,
        root: app.config.releases.root, url: lent.addressOf(name).publicUrl, log: services.log, scope }),
      (leave) => leave()
    )
    supervisor.running.then(onRunning)
    supervisor.startBlocked.then(({ message }) => onBlocked(message))
    supervisor.finished.then(onFinished)
  }

  async function letGoInside (onExit: (exit: Exit) => void) {
    const { exits } = await end.letGo()
    for (const exit of exits) exit.then(onExit)
  }

  function noteTrouble (error: unknown) {
    lent.log.error({ err: error, app: name }, 'the part of the host for an app could not let go as it should')
  }

  function leave (work: () => Promise<void>): Promise<void> {
    leaving ??= scope.run(work).finally(scope.close)
    return leaving
  }
}
