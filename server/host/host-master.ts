import { checkDatabase } from '../../db/open.ts'
import { pastOf } from '../../db/joint-history.ts'
import { openHistory, type History } from '../../db/history.ts'
import { loadSite } from '../admin/listener.ts'
import { tellLost } from '../app/start.ts'
import { cpuCount } from '../config/cpu-count.ts'
import { errorText } from '../errors.ts'
import { createRecorder } from '../events/recorder.ts'
import { createEventStream, type EventStream } from '../events/stream.ts'
import { createJointUpgrade, type JointUpgrade } from '../handover/joint-upgrade.ts'
import { failWhenToldToStop } from '../handover/next-master.ts'
import { createAppLinks } from '../keeper/app-links.ts'
import { createClosers, type Closers } from '../system/closers.ts'
import { keepHeapSmall } from '../system/heap.ts'
import { createOtherDecks } from '../system/other-decks.ts'
import { listenForSignals } from '../system/signals.ts'
import { checkedProgram } from '../system/program.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { tellHostService } from '../systemd/host-service.ts'
import { LOAD_SITE_WITHIN_MS, openAdminPort, type AdminPort } from './admin-page.ts'
import { announceMaster, identifyKeeper, type Address } from './announcement.ts'
import { createAdoptions, type Adoptions } from './adoptions.ts'
import { createApps, type Apps } from './apps.ts'
import { createHostAlerts, type HostAlerts } from './host-alerts.ts'
import { openHost, type Host, type Surroundings } from './host.ts'
import { reapOrphans, reportToKeeper } from './process-setup.ts'
import { createRecords } from './records.ts'
import { createShutdown, type Shutdown } from './shutdown.ts'
import { createTurns, ROLLOUT_TURN_MS, TURN_MS } from './turns.ts'
import type { HostConfig } from '../config/config.ts'
import type { Deck } from '../deck.ts'
import type { HostServices } from '../app/app.ts'

/**
 * Starts a host: a master with the apps of its list.
 * @throws {import('../errors.ts').DeckError} invalid-config, data-dir-unusable, master-running, port-in-use,
 * listen-failed, not-possible, upgrade-failed; then nothing was started, or it has gone again
 */
