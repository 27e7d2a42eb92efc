import { readFileSync } from 'node:fs'
import v8 from 'node:v8'
import { openHistory } from '../db/history.js'
import { createCertificate } from './admin/certificate.js'
import { roomWithin } from './admin/connections.js'
import { createAdmin, loadSite } from './admin/listener.js'
import { createCronRestarts } from './cluster/cron-restarts.js'
import { createForker } from './cluster/forker.js'
import { createHooks } from './cluster/hooks.js'
import { takePolicy } from './cluster/policy.js'
import { createSupervisor } from './cluster/supervisor.js'
import { cpuCount } from './config/cpu-count.js'
import { nextRun } from './config/cron.js'
import { configFileOf, originOf } from './config/config.js'
import { checkExposure } from './config/exposure.js'
import { createSettings } from './config/settings.js'
import { createCrashRecorder } from './crashes/recorder.js'
import { createDeck } from './deck.js'
import { createDiagnostics } from './diagnostics/diagnostics.js'
import { openStore } from './diagnostics/store.js'
import { DeckError } from './errors.js'
import { createNotices } from './events/notices.js'
import { createRecorder } from './events/recorder.js'
import { createEventStream } from './events/stream.js'
import { createCheckpointStore, describeChange, reconcileWorkers, rememberFor, restoreCheckpoint, signMemory } from './handover/checkpoint.js'
import { isOnRecord, standBy } from './handover/next-master.js'
import { followNext } from './handover/old-master.js'
import { endUnfinished } from './handover/unfinished.js'
import { startBeat } from './keeper/beat.js'
import { connectKeeper } from './keeper/link.js'
import { createReaper } from './keeper/reaper.js'
import { createState } from './lifecycle/state.js'
import { createLogs } from './logs/logs.js'
import { createDrift } from './releases/drift.js'
import { createJudge } from './releases/judge.js'
import { keepOutcomes } from './releases/outcomes.js'
import { createReleases } from './releases/registry.js'
import { createClosers } from './system/closers.js'
import { openDataDir } from './system/data-dir.js'
import { descriptorLimit } from './system/descriptors.js'
import { createLog } from './system/log.js'
import { createDeferred } from './system/deferred.js'
import { createOtherDecks } from './system/other-decks.js'
import { loadPosix } from './system/posix.js'
import { identifyProcess, pidNamespace } from './system/process-identity.js'
import { registerDeck, withdrawDeck } from './system/running-decks.js'
import { listenForSignals } from './system/signals.js'
import { waitAtMost } from './system/wait-at-most.js'
import { adminPlace } from './systemd/activation.js'
import { tellServiceManager } from './systemd/service-manager.js'
import { createTerminal } from './terminal.js'
import { createVitals } from './vitals/vitals.js'
import { createWebhooks } from './webhooks/webhooks.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const SOFTWARE = { version, nodeVersion: process.version }

/** Of the admin page, from the default one on: another deck may have it. */
const PORTS_TO_TRY = 100
const KILL_PATIENCE_MS = 1000
/** What a master may have recorded since it last wrote its memory, where the history cannot be asked: no id is given out twice. */
const UNKNOWN_EVENTS = 1000
/** The workers come first: the app is to answer soon. */
const LOAD_SITE_WITHIN_MS = 3000
/** How soon a data folder that was removed is made anew. */
const LOOK_FOR_DATA_EVERY_MS = 3000
/** After which a start says what it is waiting for. */
const WAITING_AFTER_MS = 5000

/**
 * `reload`: reads the configuration anew, for a deploy; `isGuest`: the process is another program's, with its signals, its
 * children and what its environment says.
 * @typedef {{ stdout?: NodeJS.WritableStream, stderr?: NodeJS.WritableStream, reload?: (launchIn?: string) => Promise<import('./config/config.js').Config>, isGuest?: boolean }} Surroundings
 * @typedef {Awaited<ReturnType<typeof startMaster>>} Master
 */

/**
 * Makes and starts a whole master: the one place where its parts meet. It owns the signals of this process until
 * `stopped`, unless it is a guest there.
 * @param {import('./config/config.js').Config} config
 * @param {Surroundings} [surroundings]
 * @throws {import('./errors.js').DeckError} invalid-config, entry-not-found, snapshot-failed, data-dir-unusable, master-running, port-in-use, listen-failed,
 *   not-possible, upgrade-failed; then nothing was started, or it has gone again
 */
