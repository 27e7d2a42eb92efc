import { readFileSync } from 'node:fs'
import { openHistory } from '../db/history.js'
import { adminPlace } from './systemd/activation.js'
import { createAdmin } from './admin/listener.js'
import { standBy } from './handover/next-master.js'
import { createForker } from './cluster/forker.js'
import { listenForSignals } from './system/signals.js'
import { createSupervisor } from './cluster/supervisor.js'
import { openDataDir } from './system/data-dir.js'
import { createCrashRecorder } from './crashes/recorder.js'
import { createDeck } from './deck.js'
import { createDiagnostics } from './diagnostics/diagnostics.js'
import { openStore } from './diagnostics/store.js'
import { createEventStream } from './events/stream.js'
import { connectKeeper } from './keeper/link.js'
import { createState, shownRelease } from './lifecycle/state.js'
import { createLog } from './system/log.js'
import { createLogs } from './logs/logs.js'
import { createNotifier } from './webhooks/webhooks.js'
import { createReaper } from './keeper/reaper.js'
import { createJudge } from './releases/judge.js'
import { createReleases } from './releases/registry.js'
import { createRecorder } from './events/recorder.js'
import { createDrift } from './releases/drift.js'
import { tellServiceManager } from './systemd/service-manager.js'
import { inherit, reconcile, rememberFor, signMemory } from './handover/memory.js'
import { createTerminal } from './terminal.js'
import { followNext } from './handover/old-master.js'
import { createVitals } from './vitals/vitals.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const KILL_PATIENCE_MS = 1000
/** After which a start says what it is waiting for. */
const WAITING_AFTER_MS = 5000

/** What the end of a deploy means for its release. @type {Record<string, import('./releases/registry.js').Outcome>} */
const OUTCOMES = { 'rollout.succeeded': 'succeeded', 'rollout.failed': 'failed', 'rollout.rolled-back': 'rolled-back' }

/**
 * Makes and starts a whole master: the one place where its parts meet. It owns the signals of this process until
 * `stopped`.
 * @param {import('./config/config.js').Config} config
 * @param {{ stdout?: NodeJS.WritableStream, stderr?: NodeJS.WritableStream, reload?: () => Promise<import('./config/config.js').Config> }} [options]
 *   `reload`: reads the configuration anew, for a deploy
 * @returns {Promise<{ adminUrl: string, stopped: Promise<number> }>} `stopped`: the exit code
 * @throws {import('./errors.js').DeckError} invalid-config, entry-not-found, snapshot-failed, data-dir-unusable, master-running, port-in-use, listen-failed,
 *   upgrade-failed; then nothing was started, or it has gone again
 */
