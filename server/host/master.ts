import { openApp, type App } from '../app/app.ts'
import { createEnd } from '../app/end.ts'
import { recordPast, startWorkers, watchDataDir } from '../app/start.ts'
import { loadSite } from '../admin/listener.ts'
import { takePolicy } from '../cluster/policy.ts'
import { DeckError } from '../errors.ts'
import { failWhenToldToStop } from '../handover/next-master.ts'
import { followNext } from '../handover/old-master.ts'
import { createClosers, type Closers } from '../system/closers.ts'
import { keepHeapSmall } from '../system/heap.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { LOAD_SITE_WITHIN_MS, openAdminPage, type AdminPage } from './admin-page.ts'
import { WHOLE_PROCESS } from './fleet-membership.ts'
import { traceStep } from '../system/start-trace.ts'
import { createShutdown, type Shutdown } from './shutdown.ts'
import { openHost, type Host, type Surroundings } from './host.ts'
import { reportToKeeper, setUpProcess } from './process-setup.ts'
import type { Config } from '../config/config.ts'

export type Master = Awaited<ReturnType<typeof startMaster>>

/**
 * Makes and starts a whole master. It owns the signals of this process until `stopped`, unless it is a guest there.
 * @throws {import('../errors.ts').DeckError} invalid-config, entry-not-found, copy-failed, data-dir-unusable,
 * master-running, port-in-use, listen-failed, not-possible, upgrade-failed; then nothing was started, or it has gone
 * again
 */
export async function startMaster (config: Config, surroundings: Surroundings = {}) {
  const closers = createClosers()
  try {
    takePolicy(config.dispatch, surroundings)
    const host = await openHost(config, surroundings, closers)
    traceStep('what the process has once')
    host.terminal.resolved(config)
    // What would fail later is to fail now, while there is another master.
    if (host.keeper.role === 'next') await loadSite()
    failWhenToldToStop(host.keeper)
    const app = await openApp({ config, reload: surroundings.reload, dataDir: host.dataDir }, host).catch((error) =>
      endMoved(error, host)
    )
    traceStep('what the app has: history, releases, supervisor')
    const admin = await openAdminPage(app, host)
    traceStep('the admin port')
    const shutdown = createShutdown({ keeper: host.keeper, end: createEnd(app, closers) })
    startApp(app, { host, admin, shutdown })
    host.departure.join(app, { host, shutdown })
    joinFleet(app, { host, admin, shutdown, closers })
    talkToKeeper(app, { host, shutdown })
    const { running, startBlocked, waitingFor } = app.supervisor
    /** `stopped`: the exit code, once nothing of this master is left. */
    return { admin, deck: app.deck, running, startBlocked, waitingFor, stopped: shutdown.stopped }
  } catch (error) {
    // What has made the start fail says more than what follows from it.
    await closers.close().catch(() => {})
    throw error
  }
}

/** The app has moved into a host, and the master that did that was killed before it could tell its keeper so. */
async function endMoved (error: unknown, { keeper }: Pick<Host, 'keeper'>): Promise<never> {
  if (keeper.predecessor && error instanceof DeckError && error.details.isInHost)
    await keeper.deliver({ type: 'ending' })
  throw error
}

export type Parts = { host: Host, admin: AdminPage, shutdown: Shutdown }

function startApp (app: App, { host, admin, shutdown }: Parts) {
  const { supervisor, config, beginning, events } = app
  const { terminal, software } = host
  const startTime = performance.now()
  admin.announce()
  const left = recordPast(app, host)
  if (!host.isGuest) setUpProcess(app, host, shutdown)
  traceStep('signals, the record of the past')
  startWorkers(app, host, left)
  traceStep('the first worker is forked')
  if (!host.isGuest) keepHeapSmall()
  watchDataDir(app, host)
  // A master that starts while the disk is full announces itself in another folder.
  events.subscribe(({ type }) => {
    if (type === 'history.recovered' && !shutdown.hasBegun) admin.announce()
  })
  supervisor.running.then(() => {
    const bootMs = Math.round(performance.now() - startTime)
    traceStep('the workers get ready')
    terminal.started({ version: software.version, entry: app.deck.snapshot().app.program ?? config.entry,
      workers: beginning.workers, addresses: supervisor.addresses(), admin, bootMs })
  })
  supervisor.startBlocked.then(({ message }) => {
    terminal.fail(message)
    shutdown.stop(1)
  })
  supervisor.finished.then(() => shutdown.stop(0))
}

function joinFleet ({ config, dataDir, deck, supervisor }: App,
  { host: { fleetMembership, log, software }, admin, shutdown, closers }: Parts & { closers: Closers })
{
  const { name } = deck.snapshot().app
  const url = config.admin.publicUrl ? admin.publicUrl : null
  const state = () => deck.snapshot().state
  closers.add(
    fleetMembership.enter({ app: name, deck, state, folder: dataDir.folder, root: config.releases.root, url, log,
      scope: WHOLE_PROCESS }),
    (leave) => leave()
  )
  fleetMembership.join({ folder: dataDir.folder, only: name, apps: () => [{ app: name, state: state(), url }],
    version: software.version, url, publish: deck.events.publish, history: null,
    async serve ({ app, ...order }, asker, limits) {
      if (app !== name) throw new DeckError('not-found', `This host has no app ${JSON.stringify(app)}; it has ${name}`)
      return await admin.ask(order, { ...asker, token: null, until: null, via: 'fleet' }, limits)
    } }, { ready: waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS), shutdown, closers })
}

function talkToKeeper ({ settings, events, supervisor }: App,
  { host: { keeper }, shutdown }: Pick<Parts, 'host' | 'shutdown'>)
{
  followNext({ keeper, supervisor, events })
  keeper.on('hand-over', shutdown.handOver)
  keeper.on('reaped', supervisor.reaped)
  reportToKeeper(settings.current, { keeper, events })
}