export async function startMaster (config, surroundings = {}) {
  const closers = createClosers()
  try {
    const tools = await open(config, surroundings, closers)
    const past = await restore(tools)
    const cluster = await supervise(tools, past)
    const admin = await serve(tools, cluster)
    const ending = end(tools, past, cluster)
    run(tools, past, cluster, { admin, ending })
    return {
      admin,
      deck: cluster.deck,
      running: cluster.supervisor.running,
      startBlocked: cluster.supervisor.startBlocked,
      waitingFor: cluster.supervisor.waitingFor,
      /** The exit code, once nothing of this master is left. */
      stopped: ending.stopped
    }
  } catch (error) {
    // What has made the start fail says more than what follows from it.
    await closers.close().catch(() => {})
    throw error
  }
}

/**
 * What needs no history and may be there twice, in two masters of an upgrade.
 * @param {import('./config/config.js').Config} config @param {Surroundings} surroundings @param {import('./system/closers.js').Closers} closers
 */
async function open (config, { stdout = process.stdout, stderr = process.stderr, reload, isGuest = false }, closers) {
  closers.add(takePolicy(config.dispatch), ({ release }) => release())
  const keeper = await connectKeeper(isGuest ? {} : process.env)
  const place = adminPlace(config, keeper)
  // A service manager's socket may be another one than the configured.
  checkExposure({ ...config.admin, host: place.host })
  const dataDir = openDataDir(config.dataDir)
  const log = createLog(dataDir.logFile)
  const memoryStore = createCheckpointStore({ file: dataDir.memory, keeper: keeper.memory, isAway: dataDir.away !== null })
  const settings = createSettings(config, { key: dataDir.releaseKey() })
  const vitals = createVitals()
  const logs = createLogs({ folder: dataDir.logFolder, options: config.logs, streams: { stdout, stderr }, onError: (reason) => log.error(reason) })
  const drift = createDrift()
  const onError = (/** @type {unknown} */ error) => log.error({ err: error }, 'the releases could not be kept as they should')
  const releases = createReleases({ config, reload, dataDir, isDrifted: drift.isDrifted, onError })
  const hooks = createHooks({ configured: releases.hooks, release: releases.find, environment: releases.environment, cwd: config.cwd })
  const terminal = createTerminal({ stdout, stderr })
  if (config.launch) terminal.resolved(config.launch)
  vitals.start()
  const onUncaught = (/** @type {Error} */ error) => log.fatal({ err: error }, 'the master failed')
  closers.add(process.on('uncaughtExceptionMonitor', onUncaught), (process) => process.off('uncaughtExceptionMonitor', onUncaught))
  if (dataDir.away) terminal.fail(dataDir.away)
  return { config, settings, keeper, place, dataDir, memoryStore, log, vitals, logs, drift, releases, hooks, terminal, crashRecorder: createCrashRecorder({ logs, vitals }), isGuest, closers }
}

/** @typedef {Awaited<ReturnType<typeof open>>} Tools */

/**
 * From here on the data folder is this master's: what the one before has left, the history, and the release to begin with.
 * @param {Tools} tools
 */
async function restore (tools) {
  const { config, settings, keeper, dataDir, memoryStore, log, logs, vitals, releases, terminal, crashRecorder, closers } = tools
  const next = keeper.role === 'next' ? await becomeNext(tools) : null
  dataDir.lock()
  closers.add(dataDir, (_, { handsOver }) => dataDir.release({ handsOver }))
  const memory = restoreCheckpoint(memoryStore.read(), config, next?.predecessor ?? keeper.predecessor)
  if (!next) settings.restore(memory.changes)
  if (!next) await releases.begin({ lastNumber: memory.lastRelease })

  const history = closers.add(openHistory({ file: dataDir.historyFile, retention: config.history }), ({ close }) => close())
  const { spare } = keeper
  const events = createEventStream({
    lastId: Math.max(history.lastEventId(), memory.lastEvent, ...spare.events.map(({ id }) => id)) + (history.away ? UNKNOWN_EVENTS : 0),
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed')
  })
  const recorder = closers.add(createRecorder({ history, events, spare }), (recorder) => recorder.close())
  const notices = createNotices({ history, events })
  closers.add(vitals, ({ stop }) => stop())
  logs.configure(settings.current.logs)
  const webhooks = closers.add(createWebhooks({ targets: settings.current.notify, events, deck: { app: config.entry, pid: process.pid, version }, log }), (webhooks) => webhooks.close())
  releases.open(history.releases, history.lastReleaseNumber)
  const release = next?.release ?? await releases.resume(memory.release)
  crashRecorder.open({ store: history.crashes, events })
  events.subscribe(terminal.show)
  events.subscribe(vitals.count)
  // What was stored while the database was away is not in it.
  events.subscribe(({ type }) => { if (type === 'history.recovered') releases.save() })
  return { next, memory, history, events, recorder, notices, webhooks, release }
}