export async function startHost (config: HostConfig, surroundings: Surroundings = {}) {
  const closers = createClosers()
  try {
    const host = await openHost({ ...config, dispatch: 'shared' }, surroundings, closers)
    const { dataDir, keeper, log, terminal, software } = host
    const isNext = keeper.role === 'next'
    // What would fail later is to fail now, while there is another master.
    if (isNext) {
      checkDatabase(dataDir.historyFile)
      await loadSite()
    }
    failWhenToldToStop(keeper)
    const record = openRecord(config, host)
    const { events } = record
    /** Not before this is the only master. */
    let alerts: HostAlerts | null = null
    const links = createAppLinks(keeper)
    const upgrade = createJointUpgrade(keeper, { turnMs: TURN_MS, events })
    const others = createOtherDecks({ isOwn: ({ master }) => master.pid === process.pid })
    // After a death the workers serve by themselves: whoever wants to know how they are comes first.
    const siteLoaded: PromiseWithResolvers<void> = Promise.withResolvers()
    const turns = createTurns({ atOnce: cpuCount(),
      after: keeper.predecessor && !isNext ? waitAtMost(siteLoaded.promise, LOAD_SITE_WITHIN_MS) : undefined })
    const rolloutTurns = createTurns({ atOnce: cpuCount(), turnMs: ROLLOUT_TURN_MS })
    const lent = { ...host, others, links, upgrade, turns, rolloutTurns, terminalOf: terminal.of,
      addressOf: (name: string) => addressOf(name, port, dataDir.folder, config),
      tellHostOf: (name: string): HostServices['tellHost'] => (event, sender) =>
        host.scopes.outside(() => alerts?.hear(name, event, sender)) }
    const records = createRecords({ folder: dataDir.folder, log, onProblem: (reason) =>
      events.publish({ type: 'unexpected', actor: 'system', message: reason === null
        ? 'the records of the apps are written again'
        : `the records of the apps cannot be written (${reason}): the next start of the host may not know what is asked of it now` }) })
    const apps = createApps({ records, lent, forget: links.forget, events, log, isBeside: isNext })
    const beginOpened = isNext ? await apps.openNext({ links, keeper }, keeper.upgrading) : () => {}
    dataDir.lock()
    closers.add(dataDir, (_, { handsOver }) =>
      dataDir.release({ handsOver }))
    record.begin()
    if (isNext) apps.takeOver()
    const { publicUrl = '' } = config.admin
    alerts = closers.add(
      createHostAlerts({ ...record, log, apps: apps.all,
        about: { url: publicUrl.replace(/\/+$/, '') || null, folder: dataDir.folder, version: software.version } }),
      ({ close }) => close()
    )
    const adoptions = closers.add(createAdoptions({ folder: dataDir.folder, apps, log }), ({ close }) => close())
    const startedAt = new Date().toISOString()
    const shutdown = createShutdown({ keeper, end: endOf({ apps, closers, tellStopped }) })
    const deck = createHostDeck({ apps, history: record.history, alerts, adoptions, host, startedAt, upgrade,
      stop: stopHost })
    const announce = () =>
      announceMaster({ dataDir, startedAt }, host, { adminUrl: port.url, fingerprint: port.fingerprint(), host: null })
    const port = await openAdminPort({ config, token: dataDir.token(), onRenewed: announce,
      site: { apps: deck, history: record.history, events } }, host)
    port.loaded.then(siteLoaded.resolve)
    announce()
    links.dropUnknown(apps.all().map(({ name }) => name))
    keeper.on('hand-over', shutdown.handOver)
    reportToKeeper(config, { keeper, events })
    terminal.line(`clusterdeck ${software.version}  host of ${apps.all().length} apps  ${dataDir.folder}`)
    terminal.line(`  admin  ${port.publicUrl}`)
    recordLost(record, keeper)
    events.publish({ type: 'master.started', pid: process.pid, actor: 'system', detail: software })
    if (isNext)
      events.publish({ type: 'master.upgraded', pid: process.pid, actor: 'system',
        message: `clusterdeck ${software.version} on Node ${software.nodeVersion}`, detail: { to: software } })
    reapOrphans(() => apps.all().flatMap(({ present }) => present ?? []), host)
    beginOpened()
    apps.startAll()
    keepHeapSmall()
    joinFleet(config, { apps, host, port, events, history: record.history, shutdown,
      ready: waitAtMost(siteLoaded.promise, LOAD_SITE_WITHIN_MS) })
    const service = tellHostService({ apps, keeper })
    closers.add(service, ({ end }) => end())
    listenToSignals({ apps, host, shutdown, stopHost })
    return { stopped: shutdown.stopped }

    /** Lets the apps finish, side by side. They stay on the list as they are. */
    async function stopHost (actor: string) {
      service.tellStopping()
      terminal.line('stopping: the workers of all apps finish their requests; send the signal again to stop at once')
      await apps.leave(actor)
      tellStopped({ actor })
      await shutdown.stop(0)
    }

    function tellStopped (how: { actor?: string, cause?: string }) {
      events.publish({ type: 'master.stopped', pid: process.pid, uptimeMs: Date.now() - Date.parse(startedAt), code: 0,
        ...how })
    }
  } catch (error) {
    // What has made the start fail says more than what follows from it.
    await closers.close().catch(() => {})
    throw error
  }
}

function joinFleet (config: HostConfig,
  { apps, host: { fleetMembership, dataDir, software, closers }, port, events, history, shutdown, ready }: {
    apps: Apps,
    host: Host,
    port: AdminPort,
    /** of the host */
    events: EventStream,
    /** of the host */
    history: History,
    shutdown: Shutdown,
    ready: Promise<unknown>
  })
{
  const url = config.admin.publicUrl ? port.publicUrl : null
  closers.add(apps.onChange(fleetMembership.tellSoon), (end) => end())
  fleetMembership.join({ folder: dataDir.folder, only: null,
    apps: () => apps.states().map(({ name, state }) => ({ app: name, state, url: url && `${url}/apps/${name}` })),
    version: software.version, url, publish: events.publish, history,
    async serve ({ app, path, ...order }, asker, limits) {
      // The sender may have written anything there.
      const { name } = apps.view(app)
      const { headers, ...answer } = await port.ask({ ...order, path: `/apps/${name}${path}` }, { ...asker, token: null,
        until: null, via: 'fleet', apps: [name] }, limits)
      // Other members know the app by its own paths.
      return { ...answer,
        headers: { ...headers,
          ...(headers.location && { location: headers.location.replace(/^.*?(?=\/api\/v1\/)/, '') }) } }
    } }, { ready, shutdown, closers })
}

