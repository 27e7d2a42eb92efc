import { checkDatabase } from '../../db/open.ts'
import { pastOf } from '../../db/joint-history.ts'
import { logsLeftIn, NO_PAST, pastOfApp } from '../app/past.ts'
import { dropSite, loadSite } from '../admin/site-code.ts'
import { createJointUpgrade, type JointUpgrade } from '../handover/joint-upgrade.ts'
import { failWhenToldToStop } from '../handover/next-master.ts'
import { createAppLinks, type AppLinks } from '../keeper/app-links.ts'
import { connectKeeper } from '../keeper/link.ts'
import { holdFiles } from '../system/built.ts'
import { createClosers, type Closers } from '../system/closers.ts'
import { keepHeapSmall } from '../system/heap.ts'
import { createOtherDecks } from '../system/other-decks.ts'
import { checkedProgram } from '../system/program.ts'
import { traceStep } from '../system/start-trace.ts'
import { isRestarting } from '../systemd/systemctl.ts'
import { openAdminPort, type AdminPort } from './admin-page.ts'
import { announceMaster, identifyKeeper, type Address } from './announcement.ts'
import { createApps, type Apps } from './apps.ts'
import { openHost, type Host, type Surroundings } from './host.ts'
import { listenToSignals, reapOrphans, reportToKeeper } from './process-setup.ts'
import { createShutdown, type Shutdown } from './shutdown.ts'
import { TURN_MS } from './turns.ts'
import type { Apps as AppsOfApi } from './api-apps.ts'
import type { HostConfig } from '../config/config.ts'
import type { Kind, MakeKind, HostParts } from './kind.ts'

export type Master = Awaited<ReturnType<typeof startHost>>

/**
 * Reads what a master runs with. `left`: what a master before has left for the next one, where nobody has ordered this
 * start; null: somebody has
 */
type Plan = (left: unknown) => Promise<{ config: HostConfig, makeKind: MakeKind }>

/**
 * Starts a master. It owns the signals of this process until `stopped`, unless it is a guest there.
 * @throws {import('../errors.ts').DeckError} invalid-config, entry-not-found, copy-failed, data-dir-unusable,
 * master-running, port-in-use, listen-failed, not-possible, upgrade-failed; then nothing was started, or it has gone
 * again
 */
export async function startHost (plan: Plan, surroundings: Surroundings = {}) {
  const closers = createClosers()
  try {
    if (!surroundings.isGuest) holdFiles()
    const keeper = await connectKeeper(surroundings.isGuest ? {} : process.env)
    const isNext = keeper.role === 'next'
    const { config, makeKind } = await plan(keeper.predecessor || isNext ? keeper.memory.read() : null)
    traceStep('the configuration')
    const host = await openHost(config, keeper, surroundings, closers)
    const { dataDir, log, terminal } = host
    closers.add(dataDir, ({ release }, { handsOver }) => release({ handsOver }))
    traceStep('what the process has once')
    // What would fail later is to fail now, while there is another master.
    if (isNext) {
      await loadSite()
      dropSite()
      checkDatabase(dataDir.historyFile)
    }
    failWhenToldToStop(keeper)
    const kind = makeKind(host, () => apps)
    const links = createAppLinks(keeper)
    const upgrade = createJointUpgrade(keeper, { turnMs: TURN_MS, events: kind.events })
    const others = createOtherDecks({ isOwn: ({ dataDir }) => apps.all().some((app) => app.dataDir === dataDir) })
    const lent = { ...host, others, links, upgrade, addressOf, ...kind.policy }
    const apps = createApps({ records: kind.records, lent, forget: links.forget, events: kind.events, log,
      isBeside: isNext })
    if (!isNext) giveReturned(links, { apps, terminal })
    const opened = await (isNext ? apps.openNext({ links, keeper }, keeper.upgrading) : kind.openFirst(apps))
    const parts = closers.add(opened?.parts ?? [], (left) => Promise.all(left.map(({ abandon }) => abandon())))
    traceStep('the apps that come before the port: history, releases, supervisor')
    dataDir.lock()
    const own = kind.begin(parts, opened?.failed)
    if (isNext) apps.takeOver()
    const startedAt = new Date().toISOString()
    const tellStopped = (how: { actor?: string, cause?: string }) => kind.tellStop?.(startedAt, how)
    const shutdown = createShutdown({ keeper, end: endOf({ apps, closers, tellStopped }) })
    const deck = createHostDeck({ apps, own, host, startedAt, upgrade, stop: stopHost })
    const token = dataDir.token()
    const port = await openAdminPort({ config, token, onRenewed: tellPlace,
      site: { apps: deck, history: own.history, events: own.events } }, host)
    traceStep('the admin port')
    tellPlace()
    links.dropUnknown(apps.all().map(({ id }) => id))
    keeper.on('hand-over', shutdown.handOver)
    kind.tellStart?.(port)
    const service = host.isGuest ? null : followProcess()
    const begunAt = performance.now()
    opened?.begin()
    apps.startAll()
    traceStep('the first worker is forked')
    if (!host.isGuest) keepHeapSmall()
    kind.watch?.({ port, shutdown, begunAt })
    reportToKeeper(own.options, { keeper, events: own.events })
    joinFleet(config, { apps, kind, own, host, port, shutdown })
    return { port, token, parts, stopped: shutdown.stopped }

    function addressOf (name: string): Address {
      const { below, host } = kind.policy.placeOf(name)
      return { adminUrl: port.url + below, publicUrl: config.admin.publicUrl ? port.publicUrl + below : null,
        fingerprint: port.fingerprint(), host }
    }

    function tellPlace () {
      announceMaster({ dataDir, startedAt }, host, { adminUrl: port.url, fingerprint: port.fingerprint(), host: null })
      for (const { part } of apps.all()) part?.tellPlace()
    }

    /** Takes over what concerns the process as a whole: orphans, its signals, the service manager. */
    function followProcess () {
      reapOrphans(() => apps.all().flatMap(({ present }) => present ?? []), host)
      const { leave, untilDeploying } = listenToSignals({ apps, host, shutdown, stopHost })
      shutdown.stopped.then(leave)
      return closers.add(kind.followService(untilDeploying), (service) => service?.end())
    }

    /** Lets the apps finish, side by side. They stay on the list as they are. */
    async function stopHost (actor: string) {
      service?.tellStopping()
      terminal.line('stopping: the workers finish their requests; send the signal again to stop at once')
      keeper.leavesSockets = actor === 'signal' && await isRestarting()
      await apps.leave(actor)
      tellStopped({ actor })
      await shutdown.stop(0)
    }
  } catch (error) {
    // What has made the start fail says more than what follows from it.
    await closers.close().catch(() => {})
    throw error
  }
}