/** @typedef {Awaited<ReturnType<typeof restore>>} Past */

/** @param {Tools} tools */
async function becomeNext (tools) {
  const { keeper, config, settings, dataDir, memoryStore, releases } = tools
  // What would fail later is to fail now, while there is another master.
  await loadSite()
  settings.restore(restoreCheckpoint(memoryStore.read(), config, null).changes)
  return await standBy({ keeper, config, dataDir, memory: memoryStore, releases, supervise: (start) => createCluster(tools, start) })
}

/** @param {Tools} tools @param {Past} past */
async function supervise (tools, { next, memory, history, events, recorder, notices, webhooks, release }) {
  const { config, settings, keeper, dataDir, vitals, logs, releases, terminal, closers } = tools
  const supervisor = next?.supervisor ?? createCluster(tools, {
    release,
    lastRollout: Math.max(history.lastRolloutId(), memory.lastRollout),
    nextWorker: memory.nextWorker,
    addresses: memory.addresses,
    hasListened: hasListened(history),
    ...bootsOf(history),
    events,
    outlives: () => true
  })
  const startedAt = new Date().toISOString()
  const store = openStore(dataDir.diagnosticsFolder, config.diagnostics)
  const diagnostics = closers.add(createDiagnostics({ supervisor, events, store }), ({ close }) => close())
  const deck = createDeck({ settings, configure, supervisor, events, history, vitals, master: { pid: process.pid, ...SOFTWARE, startedAt }, diagnostics, logs, releases, webhooks, notices, others: createOtherDecks({ dataDir: config.dataDir }), isKept: () => keeper.isKept, nextRestartAt: () => cron.nextAt(), historyProblem: () => dataDir.away ?? recorder.degraded })
  const cron = closers.add(createCronRestarts({
    expression: () => settings.current.restart.cron ?? '',
    nextRun,
    restart: () => deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cron' }),
    events
  }), ({ close }) => close())
  // Only a developer's master needs what watches files.
  if (config.watch) {
    const { watchFor } = await import('./releases/watch.js')
    const watcher = closers.add(watchFor({ deck, logs, events, tell: terminal.quote }), ({ close }) => close())
    watcher.add([config.entry])
    supervisor.onLoaded(watcher.add)
  }
  return { supervisor, deck, startedAt }

  /** To those who do not look up each time what holds. @param {import('./config/config.js').Config} changed */
  function configure (changed) {
    supervisor.configure(lifecycleOptions(changed), changed)
    logs.configure(changed.logs)
    webhooks.configure(changed.notify)
    cron.plan()
    keeper.send({ type: 'watch', hang: hangOptions(changed) })
  }
}

/** @param {Past['history']} history @returns {boolean} whether an app of this data folder has listened, so that its next start is waited for */
function hasListened (history) {
  try {
    return history.page({ type: ['worker.listening'], limit: 1 }).items.length > 0
  } catch {
    // No start depends on the history.
    return false
  }
}

/** @param {Past['history']} history @returns {{ hasBeenReady: boolean, bootCost?: import('./lifecycle/boot-room.js').BootCost | null }} of the workers of this data folder */
function bootsOf (history) {
  try {
    const [last] = history.page({ type: ['worker.ready'], limit: 1 }).items
    return { hasBeenReady: last !== undefined || history.releases.all().some(({ outcome }) => outcome === 'succeeded'), bootCost: last?.detail?.boot ?? null }
  } catch {
    // No start depends on the history.
    return { hasBeenReady: true }
  }
}

/** How the keeper looks after its master. @param {import('./config/config.js').Config} config */
function hangOptions ({ keeper, watchdog }) {
  return { afterMs: keeper.hungAfterMs, stack: watchdog.stack }
}

/** @typedef {Awaited<ReturnType<typeof supervise>>} Cluster */

