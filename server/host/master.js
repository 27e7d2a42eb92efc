import { openApp } from '../app/app.js'
import { createEnd } from '../app/end.js'
import { recordPast, startWorkers, watchDataDir } from '../app/start.js'
import { loadSite } from '../admin/listener.js'
import { takePolicy } from '../cluster/policy.js'
import { DeckError } from '../errors.js'
import { failWhenToldToStop } from '../handover/next-master.js'
import { followNext } from '../handover/old-master.js'
import { createClosers } from '../system/closers.js'
import { keepHeapSmall } from '../system/heap.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { LOAD_SITE_WITHIN_MS, openAdminPage } from './admin-page.js'
import { WHOLE_PROCESS } from './fleet-membership.js'
import { traceStep } from '../system/start-trace.js'
import { createShutdown } from './shutdown.js'
import { openHost } from './host.js'
import { reportToKeeper, setUpProcess } from './process-setup.js'

/** @typedef {Awaited<ReturnType<typeof startMaster>>} Master */

/**
 * Makes and starts a whole master. It owns the signals of this process until `stopped`, unless it is a guest there.
 * @param {import('../config/config.js').Config} config
 * @param {import('./host.js').Surroundings} [surroundings]
 * @throws {import('../errors.js').DeckError} invalid-config, entry-not-found, copy-failed, data-dir-unusable, master-running, port-in-use, listen-failed,
 *   not-possible, upgrade-failed; then nothing was started, or it has gone again
 */
export async function startMaster (config, surroundings = {}) {
  const closers = createClosers()
  try {
    takePolicy(config.dispatch, surroundings)
    const host = await openHost(config, surroundings, closers)
    traceStep('what the process has once')
    if (config.launch) host.terminal.resolved(config.launch)
    // What would fail later is to fail now, while there is another master.
    if (host.keeper.role === 'next') await loadSite()
    failWhenToldToStop(host.keeper)
    const app = await openApp({ config, reload: surroundings.reload, dataDir: host.dataDir }, host).catch((error) => endMoved(error, host))
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

/**
 * The app has moved into a host, and the master that did that was killed before it could tell its keeper so.
 * @param {unknown} error @param {Pick<import('./host.js').Host, 'keeper'>} host @returns {Promise<never>}
 */
async function endMoved (error, { keeper }) {
  if (keeper.predecessor && error instanceof DeckError && error.details.isInHost) await keeper.deliver({ type: 'ending' })
  throw error
}

/** @typedef {{ host: import('./host.js').Host, admin: import('./admin-page.js').AdminPage, shutdown: import('./shutdown.js').Shutdown }} Parts */

/** @param {import('../app/app.js').App} app @param {Parts} parts */
function startApp (app, { host, admin, shutdown }) {
  const { supervisor, config, restored, events } = app
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
  events.subscribe(({ type }) => { if (type === 'history.recovered' && !shutdown.hasBegun) admin.announce() })
  supervisor.running.then(() => {
    const bootMs = Math.round(performance.now() - startTime)
    traceStep('the workers get ready')
    terminal.started({ version: software.version, entry: app.deck.snapshot().app.program ?? config.entry, workers: restored.workers, addresses: supervisor.addresses(), admin, bootMs })
  })
  supervisor.startBlocked.then(({ message }) => {
    terminal.fail(message)
    shutdown.stop(1)
  })
  supervisor.finished.then(() => shutdown.stop(0))
}

/** @param {import('../app/app.js').App} app @param {Parts & { closers: import('../system/closers.js').Closers }} parts */
function joinFleet ({ config, dataDir, deck, supervisor }, { host: { fleetMembership, log, software }, admin, shutdown, closers }) {
  const { name } = deck.snapshot().app
  const url = config.admin.publicUrl ? admin.publicUrl : null
  const state = () => deck.snapshot().state
  closers.add(fleetMembership.enter({ app: name, deck, state, folder: dataDir.folder, root: config.releases.root, url, log, scope: WHOLE_PROCESS }), (leave) => leave())
  fleetMembership.join({
    folder: dataDir.folder,
    only: name,
    apps: () => [{ app: name, state: state(), url }],
    version: software.version,
    url,
    publish: deck.events.publish,
    history: null,
    async serve ({ app, ...order }, asker, limits) {
      if (app !== name) throw new DeckError('not-found', `This host has no app ${JSON.stringify(app)}; it has ${name}`)
      return await admin.ask(order, { ...asker, token: null, until: null, via: 'fleet' }, limits)
    }
  }, { ready: waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS), shutdown, closers })
}

/** @param {import('../app/app.js').App} app @param {Pick<Parts, 'host' | 'shutdown'>} parts */
function talkToKeeper ({ settings, events, supervisor }, { host: { keeper }, shutdown }) {
  followNext({ keeper, supervisor, events })
  keeper.on('hand-over', shutdown.handOver)
  keeper.on('reaped', supervisor.reaped)
  reportToKeeper(settings.current, { keeper, events })
}