export async function startMaster (config, { stdout = process.stdout, stderr = process.stderr, reload } = {}) {
  const keeper = await connectKeeper()
  const place = adminPlace(config, keeper)
  const dataDir = openDataDir(config.dataDir)
  const vitals = createVitals()
  vitals.start()
  const log = createLog(dataDir.logFile)
  const logs = createLogs({ folder: dataDir.logFolder, options: config.logs, streams: { stdout, stderr }, onError: (reason) => log.error(reason) })
  const crashRecorder = createCrashRecorder({ logs, vitals })
  const drift = createDrift()
  /** @type {((files: string[]) => void) | null} */
  let watchLoaded = null
  let hasStarted = false
  const releases = createReleases({
    config,
    reload,
    dataDir,
    inUse: () => hasStarted ? supervisor.releasesInUse() : [],
    isDrifted: drift.isDrifted,
    current: () => hasStarted ? supervisor.snapshot().release.id : null,
    onCreated (release, actor) {
      // The first one is told of by the lifecycle, once it begins.
      if (hasStarted) events.publish({ type: 'release.created', release: release.id, actor, detail: shownRelease(release) })
    },
    onError: (error) => log.error({ err: error }, 'the releases could not be kept as they should')
  })
  const candidate = keeper.role === 'next' ? await standBy({ keeper, config, dataDir, releases, supervise }) : null
  dataDir.lock()
  if (!candidate) await releases.begin()
  const { lost, before, sockets, addresses, workers, nextWorker, guard, ...inherited } = inherit(dataDir.memory.read(), config, candidate?.predecessor ?? keeper.predecessor)
  process.on('uncaughtExceptionMonitor', (error) => log.fatal({ err: error }, 'the master failed'))
  const history = openHistory({ file: dataDir.historyFile, retention: config.history })
  const events = createEventStream({
    lastId: history.lastEventId(),
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed')
  })
  const since = inherited.since ?? events.lastId + 1
  const recorder = createRecorder({ history, events })
  const notifier = createNotifier({ targets: config.notify, events, deck: { app: config.entry, pid: process.pid, version }, log })
  releases.open(history.releases, history.lastReleaseNumber)
  const { release, isNewRelease } = candidate ?? await firstRelease()
  crashRecorder.open({ store: history.crashes, events })
  const terminal = createTerminal({ stdout })
  // EPIPE, as for the terminal.
  stderr.on('error', () => {})
  events.subscribe(terminal.show)
  events.subscribe(vitals.count)

  const startedAt = new Date()
  const supervisor = candidate?.supervisor ?? supervise({
    release,
    lastRollout: history.lastRolloutId(),
    lastRelease: history.lastReleaseNumber(),
    nextWorker,
    addresses,
    events,
    outlives: () => true,
    onStartBlocked: giveUp
  })
  const software = { version, nodeVersion: process.version }
  const master = { pid: process.pid, ...software, startedAt: startedAt.toISOString() }
  const diagnostics = createDiagnostics({ supervisor, events, store: openStore(dataDir.diagnosticsFolder, config.diagnostics) })
  const deck = createDeck({ config, supervisor, events, history, vitals, master, diagnostics, logs, releases, isKept: () => keeper.isKept })
  const watcher = config.watch ? await watchFor({ deck, logs, events, terminal }) : null
  watcher?.add([config.entry])
  watchLoaded = watcher && watcher.add
  const admin = createAdmin({ deck, history, token: dataDir.token(), ...config.admin, ...place, log })

  const { url: adminUrl, socket } = await admin.listen().catch(async (error) => {
    await watcher?.close()
    await recorder.close()
    history.close()
    throw error
  })
  place.hold(socket)
  logs.start()
  if (lost) events.publish({ type: 'master.stopped', cause: 'master-lost', ...lost, message: `the master (pid ${lost.pid}) ended without stopping its workers` })
  // A disk that is full keeps nobody from serving: the next change tries again.
  attempt(() => signMemory(dataDir.memory))
  attempt(() => dataDir.announce({ pid: process.pid, adminUrl, startedAt: master.startedAt }))
  attempt(closeUnfinished)
  let { left } = inherited
  attempt(() => { left = reconcile(left, history.workerLives(since), supervisor.memory().workers) })
  if (history.movedAside) terminal.line(`the history could not be read and was moved to ${history.movedAside}; a new one begins`)

  vitals.keepIn({
    store: history.vitals,
    // As an event that the recorder cannot write either it gets the database repaired; as one that it can it is on record.
    onFailure: (error) => events.publish({ type: 'unexpected', actor: 'system', message: `the vitals could not be written: ${error instanceof Error ? error.message : error}` })
  })

  const stopListening = listenForSignals({
    onStop () {
      terminal.line('stopping: the workers answer what they have; once more to stop at once')
      dispatch({ type: 'stop' })
    },
    onKill: () => end(1),
    onDeploy: () => { deploying = deploy() },
    onRestart: () => dispatch({ type: 'rollout', kind: 'restart' })
  })

  /** @type {(exitCode: number) => void} */
  let resolveStopped
  /** @type {Promise<number>} */
  const stopped = new Promise((resolve) => { resolveStopped = resolve })
  let hasEnded = false
  let isHandingOver = false
  let deploying = Promise.resolve()

  events.publish({ type: 'master.started', pid: process.pid, actor: 'system', detail: { ...software, workers } })
  tellServiceManager({ events, supervisor, config, keeper }, { untilDeploying: () => deploying })
  // As process 1 of a container every orphan is its child; otherwise that is the keeper's business, or the system's.
  if (process.pid === 1) createReaper({ isOurs: (pid) => supervisor.isWorker(pid) || logs.isArchiver(pid) || releases.isChild(pid), onReaped: supervisor.reaped, say: (line) => stderr.write(`clusterdeck: ${line}\n`) })
  const startTime = performance.now()
  const stopWaiting = events.subscribe(announceStart)
  const remember = rememberFor({ memory: dataDir.memory, events, supervisor, config, releases, software, since })
  hasStarted = true
  events.subscribe(settleRelease)
  if (candidate) {
    candidate.open(events, ({ type, worker }) => worker !== undefined && history.page({ type: [type], worker, limit: 1 }).items.length > 0)
    events.publish({ type: 'master.upgraded', pid: process.pid, actor: 'system', message: changeOf(before, software), detail: { from: before, to: software } })
    supervisor.takeOver({ left, nextWorker, guard })
  } else {
    supervisor.start({ workers, left, sockets, isNewRelease, guard })
  }
  releases.clean()
  setTimeout(tellWaiting, WAITING_AFTER_MS).unref()
  followNext({ keeper, supervisor, events, onHandOver: handOver })
  supervisor.finished.then(() => end(0))
  keeper.on('reaped', supervisor.reaped)
  keeper.onLost(() => events.publish({ type: 'keeper.lost', actor: 'system', message: 'the keeper is gone: this master goes on, but nobody would start the next one' }))
  keeper.send({ type: 'started', giveUpAfter: config.keeper.giveUpAfter })
  return { adminUrl, stopped }

  /** @param {Omit<Parameters<typeof createState>[0], 'options' | 'time'> & { events: any, outlives: () => boolean, onStartBlocked: (error: import('./cluster/sockets.js').BindError) => void }} start */
  function supervise ({ events, outlives, onStartBlocked, ...start }) {
    const { ready, drain, stop, crash, restart, rollout, watchdog, recycle } = config
    const state = createState({ options: { ready, drain, stop, crash, restart, rollout, recycle, releases: config.releases }, time: Date.now(), ...start })
    return createSupervisor(state, { fork: createForker(config, { ...dataDir, outlives, logs, environment: releases.environment }), events, keeper, vitals, watch: { watchdog, recycle }, crashes: crashRecorder, judge: createJudge(), prepare, drift, onLoaded: (files) => watchLoaded?.(files), onStartBlocked })
  }

  /** @param {{ path?: string, release?: string }} source @param {{ note: string | null, actor: string }} by */
  function prepare ({ path, release }, by) {
    return release === undefined ? releases.prepare({ path, ...by }) : releases.load(release)
  }

  /** What the memory names, else what is configured now. */
  async function firstRelease () {
    try {
      if (inherited.release) return { release: releases.adopt(inherited.release), isNewRelease: false }
      const lastBefore = releases.lastNumber()
      return { release: await releases.first({ actor: 'system' }), isNewRelease: releases.lastNumber() > lastBefore }
    } catch (error) {
      await recorder.close()
      history.close()
      throw error
    }
  }

  /** @param {import('./events/stream.js').DeckEvent} event */
  function settleRelease ({ type, rollout, detail }) {
    if (type === 'history.recovered') return releases.save()
    if (!OUTCOMES[type]) return
    settleEnd(OUTCOMES[type], rollout, detail)
    // The lifecycle has let go of it by then.
    queueMicrotask(releases.prune)
  }

  /** @param {import('./releases/registry.js').Outcome} outcome @param {number | null} rollout @param {any} detail the rollout as it ended */
  function settleEnd (outcome, rollout, { kind, from, to }) {
    // A release that runs is no worse for a redeploy of it that was called off.
    if (!to || kind === 'restart' || (outcome !== 'succeeded' && to === from)) return
    releases.settle({ release: to, outcome, rollout })
  }

  function announceStart () {
    if (supervisor.snapshot().state !== 'running') return
    stopWaiting()
    // It may never have served, until another one was deployed.
    releases.settle({ release: release.id, outcome: supervisor.snapshot().release.id === release.id ? 'succeeded' : 'failed' })
    releases.prune()
    terminal.started({
      version,
      entry: config.entry,
      workers,
      addresses: supervisor.addresses(),
      signInLink: admin.signInLink(),
      bootMs: Math.round(performance.now() - startTime)
    })
  }

  function tellWaiting () {
    const message = supervisor.waitingFor()
    if (message) events.publish({ type: 'master.waiting', actor: 'system', message })
  }

  /** What the master before could not record itself. */
  function closeUnfinished () {
    for (const rollout of history.unfinishedRollouts()) {
      const reason = 'its master ended while it ran'
      const detail = { ...rollout, state: 'failed', done: true, finishedAt: new Date().toISOString(), reason: rollout.reason ?? reason }
      events.publish({ type: 'rollout.failed', cause: 'master-lost', rollout: rollout.id, release: rollout.to, actor: rollout.actor, message: detail.reason, detail })
      settleEnd('failed', rollout.id, detail)
    }
  }

  /** @param {() => void} work what no start depends on */
  function attempt (work) {
    try {
      work()
    } catch (error) {
      log.error({ err: error }, 'this could not be done at the start')
    }
  }

  async function deploy () {
    if (isHandingOver) return
    try {
      await deck.deploy({ actor: 'signal' })
    } catch (/** @type {any} */ error) {
      terminal.line(`not done: ${error.message}`)
    }
  }

  /** @param {Record<string, any>} command one that came by a signal */
  function dispatch (command) {
    // What comes now is for the next master, to which the keeper says it again.
    if (isHandingOver) return
    try {
      deck.dispatch({ ...command, actor: 'signal' })
    } catch (/** @type {any} */ error) {
      terminal.line(`not done: ${error.message}`)
    }
  }

  /** @param {import('./cluster/sockets.js').BindError} error */
  function giveUp ({ message }) {
    stderr.write(`clusterdeck: ${message}\n`)
    end(1)
  }

  /** Their exits are still recorded; one that the kernel does not let go is not waited for. */
  async function killWorkers () {
    if (supervisor.snapshot().state !== 'stopping') dispatch({ type: 'stop' })
    supervisor.killAll('the master was told to end at once')
    const { promise, cancel } = timeout(KILL_PATIENCE_MS)
    await Promise.race([supervisor.finished, promise])
    cancel()
  }

  /** The next master has its workers ready: it gets all that there is one of. */
  async function handOver () {
    if (hasEnded) return
    hasEnded = isHandingOver = true
    await admin.close()
    supervisor.handOver()
    const uptimeMs = Date.now() - startedAt.getTime()
    events.publish({ type: 'master.stopped', cause: 'upgrade', pid: process.pid, code: 0, uptimeMs })
    remember.handOver()
    vitals.stop()
    diagnostics.close()
    await Promise.all([notifier.close(), watcher?.close(), logs.close({ handsOver: true })])
    await recorder.close()
    history.close()
    dataDir.unlock()
    await keeper.deliver({ type: 'handed-over' })
    resolveStopped(0)
  }

  /** @param {number} exitCode 1: without any grace */
  async function end (exitCode) {
    if (hasEnded) return
    hasEnded = true
    const delivered = keeper.deliver({ type: 'ending' })
    if (exitCode !== 0) await killWorkers()
    events.publish({ type: 'master.stopped', pid: process.pid, code: exitCode, uptimeMs: Date.now() - startedAt.getTime() })
    remember.stop()
    diagnostics.close()
    await logs.close()
    await Promise.all([admin.close(), notifier.close(), watcher?.close()])
    vitals.stop()
    await recorder.close()
    history.close()
    dataDir.memory.clear()
    dataDir.withdraw()
    dataDir.unlock()
    await delivered
    stopListening()
    resolveStopped(exitCode)
  }
}