/**
 * @param {Tools} tools
 * @param {Omit<Parameters<typeof createState>[0], 'options'> & { events: any, outlives: () => boolean }} start
 */
function createCluster ({ settings, keeper, dataDir, vitals, logs, drift, releases, hooks, crashRecorder }, { events, outlives, ...start }) {
  const { watchdog, recycle } = settings.current
  const state = createState({ options: lifecycleOptions(settings.current), cpus: cpuCount(), ...start })
  const fork = createForker(settings, { ...dataDir, outlives, keeperPid: () => keeper.isKept ? process.ppid : null, logs, environment: releases.environment, onMissing: (message) => events.publish({ type: 'unexpected', actor: 'system', message }) })
  const sticky = settings.current.dispatch === 'sticky' ? { calls: stickyCalls(), failoverMs: settings.current.sticky.failoverMs } : null
  return createSupervisor(state, { fork, events, keeper, sticky, portPerSlot: settings.current.portPerSlot, vitals, watch: { watchdog, recycle }, crashes: crashRecorder, judge: createJudge(), prepare: releases.forRollout, hooks, drift })
}

/** @returns {import('./system/posix.js').Posix} @throws {DeckError} invalid-config */
function stickyCalls () {
  const calls = loadPosix()
  if (!calls) throw new DeckError('invalid-config', 'dispatch: expected "shared" or "round-robin" on this machine, received "sticky" (it takes Linux and the optional package koffi)')
  return calls
}

/** @param {import('./config/config.js').Config} config @returns {import('./lifecycle/state.js').LifecycleOptions} its sections of it */
function lifecycleOptions ({ start, ready, drain, stop, crash, restart, rollout, recycle, releases, standby }) {
  return { start, ready, drain, stop, crash, restart, rollout, recycle, releases, standby }
}

/** @param {Tools} tools @param {Cluster} cluster @returns {Promise<{ url: string, publicUrl: string, fingerprint: string | null, token: string, signInLink: () => string, ask: ReturnType<typeof createAdmin>['ask'] }>} */
async function serve (tools, { supervisor, deck, startedAt }) {
  const { config, place, dataDir, logs, log, terminal, closers } = tools
  const token = dataDir.token()
  const certificate = openCertificate(config.admin.tls, {
    onRenewed: (fingerprint) => {
      announce(tools, { adminUrl: url, fingerprint, startedAt })
      register(tools, { deck, startedAt }, { url, publicUrl, fingerprint })
    },
    onError: (error) => log.error({ err: error }, 'a renewed certificate could not be taken')
  })
  const admin = createAdmin({ deck, history: deck.history, token, ...config.admin, ...place, portsToTry: originOf(config, 'admin.port') ? 1 : PORTS_TO_TRY, certificate, maxConnections: roomWithin(descriptorLimit()), loadAfter: waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS), log })
  const { url, publicUrl, port, socket } = await admin.listen()
  if (place.port !== 0 && !place.socket && port !== place.port) terminal.quote(`port ${place.port} is in use, so the admin page is on ${port} (option --admin-port)`)
  place.hold(socket)
  closers.add(logs, ({ close }, how) => close(how))
  closers.add(admin, ({ close }) => close())
  logs.start()
  const fingerprint = certificate?.fingerprint ?? null
  register(tools, { deck, startedAt }, { url, publicUrl, fingerprint })
  closers.add(register, (_, { handsOver }) => { if (!handsOver) withdrawDeck({ dataDir: config.dataDir, master: identifyProcess(process.pid) }) })
  return { url, publicUrl, fingerprint, token, signInLink: admin.signInLink, ask: admin.ask }
}

/**
 * For whoever looks for this master in its data folder, with all by which it is told from others.
 * @param {Tools} tools @param {{ adminUrl: string, fingerprint: string | null, startedAt: string }} master
 */
function announce ({ dataDir, keeper }, { adminUrl, fingerprint, startedAt }) {
  dataDir.announce({ ...identifyProcess(process.pid), keeper: identityOf(keeper), pidNamespace: pidNamespace(), adminUrl, ...(fingerprint && { fingerprint }), startedAt })
}

/** @param {Tools['keeper']} keeper */
function identityOf ({ isKept }) {
  return isKept ? identifyProcess(process.ppid) : null
}

/**
 * In the list of all decks of this user, on which no start depends.
 * @param {Tools} tools @param {Pick<Cluster, 'deck' | 'startedAt'>} cluster @param {{ url: string, publicUrl: string, fingerprint: string | null }} admin
 */
