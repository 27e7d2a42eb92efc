import os from 'node:os'
import { createCronRestarts } from '../cluster/cron-restarts.ts'
import { configFileOf, type Config } from '../config/config.ts'
import { nextRun, timeZoneOf } from '../config/cron.ts'
import { checkedUpgrade, createDeck, deckName } from '../deck.ts'
import { attempt, DeckError } from '../errors.ts'
import { createDiagnostics } from '../diagnostics/diagnostics.ts'
import { createSourceMaps } from '../crashes/source-maps.ts'
import { createHeldMemory } from '../diagnostics/held-memory.ts'
import { createProfiling } from '../diagnostics/profiling.ts'
import { openStore } from '../diagnostics/store.ts'
import { createNotices } from '../events/notices.ts'
import { isToldByHost } from '../events/told-by-host.ts'
import { createAlerts } from '../alerts/alerts.ts'
import { startHeartbeat } from '../alerts/heartbeat.ts'
import { createChecks } from './checks.ts'
import { hangOptions, lifecycleOptions } from './cluster.ts'
import type { DataDir } from '../system/data-dir.ts'
import type { Settings } from '../config/settings.ts'
import type { History } from '../../db/history.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { MetricHistory } from '../telemetry/metric-history.ts'
import type { AppMetrics } from '../telemetry/app-metrics.ts'
import type { Logs } from '../logs/logs.ts'
import type { Releases } from '../releases/registry.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { HistoryState } from '../events/recorder.ts'
import type { HostServices } from './app.ts'
import type { Upgradable } from '../handover/joint-upgrade.ts'

/** The frames of a stack, and what Node writes below it. */
const NO_LAST_WORDS = /^(?:\s+at |Node\.js v)/

/**
 * The deck of an app, with all that hears its events or sends it commands: notices, alerts, diagnostics, the schedule
 * of restarts, and the watcher of a developer.
 */
