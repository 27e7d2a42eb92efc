import { createEnd } from '../app/end.ts'
import { openApp, type HostServices } from '../app/app.ts'
import type { Runs, RunsStore } from '../app/runs.ts'
import { recordPast, startWorkers, watchDataDir } from '../app/start.ts'
import { followNext } from '../handover/old-master.ts'
import { createClosers, type Closers } from '../system/closers.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { prefixOf, type Terminal } from '../terminal.ts'
import { createAnnouncement, type Address } from './announcement.ts'
import { untilDoubted } from './until-served.ts'
import type { AppOrder } from '../config/orders.ts'
import type { DataDir } from '../system/data-dir.ts'
import type { Log } from '../system/log.ts'
import type { ConfigFile } from '../config/apps.ts'
import type { Move } from '../deck.ts'
import type { NewEvent } from '../events/stream.ts'
import type { AppSource } from '../app/app.ts'
import type { AppLinks, LinkOptions } from '../keeper/app-links.ts'
import type { AppScope, AppScopes } from './app-scopes.ts'
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
  scopes: Pick<AppScopes, 'outside'> & {
    open: (app: string, hooks: { onFault: (error: unknown) => void }) => AppScope
  },
  /** of the host */
  log: Log,
  terminal: Terminal,
  streams: { stdout: NodeJS.WritableStream, stderr: NodeJS.WritableStream },
  software: HostServices['software'],
  others: HostServices['others'],
  upgrade: JointUpgrade,
  addressOf: (name: string) => Address,
  fleetMembership: Pick<FleetMembership, 'isWanted' | 'of' | 'enter'>
} & AppPolicy

/** How a kind of host treats its apps: see kind.ts. */
export type AppPolicy = {
  /** Returns what each line about an app begins with; null: nothing, as there is no other app. */
  titleOf: (name: string) => string | null,
  /** Returns `below`: the path of the app's pages; `host`: the folder that has the token; null: the app's own has it. */
  placeOf: (name: string) => { below: string, host: string | null },
  /** Opens the data folder of an app. */
  openFolder: (folder: string, closers: Closers) => { dataDir: DataDir, log: HostServices['log'] },
  /**
   * Reads what the order of an app means now. `file`: its config file, as it has just been read; `isAgain`: a deploy
   * reads it; `launchIn`: the folder in which a script is looked up
   */
  readConfig: (order: AppOrder,
    how: { name?: string, file?: ConfigFile | null, isAgain?: boolean, launchIn?: string }) => Promise<Config>,
  /** whether what runs says which order it came from */
  keepsOrders: boolean,
  /** of the apps that start; null: there is no other one */
  turns: Turns | null,
  /** of the apps that are being deployed; null: there is no other one */
  rolloutTurns: Turns | null,
  tellHostOf?: (name: string) => HostServices['tellHost'],
  /** Moves an app into the host of its user. */
  move?: Move,
  /**
   * An app that goes back to what ran does so in the next master, and not in this process. `whyNot`: why it cannot;
   * null: it can
   */
  byNextMaster?: { whyNot: () => string | null, start: (runs: Runs, refused: string) => void }
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
export async function openAppPart ({ id, name, order, config, origin, reload, source, isOrdered, runs }:
  & Pick<AppSource, 'reload' | 'source' | 'isOrdered'>
  & {
    id: string,
    name: string,
    /** that it comes from */
    order: AppOrder,
    config: Config,
    origin: Origin,
    runs: RunsStore
  }, lent: Lent)
{
  const fault: PromiseWithResolvers<unknown> = Promise.withResolvers()
  const closers = createClosers()
  const scope = lent.scopes.open(name, { onFault (error) {
    lent.log.error({ err: error, app: name }, 'the part of the host for an app failed')
    fault.resolve(error)
  } })
  const { app, services } = await scope.run(() => openInside().catch(closeAgain))
  const { announce, register, withdraw } = createAnnouncement(app, services, () => lent.addressOf(name))
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

    /** Tells whoever has started the process. */
    say: (text: string) => services.terminal.line(text),

    /** Says where it is reached, which may have changed. */
    tellPlace,

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

    /** It goes on in another process. `onLeft`: gets how each of its workers ends. */
    move: (message: string, onLeft: (exits: Promise<Exit>[]) => void = () => {}) =>
      leave(async () => onLeft((await end.move(message)).exits)),

    /** `close`: before all else that is closed as it leaves */
    closesBefore: (close: () => Promise<unknown>) => closers.add(close, () => close()),

    /** What has been opened for it is closed again, unless it has left. */
    abandon: () => leave(() => closers.close()),

    /** Its workers serve on, and its jobs run on, for the next part. `onExit`: of one of them. */
    letGo: (onExit: (exit: Exit) => void) =>
      leave(() => waitAtMost(letGoInside(onExit).catch(noteTrouble), CLOSED_WITHIN_MS))
  }

  function tellPlace () {
    register()
    announce()
  }

  async function openInside () {
    const { dataDir, log } = lent.openFolder(config.dataDir, closers)
    const title = lent.titleOf(name)
    const keeper = closers.add(lent.links.of(id, { ...origin, title, call: scope.call }),
      (_, { hasFailed }) => lent.links.close(id, { keepsSockets: hasFailed }))
    const services = { ...lent, keeper, upgrade: lent.upgrade.of(id, name), isShared: title !== null,
      turns: lent.turns?.of(name) ?? null, rolloutTurns: lent.rolloutTurns?.of(name) ?? null, closers, log,
      terminal: title === null ? lent.terminal : lent.terminal.of(title), tellHost: lent.tellHostOf?.(name),
      streams: { ...lent.streams, prefix: title === null ? undefined : prefixOf(title) },
      fleet: () => lent.fleetMembership.of(name), joinsFleet: lent.fleetMembership.isWanted,
      publicUrl: () => lent.addressOf(name).publicUrl, isMove: origin.before !== null }
    services.terminal.resolved(config)
    return { services,
      app: await openApp({ config, reload, dataDir, environment: order.env, order: lent.keepsOrders ? order : null,
        source, isOrdered, runs }, services) }
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
    logs.start()
    tellPlace()
    closers.add(withdraw, (_, { handsOver }) => {
      if (!handsOver) withdraw()
    })
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