function register ({ config, keeper, log }, { deck, startedAt }, { url, publicUrl, fingerprint }) {
  const { entry, cwd, dataDir } = config
  try {
    registerDeck({
      name: deck.snapshot().app.name,
      entry,
      cwd,
      dataDir,
      configFile: configFileOf(config),
      adminUrl: url,
      publicUrl: config.admin.publicUrl ? publicUrl : null,
      fingerprint,
      version,
      startedAt,
      master: identifyProcess(process.pid),
      keeper: identityOf(keeper)
    })
  } catch (error) {
    log.warn({ err: error }, 'this deck is not in the list of running decks')
  }
}

/** @param {import('./config/config.js').Config['admin']['tls']} files @param {Omit<Parameters<typeof createCertificate>[1], 'timers'>} hooks */
function openCertificate ({ cert, key }, hooks) {
  return cert && key ? createCertificate({ cert, key }, { ...hooks, timers: globalThis }) : null
}

/**
 * The two ways in which a master leaves.
 * @param {Tools} tools @param {Past} past @param {Cluster} cluster
 */
function end ({ keeper, hooks, closers }, { events }, { supervisor, deck, startedAt }) {
  /** @type {ReturnType<typeof createDeferred<number>>} the exit code */
  const stopped = createDeferred()
  let hasEnded = false
  return {
    stopped: stopped.reached,

    get hasEnded () { return hasEnded },

    /** @param {number} exitCode 1: without any grace */
    async stop (exitCode) {
      if (hasEnded) return
      hasEnded = true
      const delivered = keeper.deliver({ type: 'ending' })
      const hooksEnded = hooks.close(exitCode === 0 ? {} : { graceMs: 0 })
      if (exitCode !== 0) await killWorkers()
      await hooksEnded
      tellStopped({ code: exitCode })
      await closers.close()
      await delivered
      stopped.reach(exitCode)
    },

    /** The next master has its workers ready: it gets all that there is one of. */
    async handOver () {
      if (hasEnded) return
      hasEnded = true
      supervisor.handOver()
      await hooks.close()
      tellStopped({ cause: 'upgrade', code: 0 })
      await closers.close({ handsOver: true })
      await keeper.deliver({ type: 'handed-over' })
      stopped.reach(0)
    }
  }

  /** @param {{ code: number, cause?: string }} how */
  function tellStopped (how) {
    events.publish({ type: 'master.stopped', pid: process.pid, uptimeMs: Date.now() - Date.parse(startedAt), ...how })
  }

  /** Their exits are still recorded; one that the kernel does not let go is not waited for. */
  async function killWorkers () {
    if (supervisor.snapshot().state !== 'stopping') deck.dispatch({ type: 'stop', actor: 'signal' })
    supervisor.killAll('the master was told to end at once')
    await waitAtMost(supervisor.finished, KILL_PATIENCE_MS)
  }
}

/**
 * @param {Tools} tools @param {Past} past @param {Cluster} cluster
 * @param {{ admin: Awaited<ReturnType<typeof serve>>, ending: ReturnType<typeof end> }} parts
 */
