import { checkDatabase } from '../../db/open.ts'
import { openHistory } from '../../db/history.ts'
import { placesOf } from '../cluster/command-place.ts'
import { runCommand } from '../cluster/command-run.ts'
import { createHooks } from '../cluster/hooks.ts'
import { loadSchema, type Config } from '../config/config.ts'
import { nextRun, timeZoneOf } from '../config/cron.ts'
import { createSettings } from '../config/settings.ts'
import { createCrashRecorder } from '../crashes/recorder.ts'
import { createRecorder, WRITTEN } from '../events/recorder.ts'
import { createEventStream } from '../events/stream.ts'
import { areServing, createCheckpointStore, restoreCheckpoint, type Software } from '../handover/checkpoint.ts'
import { createNextMaster, isOnRecord, type NextMaster } from '../handover/next-master.ts'
import { createJobs, type Jobs } from '../jobs/jobs.ts'
import { createLogs } from '../logs/logs.ts'
import { createDrift } from '../releases/drift.ts'
import { keepOutcomes } from '../releases/outcomes.ts'
import { readGitAhead } from '../releases/git.ts'
import { openReleases } from '../releases/registry.ts'
import type { LaunchSource } from '../releases/launch-spec.ts'
import { createSecretMask } from '../releases/secret-mask.ts'
import { tidySoon } from '../system/heap.ts'
import { createAppMetrics } from '../telemetry/app-metrics.ts'
import { createMetricHistory } from '../telemetry/metric-history.ts'
import { wantsTelemetry } from '../telemetry/wanted.ts'
import { createVitals } from '../vitals/vitals.ts'
import { tellGrowingMemory } from './growing-memory.ts'
import { tellSlowSpells } from './slow-spells.ts'
import { createCluster } from './cluster.ts'
import { createAppDeck } from './deck.ts'
import { beginningOf, checkedRuns, keepRuns, type Runs, type RunsStore } from './runs.ts'
import { startInTurn } from './turn.ts'
import type { AppLink } from '../keeper/app-links.ts'
import type { JointUpgrade } from '../handover/joint-upgrade.ts'
import type { Closers } from '../system/closers.ts'
import type { createLog } from '../system/log.ts'
import type { Lines } from '../terminal.ts'
import type { Streams } from '../logs/mirror.ts'
import type { OtherDecks } from '../system/other-decks.ts'
import type { AppFleet } from '../fleet/app-fleet.ts'
import type { Move } from '../deck.ts'
import type { Turns } from '../cluster/rollout-turn.ts'
import type { DataDir } from '../system/data-dir.ts'
import type { Deck as Sender } from '../alerts/services.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Supervisor } from '../cluster/supervisor.ts'

/**
 * A master may have recorded this much since it last wrote its checkpoint, where the history cannot be asked: no id is
 * given out twice.
 */
const UNKNOWN_EVENTS = 1000

/** What an app is lent by the process that it is in. */
export type HostServices = {
  /** what it has of the keeper */
  keeper: AppLink,
  /** an upgrade, in which all apps of its host change masters, or none does */
  upgrade: ReturnType<JointUpgrade['of']>,
  /** whether its master has other apps, too */
  isShared: boolean,
  closers: Closers,
  log: ReturnType<typeof createLog>,
  terminal: Lines,
  streams: Streams,
  software: Software,
  /** decks of this user on this machine */
  others: OtherDecks,
  /** this app on other machines */
  fleet: () => AppFleet | null,
  /** whether there is to be one, once it has been joined */
  joinsFleet: boolean,
  /** moves it into the host of its user; without it, the app is there */
  move?: Move,
  /** where people find its dashboard */
  publicUrl: () => string | null,
  /** it comes from a deck of its own, which keeps it where it cannot be opened */
  isMove?: boolean,
  /** its host hears what happens to it, and tells what concerns all of its apps */
  tellHost?: (event: DeckEvent, sender: () => Sender) => void,
  /** of the apps that start; null: there is no other one */
  turns: Turns | null,
  /** of the apps that are being deployed; null: there is no other one */
  rolloutTurns: Turns | null
}

