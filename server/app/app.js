import { checkDatabase } from '../../db/open.js'
import { openHistory } from '../../db/history.js'
import { createHooks } from '../cluster/hooks.js'
import { loadSchema } from '../config/config.js'
import { nextRun, timeZoneOf } from '../config/cron.js'
import { createSettings } from '../config/settings.js'
import { createCrashRecorder } from '../crashes/recorder.js'
import { createRecorder, WRITTEN } from '../events/recorder.js'
import { createEventStream } from '../events/stream.js'
import { createCheckpointStore, restoreCheckpoint } from '../handover/checkpoint.js'
import { createNextMaster, isOnRecord } from '../handover/next-master.js'
import { createJobs } from '../jobs/jobs.js'
import { createLogs } from '../logs/logs.js'
import { createDrift } from '../releases/drift.js'
import { keepOutcomes } from '../releases/outcomes.js'
import { readGitAhead } from '../releases/git.js'
import { openReleases } from '../releases/registry.js'
import { createSecretMask } from '../releases/secret-mask.js'
import { tidySoon } from '../system/heap.js'
import { isAlive } from '../system/process-identity.js'
import { createAppMetrics } from '../telemetry/app-metrics.js'
import { wantsTelemetry } from '../telemetry/wanted.js'
import { createVitals } from '../vitals/vitals.js'
import { tellGrowingMemory } from './growing-memory.js'
import { tellSlowSpells } from './slow-spells.js'
import { createCluster } from './cluster.js'
import { createAppDeck } from './deck.js'
import { startInTurn } from './turn.js'

/** A master may have recorded this much since it last wrote its checkpoint, where the history cannot be asked: no id is given out twice. */
const UNKNOWN_EVENTS = 1000

/**
 * What an app is lent by the process that it is in.
 * @typedef {object} HostServices
 * @property {import('../keeper/app-links.js').AppLink} keeper  what it has of the keeper
 * @property {ReturnType<import('../handover/joint-upgrade.js').JointUpgrade['of']>} [upgrade]  where other apps change masters with it
 * @property {import('../system/closers.js').Closers} closers
 * @property {ReturnType<typeof import('../system/log.js').createLog>} log
 * @property {import('../terminal.js').Lines} terminal
 * @property {import('../logs/mirror.js').Streams} streams
 * @property {import('../handover/checkpoint.js').Software} software
 * @property {import('../system/other-decks.js').OtherDecks} others  decks of this user on this machine
 * @property {() => import('../fleet/app-fleet.js').AppFleet | null} fleet  this app on other machines
 * @property {boolean} joinsFleet  whether there is to be one, once it has been joined
 * @property {import('../deck.js').Move} [move]  into a host; without it, it is in one
 * @property {() => string | null} [publicUrl]  where people find its dashboard, in a host
 * @property {boolean} [isMove]  it comes from a deck of its own, which keeps it where it cannot be opened
 * @property {import('./turn.js').Turns | null} turns  of the apps that start; null: there is no other one
 * @property {import('../cluster/rollout-turn.js').Turns | null} rolloutTurns  of the apps that are being deployed; null: there is no other one
 */

/**
 * `reload`: reads the configuration anew, for a deploy; `launchIn`: for the app in that folder.
 * @typedef {object} AppSource
 * @property {import('../config/config.js').Config} config
 * @property {((launchIn?: string) => Promise<import('../config/config.js').Config>) | undefined} reload
 * @property {import('../system/data-dir.js').DataDir} dataDir
 * @property {Record<string, string | undefined>} [environment]  what its workers, hooks and git inherit: the variables of the shell
 *   that has started it, where that is not the one of this process
 */

/** @typedef {Awaited<ReturnType<typeof openApp>>} App */

/**
 * Makes one app of its configuration, its data folder and what the process lends it. `startWorkers` starts its workers; in an
 * upgrade they run already, beside those of the master before, and this resolves once that one has gone.
 * @param {AppSource} source @param {HostServices} host
 * @throws {import('../errors.js').DeckError} invalid-config, entry-not-found, copy-failed, secrets-failed, data-dir-unusable, master-running, upgrade-failed
 */