/**
 * Only a developer's master needs what watches files.
 * @param {{ deck: ReturnType<typeof createDeck>, logs: import('./logs/logs.js').Logs, events: import('./events/stream.js').EventStream, terminal: ReturnType<typeof createTerminal> }} parts
 */
async function watchFor ({ deck, logs, events, terminal }) {
  const { createWatcher } = await import('./releases/watch.js')
  return createWatcher({
    // The next change is to be tried, so nothing may wait for a person.
    deploy: () => deck.deploy({ actor: 'watch', strategy: { onFailure: 'rollback' } }),
    events,
    stderrOf: ({ slot, worker }) => slot === null || worker === null ? [] : logs.tail({ slot, worker, stream: 'stderr', lines: 20 }),
    tell: terminal.quote
  })
}

/** @param {import('./handover/memory.js').Software | null} before @param {import('./handover/memory.js').Software} now */
function changeOf (before, now) {
  const changes = [['clusterdeck', before?.version, now.version], ['Node', before?.nodeVersion, now.nodeVersion]].filter(([, from, to]) => from !== to)
  if (changes.length === 0) return `clusterdeck ${now.version} on Node ${now.nodeVersion}, as before`
  return changes.map(([what, from, to]) => `${what} ${from ?? 'of before'} → ${to}`).join(', ')
}

/** @param {number} ms */
function timeout (ms) {
  /** @type {NodeJS.Timeout} */
  let timer
  const promise = new Promise((resolve) => { timer = setTimeout(resolve, ms) })
  return { promise, cancel: () => clearTimeout(timer) }
}