/**
 * The host's own history: who has signed in, which apps were added, stopped, removed. In an upgrade it is the other
 * master's, and what happens before that one has gone is told by the apps.
 */
function openRecord (config: HostConfig, { dataDir, keeper, log, terminal, closers }: Host) {
  const isNext = keeper.role === 'next'
  const history = openHistory({ file: dataDir.historyFile, retention: config.history,
    owner: isNext ? 'another master has it' : null })
  const events = createEventStream({ lastId: isNext ? 0 : history.lastEventId(), relay: isNext ? () => {} : null,
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed') })
  events.subscribe(terminal.show)
  return {
    history,
    events,

    /** This is the only master. */
    begin () {
      if (isNext) history.takeOver()
      closers.add(history, ({ close }) => close())
      const recorder = closers.add(createRecorder({ history, events, spare: keeper.spare }), ({ close }) => close())
      if (isNext) events.takeOver(history.lastEventId())
      recorder.begin()
    }
  }
}

/** Writes the end of a master that has died, which it could not write itself. */
function recordLost ({ history, events }: { history: History, events: EventStream }, { predecessor }: Host['keeper']) {
  try {
    const [last] = history.page({ type: ['master.started', 'master.stopped'], limit: 1 }).items
    if (last?.type !== 'master.started' || last.pid === null) return
    tellLost(events, predecessor?.pid === last.pid ? predecessor : { pid: last.pid, code: null, signal: null })
  } catch {
    // No start depends on it.
  }
}

function createHostDeck (
  { apps, history, alerts: { alerts, notices }, adoptions, host: { dataDir, keeper, software, fleetMembership },
    startedAt, upgrade, stop }: { apps: Apps, history: History, alerts: HostAlerts, adoptions: Adoptions, host: Host,
      startedAt: string, upgrade: JointUpgrade, stop: (actor: string) => Promise<void> }
) {
  return {
    ...apps,
    alerts,
    notices,
    adoptions,
    past: pastOf(apps.opened, history),

    /** What is told of the process of this host. */
    about: () => ({ pid: process.pid, keeperPid: identifyKeeper(keeper)?.pid ?? null, ...software, startedAt,
      folder: dataDir.folder, apps: apps.all().length, upgrade: upgrade.running, upgradeFailure: upgrade.failure }),

    /**
     * Changes masters: all apps do, or none.
     * @throws {import('../errors.ts').DeckError} invalid-body, not-possible, and what one of the apps has against it
     */
    upgradeHost: (order: { execPath: string | null, note: string | null, actor: string }) =>
      upgrade.begin({ ...order, type: 'upgrade', execPath: order.execPath && checkedProgram(order.execPath) }),

    fleet: () => fleetMembership.fleet,
    joinsFleet: fleetMembership.isWanted,

    /** Ends it, once all apps have finished. */
    stopHost ({ actor }: { actor: string }) {
      stop(actor)
    }
  }
}

function endOf (
  { apps, closers, tellStopped }: { apps: Apps, closers: Closers, tellStopped: (how: { cause: string }) => void }
) {
  return { async stop (exitCode: number) {
    await apps.end(exitCode)
    await closers.close()
  }, async handOver () {
    await apps.handOver()
    tellStopped({ cause: 'upgrade' })
    await closers.close({ handsOver: true })
  } }
}

function addressOf (name: string, port: AdminPort, folder: string, { admin }: HostConfig): Address {
  const below = `/apps/${name}`
  return { adminUrl: port.url + below, publicUrl: admin.publicUrl ? port.publicUrl + below : null,
    fingerprint: port.fingerprint(), host: folder }
}

function listenToSignals (
  { apps, host: { terminal, keeper }, shutdown, stopHost }: { apps: Apps, host: Host, shutdown: Shutdown,
    stopHost: (actor: string) => Promise<void> }
) {
  const leave = listenForSignals({ onStop: () => {
    stopHost('signal')
  }, onKill: () => shutdown.stop(1), onDeploy: () => forEachDeck((deck) => deck.deploy({ actor: 'signal' })),
    onRestart: () =>
      forEachDeck(async (deck) => deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'signal' })) }, {
    sources: [process, keeper.signals]
  })
  shutdown.stopped.then(leave)

  function forEachDeck (work: (deck: Deck) => Promise<unknown>) {
    if (shutdown.hasBegun) return
    for (const { name, part } of apps.all())
      if (part)
        part.run(() => work(part.app.deck)).catch((error) => terminal.of(name).line(`refused: ${errorText(error)}`))
  }
}