function run (tools, past, cluster, { admin, ending }) {
  const { keeper, config, settings, releases, hooks, terminal, closers } = tools
  const { next, memory, history, events, release } = past
  const { supervisor } = cluster
  const since = memory.since ?? events.lastId + 1
  const startTime = performance.now()
  const left = takeStock(tools, past, cluster, { since, adminUrl: admin.url, fingerprint: admin.fingerprint })

  events.publish({ type: 'master.started', pid: process.pid, actor: 'system', detail: { ...SOFTWARE, workers: memory.workers } })
  hooks.open({ events, fingerprint: (group) => history.crashes.find(group)?.fingerprint ?? null })
  if (!tools.isGuest) ownProcess(tools, past, cluster, ending)
  closers.add(rememberFor({ memory: tools.memoryStore, events, supervisor, settings, releases, hooks, software: SOFTWARE, since }), (remember, { handsOver }) => handsOver ? remember.handOver() : remember.forget())
  releases.follow({ events, supervisor })
  hooks.endLeft(memory.hooks)
  if (next) {
    next.open(events, isOnRecord(history))
    events.publish({ type: 'master.upgraded', pid: process.pid, actor: 'system', message: describeChange(memory.before, SOFTWARE), detail: { from: memory.before, to: SOFTWARE } })
    supervisor.takeOver({ ...memory, left })
  } else {
    supervisor.start({ ...memory, left, hasHook: hooks.has('beforeStart') && isNewStart(tools, past) })
  }
  // What is not in the list would be removed, and without the history nobody knows the list.
  if (!history.away && !tools.dataDir.away) releases.clean()
  followNext({ keeper, supervisor, events, onHandOver: ending.handOver })

  joinFleet(tools, cluster, { admin, ending })
  const announceMaster = () => announce(tools, { adminUrl: admin.url, fingerprint: admin.fingerprint, startedAt: cluster.startedAt })
  restoreIfGone(tools, past, announceMaster)
  // A master that starts while the disk is full writes its master.json to another folder.
  events.subscribe(({ type }) => { if (type === 'history.recovered' && !ending.hasEnded) announceMaster() })
  supervisor.running.then(() => {
    releases.settleFirst(release.id)
    terminal.started({ version, entry: config.entry, workers: memory.workers, addresses: supervisor.addresses(), admin, bootMs: Math.round(performance.now() - startTime) })
  })
  supervisor.startBlocked.then(({ message }) => {
    terminal.fail(message)
    ending.stop(1)
  })
  supervisor.finished.then(() => ending.stop(0))
  setTimeout(() => tellWaiting(past, cluster), WAITING_AFTER_MS).unref()
  keeper.on('reaped', supervisor.reaped)
  keeper.onLost(() => events.publish({ type: 'keeper.lost', actor: 'system', message: 'the keeper is gone: this master keeps running, but nothing restarts it if it dies' }))
  startBeat(keeper)
  keeper.send({ type: 'started', hearsSignals: true, giveUpAfter: config.keeper.giveUpAfter, hang: hangOptions(settings.current) })
}

/**
 * A master that replaces one that has died only goes on, unless that one has not come past the hook.
 * @param {Tools} tools @param {Past} past
 */
function isNewStart ({ keeper }, { memory }) {
  return !keeper.predecessor || memory.hooks.some(({ name }) => name === 'beforeStart')
}

/**
 * Among decks on other machines, on which nothing here depends, and for which no app waits: what it needs is loaded after that.
 * @param {Tools} tools @param {Cluster} cluster @param {{ admin: Pick<Awaited<ReturnType<typeof serve>>, 'publicUrl' | 'ask'>, ending: ReturnType<typeof end> }} parts
 */
async function joinFleet ({ config, dataDir, log, closers }, { deck, supervisor }, { admin: { publicUrl, ask }, ending }) {
  if (config.fleet.servers.length === 0) return
  try {
    await waitAtMost(supervisor.running, LOAD_SITE_WITHIN_MS)
    const { createFleet } = await import('./fleet/fleet.js')
    if (ending.hasEnded) return
    const fleet = createFleet({ options: config.fleet, folder: dataDir.folder, deck, root: config.releases.root, version, url: config.admin.publicUrl ? publicUrl : null, log, serve: (order, asker, limits) => ask(order, { ...asker, token: null, until: null, via: 'fleet' }, limits) })
    deck.fleet = closers.add(fleet, ({ close }) => close())
  } catch (error) {
    log.error({ err: error }, 'this deck is not in its fleet')
  }
}

/**
 * What the master before could not record or do itself. No start depends on it: a disk that is full keeps nobody from
 * serving, and the next change tries again.
 * @param {Tools} tools @param {Past} past @param {Cluster} cluster @param {{ since: number, adminUrl: string, fingerprint: string | null }} start
 * @returns {import('./cluster/supervisor.js').SavedWorker[]} the workers that it has left
 */
function takeStock (tools, { memory, history, events }, { supervisor, startedAt }, { since, adminUrl, fingerprint }) {
  const { memoryStore, log, vitals, releases, terminal } = tools
  /** @param {() => void} work */
  const attempt = (work) => {
    try {
      work()
    } catch (error) {
      log.error({ err: error }, 'this could not be done at the start')
    }
  }

  let { left } = memory
  if (memory.lost) tellLost(events, memory.lost)
  attempt(() => signMemory(memoryStore))
  attempt(() => announce(tools, { adminUrl, fingerprint, startedAt }))
  keepOutcomes({ releases, events })
  attempt(() => endUnfinished({ history, events }))
  attempt(() => { left = reconcileWorkers(left, history.workerLives(since), supervisor.memory().workers) })
  if (history.movedAside) terminal.line(`the history was unreadable and is kept as ${history.movedAside}; a new one starts`)
  vitals.keepIn({
    store: history.vitals,
    // As an event that the recorder cannot write either it gets the database repaired; as one that it can it is on record.
    onFailure: (error) => events.publish({ type: 'unexpected', actor: 'system', message: `the vitals could not be written: ${error instanceof Error ? error.message : error}` })
  })
  return left
}