export async function openApp ({ config, reload, dataDir, environment = process.env }, host) {
  const { keeper, closers, log, terminal, streams } = host
  const isNext = keeper.role === 'next'
  // In an upgrade, problems have to show now: the other master still runs.
  if (isNext) checkDatabase(dataDir.historyFile)
  else lockDataDir()
  const settings = createSettings(config, { key: dataDir.releaseKey() })
  const checkpoints = createCheckpointStore({ file: dataDir.memory, keeper: keeper.memory, isAway: dataDir.away !== null })
  let restored = await restoreCheckpoint(checkpoints.read(), config, isNext ? null : keeper.predecessor)
  if (restored.changes.length > 0) await loadSchema()
  // A release that goes on is described already.
  const forgetCheckout = closers.add(restored.release ? () => {} : readGitAhead(config.entry, { env: environment }), (forget) => forget())
  settings.restore(restored.changes)

  const history = openHistory({ file: dataDir.historyFile, retention: config.history, owner: isNext ? 'another master has it' : null })
  /** @type {import('../handover/next-master.js').NextMaster | null} */
  const next = isNext ? createNextMaster({ keeper, supervisor: () => supervisor }) : null
  const mask = createSecretMask()
  const events = createEventStream({
    hide: mask.hide,
    lastId: isNext ? 0 : lastEventId(),
    relay: next?.relay,
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed')
  })
  let recorder = isNext ? null : recordEvents()
  const vitals = closers.add(createVitals({ store: history.vitals, onFailure: tellVitalsFailure, ...tellSlowSpells(events), ...tellGrowingMemory({ events, options: () => settings.current }) }), ({ stop }) => stop())
  vitals.start()
  const appMetrics = createAppMetrics({ tell: (worker, message) => cluster?.tell(worker, message) })
  const logs = closers.add(
    createLogs({ folder: dataDir.logFolder, options: settings.current.logs, streams, onError: (reason) => log.error({}, reason) }),
    ({ close }, how) => close(how)
  )
  const drift = createDrift()
  /** @type {import('../cluster/supervisor.js').Supervisor | null} */
  let cluster = null
  /** @type {import('../jobs/jobs.js').Jobs | null} */
  let jobs = null
  const releases = await openReleases({
    config,
    cwd: restored.release?.cwd,
    // What fails where another master goes on with the app is to fail now.
    canWait: !isNext && !host.isMove && restored.release !== null && restored.left.some(({ identity }) => identity && isAlive(identity)),
    reload,
    dataDir,
    history,
    lastNumber: restored.lastRelease,
    cluster: () => cluster,
    usedByRuns: () => jobs?.releasesInUse() ?? [],
    events,
    drift,
    mask,
    inherited: environment,
    onError: (error) => log.error({ err: error }, 'the releases could not be kept as they should')
  })
  const hooks = createHooks({
    configured: releases.hooks,
    release: releases.find,
    environment: releases.environment,
    inherited: environment,
    cwd: config.cwd,
    events,
    fingerprint: (group) => history.crashes.find(group)?.fingerprint ?? null
  })
  const crashes = createCrashRecorder({ store: history.crashes, events, logs, vitals, hide: mask.hide })
  events.subscribe(({ type }) => { if (type === 'history.recovered') crashes.catchUp() })
  events.subscribe(terminal.show)
  events.subscribe(vitals.count)
  events.subscribe(({ type }) => { if (type === 'worker.exited') tidySoon() })
  keepOutcomes({ releases, events })

  const first = await releases.beginWith(restored.release)
  forgetCheckout()
  /** @type {import('../cluster/supervisor.js').Supervisor} */
  const supervisor = cluster = createCluster({ settings, environment, keeper, dataDir, vitals, appMetrics, logs, drift, releases, hooks, crashes, history, events, rolloutTurns: host.rolloutTurns }, {
    release: first.release,
    restored,
    next
  })
  closers.add(supervisor, ({ close }) => close())
  if (next) await takeOver(next)
  const since = restored.since ?? events.lastId + 1
  if (next) next.unrecorded(isOnRecord(history)).forEach(events.publish)

  jobs = createJobs({
    jobs: config.jobs,
    configured: releases.jobs,
    current () {
      const { state, release, upgrade } = supervisor.snapshot()
      return { release: release.id, isStopping: state === 'stopping', isUpgrading: upgrade !== null, secretsProblem: releases.secretsProblem() }
    },
    release: releases.find,
    environment: releases.environment,
    inherited: environment,
    cwd: config.cwd,
    events,
    store: history.jobRuns,
    dataFolder: dataDir.folder,
    logFolder: dataDir.logFolder,
    logLimits: () => settings.current.logs,
    onLogError: (reason) => log.error({}, reason),
    hide: mask.hideValues,
    keeper,
    nextRun: (cron, after, timeZone = timeZoneOf(environment)) => nextRun(cron, after, timeZone)
  })
  const startedAt = new Date().toISOString()
  const deck = await createAppDeck({
    config,
    dataDir,
    environment,
    settings,
    history,
    events,
    vitals,
    appMetrics,
    logs,
    releases,
    supervisor,
    jobs,
    startedAt,
    hide: mask.hide,
    historyState: () => dataDir.away === null ? recorder?.state ?? WRITTEN : { ...WRITTEN, problem: dataDir.away }
  }, host)
  if (releases.secretsProblem() === null) await tellCollectors()
  else tellCollectorsLater()
  return { config, dataDir, checkpoints, settings, restored, since, startedAt, history, events, vitals, logs, releases, hooks, jobs, supervisor, deck, first, isNext }

  /** From here on the data folder is this master's, until it lets go of it or ends. */
  function lockDataDir () {
    dataDir.lock()
    closers.add(dataDir, (_, { handsOver }) => dataDir.release({ handsOver }))
  }

  function recordEvents () {
    closers.add(history, ({ close }) => close())
    return closers.add(createRecorder({ history, events, spare: keeper.spare }), (recorder) => recorder.close())
  }

  /** Where to, and with which key, may be among the secrets that are still missing. */
  function tellCollectorsLater () {
    const unsubscribe = events.subscribe(({ type }) => {
      if (type !== 'secrets.read') return
      unsubscribe()
      tellCollectors().catch((error) => log.error({ err: error }, 'metrics and logs are not sent'))
    })
  }

  async function tellCollectors () {
    const variables = { ...environment, ...releases.environment(first.release.id) }
    if (!wantsTelemetry(config, variables)) return
    const { startTelemetry } = await import('../telemetry/telemetry.js')
    closers.add(startTelemetry({
      options: config.telemetry,
      environment: variables,
      app: deck.snapshot().app,
      master: deck.snapshot().master,
      events,
      logs,
      readApp: async () => (await appMetrics.read()).metrics,
      facts: () => ({ vitals: vitals.metrics(), status: deck.snapshot(), jobs: jobs?.metrics() ?? [] })
    }), ({ close }) => close())
  }

  /** @returns {number} the newest id that may have been given out */
  function lastEventId () {
    const ids = [history.lastEventId(), restored.lastEvent, ...keeper.spare.events.map(({ id }) => id)]
    return Math.max(...ids) + (history.away ? UNKNOWN_EVENTS : 0)
  }

  /** @param {import('../handover/next-master.js').NextMaster} master */
  async function takeOver (master) {
    if (first.isNew) releases.tellCreated(first.release)
    startInTurn(supervisor, host, { workers: restored.workers, finished: restored.finished })
    const predecessor = await master.whenAlone()
    lockDataDir()
    // It has been written until a moment ago.
    restored = await restoreCheckpoint(checkpoints.read(), config, predecessor ?? keeper.predecessor)
    history.takeOver()
    releases.readKept()
    recorder = recordEvents()
    events.takeOver(lastEventId())
  }

  /** @param {unknown} error */
  function tellVitalsFailure (error) {
    // The recorder gets the database repaired where it cannot write this event either; where it can, the failure is on record.
    events.publish({ type: 'unexpected', actor: 'system', message: `the vitals could not be written: ${error instanceof Error ? error.message : error}` })
  }
}