/** `reload`: reads the configuration anew, for a deploy; `launchIn`: for the app in that folder. */
export type AppSource = {
  config: Config,
  reload: (launchIn?: string) => Promise<Config>,
  dataDir: DataDir,
  /** what its workers, hooks and git inherit: the variables of the shell that has started it */
  environment: Record<string, string | undefined>,
  /** where what runs is kept */
  runs: RunsStore,
  /** the order that this start comes from; null: somebody has started the app in the foreground */
  order: Runs['order'],
  /** the newest order, for a deploy */
  source: () => LaunchSource,
  /** somebody wants the app as it is configured, and on the disk, now; else the start goes on with what ran */
  isOrdered?: boolean
}

export type App = Awaited<ReturnType<typeof openApp>>

/**
 * Makes one app of its configuration, its data folder and what the process lends it. `startWorkers` starts its workers;
 * in an upgrade they run already, beside those of the master before, and this resolves once that one has gone.
 * @throws {import('../errors.ts').DeckError} invalid-config, entry-not-found, copy-failed, secrets-failed,
 * data-dir-unusable, master-running, upgrade-failed
 */
export async function openApp (
  { config, reload, dataDir, environment, runs: store, order, source, isOrdered = true }: AppSource,
  host: HostServices
) {
  const { keeper, closers, log, terminal, streams } = host
  const isNext = keeper.role === 'next'
  // In an upgrade, problems have to show now: the other master still runs.
  if (isNext) checkDatabase(dataDir.historyFile)
  else lockDataDir()
  const settings = createSettings(config, { key: dataDir.releaseKey() })
  const checkpoints = createCheckpointStore({ file: dataDir.memory, keeper: keeper.memory,
    isAway: dataDir.away !== null })
  let restored = await restoreCheckpoint(checkpoints.read(), isNext ? null : keeper.predecessor)
  const ran = checkedRuns(restored.runs ?? store.read())
  const isServed = areServing(restored.left)
  // The keeper orders nothing. Where all processes have ended, as with a container, somebody else has started this one.
  const goesOn = !isOrdered || isNext || isServed ||
    (keeper.predecessor !== null && (restored.lost !== null || restored.isHandedOver))
  const beginning = beginningOf(ran, config, { isOrdered: !goesOn })
  if (beginning.changes.length > 0) await loadSchema()
  // A release that goes on is described already.
  const forgetCheckout = closers.add(beginning.release ? () => {} : readGitAhead(config.entry, { env: environment }),
    (forget) => forget())
  settings.restore(beginning.changes)

  const history = openHistory({ file: dataDir.historyFile, retention: config.history,
    owner: isNext ? 'another master has it' : null })
  const next: NextMaster | null = isNext ? createNextMaster({ keeper, supervisor: () => supervisor }) : null
  const mask = createSecretMask()
  const events = createEventStream({ hide: mask.hide, lastId: isNext ? 0 : lastEventId(), relay: next?.relay,
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed') })
  let recorder = isNext ? null : recordEvents()
  const vitals = closers.add(
    createVitals({ store: history.vitals, usageOf: (worker) => cluster?.usageOf(worker) ?? null,
      onFailure: tellVitalsFailure, ...tellSlowSpells(events), ...tellGrowingMemory({ events, options: () =>
        settings.current }) }),
    ({ stop }) => stop()
  )
  vitals.start()
  const appMetrics = createAppMetrics({ tell: (worker, message) => cluster?.tell(worker, message) })
  const metricHistory = closers.add(
    createMetricHistory({ appMetrics, release: () => cluster?.snapshot().release.id ?? null }),
    ({ stop }) => stop()
  )
  const logs = closers.add(
    createLogs({ folder: dataDir.logFolder, options: settings.current.logs, streams, onError: (reason) =>
      log.error({}, reason) }),
    ({ close }, how) => close(how)
  )
  const drift = createDrift()
  let cluster: Supervisor | null = null
  let jobs: Jobs | null = null
  const releases = await openReleases({
    config,
    before: beginning.release,
    last: beginning.last,
    // With the order come its own.
    variables: isOrdered && !isNext ? undefined : ran?.variables ?? undefined,
    // What fails where another master goes on with the app is to fail now.
    canWait: !isNext && !host.isMove && beginning.release !== null && isServed,
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
    order,
    source,
    onError: (error) => log.error({ err: error }, 'the releases could not be kept as they should'),
    now: Date.now
  })
  const placeOf = placesOf(releases, config.cwd)
  const hooks = createHooks({ configured: releases.hooks, release: releases.find, placeOf, events,
    fingerprint: (group) => history.crashes.find(group)?.fingerprint ?? null })
  const crashes = createCrashRecorder({ store: history.crashes, events, logs, vitals, hide: mask.hide })
  events.subscribe(({ type }) => {
    if (type === 'history.recovered') crashes.catchUp()
  })
  events.subscribe(terminal.show)
  events.subscribe(vitals.count)
  events.subscribe(({ type }) => {
    if (type === 'worker.exited') tidySoon()
  })
  keepOutcomes({ releases, events })

  const first = await releases.begin()
  forgetCheckout()
  const supervisor: Supervisor = cluster = createCluster({ settings, keeper, dataDir, vitals, appMetrics, logs, drift,
    releases, hooks, crashes, history, events, rolloutTurns: host.rolloutTurns }, { release: first.release, restored,
    next })
  closers.add(supervisor, ({ close }) => close())
  if (next) await takeOver(next)
  if (goesOn && ran && beginning.isGone)
    events.publish({ type: 'unexpected', actor: 'system',
      message:
        `${ran.release.id} ran, and cannot go on: ${ran.release.entry} is gone. The app starts as it is configured` })
  const kept = keepRuns({ store, goesOn: beginning.release !== null && !isOrdered, config, events, supervisor, settings,
    keeper, releases })
  closers.add(kept, ({ close }) => close())
  const since = restored.since ?? events.lastId + 1
  if (next) next.unrecorded(isOnRecord(history)).forEach(events.publish)

  jobs = createJobs({ jobs: config.jobs, configured: releases.jobs, current () {
    const { state, upgrade } = supervisor.snapshot()
    return { isStopping: state === 'stopping', isUpgrading: upgrade !== null,
      secretsProblem: releases.secretsProblem() }
  }, place: () => placeOf(releases.find(supervisor.snapshot().release.id) ?? first.release), events,
    store: history.jobRuns, dataFolder: dataDir.folder, logFolder: dataDir.logFolder,
    logLimits: () => settings.current.logs, onLogError: (reason) => log.error({}, reason), hide: mask.hideValues,
    keeper, nextRun: (cron, after, timeZone = timeZoneOf(environment)) => nextRun(cron, after, timeZone),
    run: runCommand, now: Date.now, timers: globalThis })
  const startedAt = new Date().toISOString()
  const deck = await createAppDeck({ config, dataDir, environment, settings, history, events, vitals, appMetrics,
    metricHistory, logs, releases, supervisor, jobs, startedAt, hide: mask.hide, stored: kept.stored,
    historyState: () => dataDir.away === null ? recorder?.state ?? WRITTEN : { ...WRITTEN, problem: dataDir.away } },
    host)
  if (releases.secretsProblem() === null) await tellCollectors()
  else tellCollectorsLater()
  return { config, dataDir, checkpoints, settings, restored, beginning, kept, since, startedAt, history, events,
    recorder, vitals, logs, releases, hooks, jobs, supervisor, deck, first, isNext }

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
    const { startTelemetry } = await import('../telemetry/telemetry.ts')
    closers.add(
      startTelemetry({ options: config.telemetry, environment: variables, app: deck.snapshot().app,
        master: deck.snapshot().master, events, logs, readApp: async () => (await appMetrics.read()).metrics,
        facts: () => ({ vitals: vitals.metrics(), status: deck.snapshot(), jobs: jobs?.metrics() ?? [] }) }),
      ({ close }) => close()
    )
  }

  /** @returns the newest id that may have been given out */
  function lastEventId (): number {
    const ids = [history.lastEventId(), restored.lastEvent, ...keeper.spare.events.map(({ id }) => id)]
    return Math.max(...ids) + (history.away ? UNKNOWN_EVENTS : 0)
  }

  async function takeOver (master: NextMaster) {
    if (first.isNew) releases.tellCreated(first.release)
    startInTurn(supervisor, host, beginning)
    const predecessor = await master.whenAlone()
    lockDataDir()
    // It has been written until a moment ago.
    restored = await restoreCheckpoint(checkpoints.read(), predecessor ?? keeper.predecessor)
    history.takeOver()
    releases.readKept()
    recorder = recordEvents()
    events.takeOver(lastEventId())
  }

  function tellVitalsFailure (error: unknown) {
    // The recorder gets the database repaired where it cannot write this event either; where it can, the failure is on
    // record.
    events.publish({ type: 'unexpected', actor: 'system',
      message: `the vitals could not be written: ${error instanceof Error ? error.message : error}` })
  }
}