/**
 * The data folder, which may go with an old release that it lies in.
 * @param {Tools} tools @param {Past} past @param {() => void} announce
 */
function restoreIfGone ({ dataDir, terminal, closers }, { history, events }, announce) {
  let isTold = false
  const timer = setInterval(() => {
    if (dataDir.isThere()) return
    try {
      dataDir.restore()
      history.reopen()
      announce()
      events.publish({ type: 'unexpected', actor: 'system', message: `the data folder ${dataDir.folder} was removed; it is made anew, and the history begins anew there` })
    } catch (/** @type {any} */ error) {
      if (!isTold) terminal.fail(`the data folder ${dataDir.folder} was removed, and cannot be made anew: ${error.message}`)
      isTold = true
    }
  }, LOOK_FOR_DATA_EVERY_MS).unref()
  closers.add(timer, clearInterval)
}

/** @param {Past['events']} events @param {NonNullable<Past['memory']['lost']>} lost */
function tellLost (events, { hang, ...exit }) {
  const how = hang ? `did not answer for ${hang.silentMs} ms, and was ended by the keeper${hang.stack ? '' : `; no JavaScript stack: ${hang.reason}`}` : 'ended without stopping its workers'
  events.publish({ type: 'master.stopped', cause: 'master-lost', ...exit, message: `the master (pid ${exit.pid}) ${how}`, ...(hang?.stack && { detail: { stack: hang.stack } }) })
}

/**
 * What concerns the process as a whole.
 * @param {Tools} tools @param {Past} past @param {Cluster} cluster @param {ReturnType<typeof end>} ending
 */
function ownProcess (tools, { events }, cluster, ending) {
  const { keeper, settings } = tools
  // By itself V8 lets the garbage of a flood fill four times of what is in use.
  v8.setFlagsFromString('--heap-growing-percent=50')
  const { leave, untilDeploying } = listenToSignals(tools, cluster, ending)
  tellServiceManager({ events, supervisor: cluster.supervisor, settings, keeper }, { sources: [process, keeper.signals], untilDeploying })
  reapOrphans(tools, cluster)
  ending.stopped.then(leave)
}

/** @param {Tools} tools @param {Cluster} cluster @param {ReturnType<typeof end>} ending */
function listenToSignals ({ terminal, keeper }, { deck }, ending) {
  let deploying = Promise.resolve()
  const leave = listenForSignals({
    onStop () {
      terminal.line('stopping: the workers finish their requests; send the signal again to stop at once')
      attempt(() => deck.dispatch({ type: 'stop', actor: 'signal' }))
    },
    onKill: () => ending.stop(1),
    onDeploy: () => { deploying = attempt(() => deck.deploy({ actor: 'signal' })) },
    onRestart: () => attempt(() => deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'signal' }))
  }, { sources: [process, keeper.signals] })
  return { leave, untilDeploying: () => deploying }

  /** @param {() => unknown} work */
  async function attempt (work) {
    // What comes now is for the next master, to which the keeper says it again.
    if (ending.hasEnded) return
    try {
      await work()
    } catch (/** @type {any} */ error) {
      terminal.line(`refused: ${error.message}`)
    }
  }
}

/**
 * As process 1 of a container every orphan is its child; otherwise that is the keeper's business, or the system's.
 * @param {Tools} tools @param {Cluster} cluster
 */
function reapOrphans ({ logs, releases, hooks, terminal }, { supervisor }) {
  if (process.pid !== 1) return
  createReaper({ isOurs: (pid) => supervisor.isWorker(pid) || logs.isArchiver(pid) || releases.isChild(pid) || hooks.isChild(pid), onReaped: supervisor.reaped, say: terminal.fail })
}

/** @param {Past} past @param {Cluster} cluster */
function tellWaiting ({ events }, { supervisor }) {
  const message = supervisor.waitingFor()
  if (message) events.publish({ type: 'master.waiting', actor: 'system', message })
}