/** Gives the apps their sockets, which the service manager has kept while keeper and master were gone. */
function giveReturned (links: AppLinks, { apps, terminal }: { apps: Apps, terminal: Pick<Host['terminal'], 'fail'> }) {
  const wanted = apps.all().filter(({ record }) => record.wish === 'running')
  const others = links.giveReturned(wanted.map(({ id, record }) => ({ id, stored: record.runs?.stored ?? [] })))
  for (const socket of others)
    terminal.fail(`the socket ${socket} of the service manager is closed: no app that is to run has it on record`)
}

function joinFleet (config: HostConfig,
  { apps, kind: { policy: { placeOf } }, own, host: { fleetMembership, dataDir, software, closers }, port, shutdown }: {
    apps: Apps,
    kind: Kind,
    own: HostParts,
    host: Host,
    port: AdminPort,
    shutdown: Shutdown
  })
{
  const url = config.admin.publicUrl ? port.publicUrl : null
  closers.add(apps.onChange(fleetMembership.tellSoon), (end) => end())
  fleetMembership.join({ folder: dataDir.folder, only: own.only, history: own.ownHistory,
    apps: () => apps.states().map(({ name, state }) => ({ app: name, state, url: url && url + placeOf(name).below })),
    version: software.version, url, publish: own.events.publish, async serve ({ app, path, ...order }, asker, limits) {
    // The sender may have written anything there.
    const { name } = apps.view(app)
    const { headers, ...answer } = await port.ask({ ...order, path: placeOf(name).below + path }, { ...asker,
      token: null, until: null, via: 'fleet', ...(own.only === null && { apps: [name] }) }, limits)
    // Other members know the app by its own paths.
    return { ...answer,
      headers: { ...headers,
        ...(headers.location && { location: headers.location.replace(/^.*?(?=\/api\/v1\/)/, '') }) } }
  } }, { ready: own.ready, shutdown, closers })
}

function createHostDeck (
  { apps, own, host: { dataDir, keeper, software, fleetMembership }, startedAt, upgrade, stop }: { apps: Apps,
    own: HostParts, host: Host, startedAt: string, upgrade: JointUpgrade, stop: (actor: string) => Promise<void> }
): AppsOfApi {
  return {
    ...apps,
    past: pastOf(apps.opened, own.history),

    left (name) {
      const { dataDir } = apps.view(name)
      return dataDir === null ? NO_PAST : pastOfApp(dataDir)
    },

    leftLogs (name) {
      const { dataDir } = apps.view(name)
      return dataDir === null ? null : logsLeftIn(dataDir)
    },

    /** What is told of the process of this host. */
    about: () => ({ pid: process.pid, keeperPid: identifyKeeper(keeper)?.pid ?? null, ...software, startedAt,
      folder: dataDir.folder, apps: apps.all().length, upgrade: upgrade.running, upgradeFailure: upgrade.failure }),

    /**
     * Changes masters: all apps do, or none.
     * @throws {import('../errors.ts').DeckError} invalid-body, not-possible, and what one of the apps has against it
     */
    upgradeHost: (order) =>
      upgrade.begin({ ...order, type: 'upgrade', execPath: order.execPath && checkedProgram(order.execPath) }),

    fleet: () => fleetMembership.fleet,
    joinsFleet: fleetMembership.isWanted,

    /** Ends it, once all apps have finished. */
    stopHost ({ actor }) {
      stop(actor)
    },

    ...own
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