export async function createAppDeck (
  { config, dataDir, environment, settings, history, events, vitals, appMetrics, metricHistory, logs, releases,
    supervisor, jobs, startedAt, hide, stored, historyState }: {
      config: Config,
      dataDir: DataDir,
      /** of the shell that the app is from */
      environment: Record<string, string | undefined>,
      settings: Settings,
      history: History,
      events: EventStream,
      vitals: Vitals,
      appMetrics: AppMetrics,
      metricHistory: MetricHistory,
      logs: Logs,
      releases: Releases,
      supervisor: Supervisor,
      jobs: Jobs,
      startedAt: string,
      /** what nobody is to read */
      hide: <T>(content: T) => T,
      /** resolves once the next start goes on with what runs now; throws not-stored */
      stored: () => Promise<void>,
      historyState: () => HistoryState
    },
  { keeper, upgrade, isShared, move, closers, log, terminal, software, others, fleet, joinsFleet, publicUrl, tellHost }:
    HostServices
) {
  const timeZone = timeZoneOf(environment)
  const isOwn = (event: DeckEvent) => !tellHost || !isToldByHost(event)
  const notices = createNotices({ history, events, isOwn })
  const alerts = closers.add(
    createAlerts({ configured: settings.current.alerts, store: history.alerts, events, isOwn, deck: sender, log }),
    (alerts) => alerts.close()
  )
  const heartbeat = closers.add(
    startHeartbeat({ options: () => settings.current.heartbeat, status: supervisor.snapshot, events }),
    ({ close }) => close()
  )
  if (tellHost) events.subscribe((event) => tellHost(event, sender))
  const places = createSourceMaps()
  const store = openStore(dataDir.diagnosticsFolder, config.diagnostics)
  const diagnostics = closers.add(createDiagnostics({ supervisor, events, store, folderOf, places }),
    ({ close }) => close())
  const profiling = closers.add(
    createProfiling({ supervisor, folder: dataDir.profileFolder, isOn: () =>
      settings.current.diagnostics.profiling === 'on', folderOf, places }),
    ({ close }) => close()
  )
  events.subscribe(({ type }) => {
    if (type === 'route.slowed') profiling.hurry()
  })
  closers.add(
    createHeldMemory({ supervisor, events, history, folder: dataDir.heapFolder, isOn: () =>
      settings.current.diagnostics.leaks === 'on' && settings.current.rollout.order !== 'stop-first' }),
    ({ close }) => close()
  )
  const deck = createDeck({ settings, configure: configureParts, supervisor, events, history, vitals, appMetrics,
    metricHistory, master: { pid: process.pid, ...software, startedAt, isShared }, diagnostics, profiling, logs,
    releases, alerts, jobs, notices, others, fleet, joinsFleet, isKept: () => keeper.isKept,
    nextRestartAt: () => cron.nextAt(), stored, historyState, secretsProblem: releases.secretsProblem,
    upgrade: upgrade.begin, move, examine: () => examine() })
  const examine = createChecks({ config, settings, environment, deck, history, vitals, releases, keeper })
  closers.add(upgrade.join(upgradable({ settings, supervisor, keeper })), (leave) => leave())
  const cron = closers.add(
    createCronRestarts({ expression: () => settings.current.restart.cron ?? '', nextRun: (expression, after) =>
      nextRun(expression, after, timeZone), restart: () =>
        deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cron' }), events }),
    ({ close }) => close()
  )
  // Only a developer's master needs what watches files.
  if (config.watch) {
    const { watchFor } = await import('../releases/watch.ts')
    const current = () => ({ config: releases.configured(), configFile: configFileOf(releases.configured()) })
    const watcher = closers.add(watchFor({ deck, logs, events, tell: terminal.quote, current }), ({ close }) => close())
    if (config.runtime === 'other') watcher.addFolder(config.cwd)
    supervisor.onLoaded(watcher.add)
  }
  return deck

  /** Who tells of an event by an alert. */
  function sender () {
    return { host: os.hostname(), app: deckName(config, supervisor.snapshot().release), url: publicUrl(),
      entry: config.entry, pid: process.pid, version: software.version,
      environment: environment.SENTRY_ENVIRONMENT || settings.current.env.NODE_ENV || environment.NODE_ENV || null,
      evidenceOf: ({ detail }: DeckEvent) => hide(deck.crashes.evidence(detail)), storyOf }
  }

  /** Of a crash loop: whether anybody still serves, what the last one has died of, and what it has said last. */
  function storyOf ({ type, slot }: DeckEvent): string[] {
    if (type !== 'worker.crash-looping') return []
    const { text, reasons } = deck.health(deck.snapshot())
    const reason = reasons.find(({ slots }) => slots.includes(Number(slot)))
    if (!reason?.event) return [`${text}.`]
    const lastLine = lastLineOf(reason.event)
    return [`${text}.`, `Last error: ${reason.text}`,
      ...(lastLine && !reason.text.includes(lastLine) ? [`Last line: ${lastLine}`] : [])]
  }

  /** `exit`: an event of a worker's end */
  function lastLineOf (exit: number) {
    // Whoever is told of the loop is told without it.
    return attempt(() => {
      const { crash } = hide(deck.crashes.evidence(history.event(exit)?.detail ?? null)) ?? {}
      return crash?.stderr.findLast((line) => /\S/.test(line) && !NO_LAST_WORDS.test(line))
    })
  }

  function folderOf (release: string): string | null {
    // It may no longer be kept.
    return attempt(() => releases.get(release).path)
  }

  /** Hands changed options to those who do not look them up each time. */
  function configureParts (changed: Config) {
    supervisor.configure(lifecycleOptions(changed), changed)
    logs.configure(changed.logs)
    alerts.configure(changed.alerts)
    heartbeat.configure()
    cron.plan()
    keeper.send({ type: 'watch', hang: hangOptions(changed) })
  }
}

/** What an upgrade of the host has to know of this app. */
function upgradable (
  { settings, supervisor, keeper }: { settings: Settings, supervisor: Supervisor, keeper: { isKept: boolean } }
): Upgradable {
  return { check (order) {
    const checked = checkedUpgrade(order, keeper.isKept)
    const refusal = supervisor.refusal(checked)
    if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
    return checked
  }, look () {
    const { state, desiredWorkers, readyWorkers, workers } = supervisor.snapshot()
    const finished = workers.filter((worker) => worker.state === 'finished').length
    return { isServing: state === 'running' && readyWorkers + finished === desiredWorkers,
      readyTimeoutMs: settings.current.ready.timeoutMs }
  }, begin: supervisor.dispatch }
}
