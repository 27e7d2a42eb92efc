import os from 'node:os'
import { createCronRestarts } from '../cluster/cron-restarts.js'
import { configFileOf } from '../config/config.js'
import { nextRun, timeZoneOf } from '../config/cron.js'
import { checkedUpgrade, createDeck, deckName } from '../deck.js'
import { DeckError } from '../errors.js'
import { createDiagnostics } from '../diagnostics/diagnostics.js'
import { createSourceMaps } from '../crashes/source-maps.js'
import { createHeldMemory } from '../diagnostics/held-memory.js'
import { createProfiling } from '../diagnostics/profiling.js'
import { openStore } from '../diagnostics/store.js'
import { createNotices } from '../events/notices.js'
import { createAlerts } from '../alerts/alerts.js'
import { createChecks } from './checks.js'
import { hangOptions, lifecycleOptions } from './cluster.js'

/**
 * The deck of an app, with all that hears its events or sends it commands: notices, alerts, diagnostics, the schedule of
 * restarts, and the watcher of a developer.
 * @param {object} parts
 * @param {import('../config/config.js').Config} parts.config
 * @param {import('../system/data-dir.js').DataDir} parts.dataDir
 * @param {Record<string, string | undefined>} parts.environment  of the shell that the app is from
 * @param {import('../config/settings.js').Settings} parts.settings
 * @param {import('../../db/history.js').History} parts.history
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {import('../vitals/vitals.js').Vitals} parts.vitals
 * @param {import('../telemetry/app-metrics.js').AppMetrics} parts.appMetrics
 * @param {import('../logs/logs.js').Logs} parts.logs
 * @param {import('../releases/registry.js').Releases} parts.releases
 * @param {import('../cluster/supervisor.js').Supervisor} parts.supervisor
 * @param {import('../jobs/jobs.js').Jobs} parts.jobs
 * @param {string} parts.startedAt
 * @param {<T>(content: T) => T} parts.hide  what nobody is to read
 * @param {() => import('../events/recorder.js').HistoryState} parts.historyState
 * @param {import('./app.js').HostServices} host
 */
export async function createAppDeck ({
  config, dataDir, environment, settings, history, events, vitals, appMetrics, logs, releases, supervisor, jobs, startedAt, hide, historyState
}, { keeper, upgrade, move, closers, log, terminal, software, others, fleet, joinsFleet, publicUrl = ownPublicUrl(config) }) {
  const timeZone = timeZoneOf(environment)
  const notices = createNotices({ history, events })
  const alerts = closers.add(createAlerts({
    configured: settings.current.alerts,
    store: history.alerts,
    events,
    deck: () => ({
      host: os.hostname(),
      app: deckName(config, supervisor.snapshot().release),
      url: publicUrl(),
      entry: config.entry,
      pid: process.pid,
      version: software.version,
      environment: environment.SENTRY_ENVIRONMENT || settings.current.env.NODE_ENV || environment.NODE_ENV || null,
      evidenceOf: ({ detail }) => hide(deck.crashes.evidence(detail))
    }),
    log
  }), (alerts) => alerts.close())
  const places = createSourceMaps()
  const store = openStore(dataDir.diagnosticsFolder, config.diagnostics)
  const diagnostics = closers.add(createDiagnostics({ supervisor, events, store, folderOf, places }), ({ close }) => close())
  const profiling = closers.add(createProfiling({ supervisor, folder: dataDir.profileFolder, isOn: () => settings.current.diagnostics.profiling === 'on', folderOf, places }), ({ close }) => close())
  events.subscribe(({ type }) => { if (type === 'route.slowed') profiling.hurry() })
  closers.add(createHeldMemory({ supervisor, events, history, folder: dataDir.heapFolder, isOn: () => settings.current.diagnostics.leaks === 'on' && settings.current.rollout.order !== 'stop-first' }), ({ close }) => close())
  const deck = createDeck({
    settings,
    configure: configureParts,
    supervisor,
    events,
    history,
    vitals,
    appMetrics,
    master: { pid: process.pid, ...software, startedAt, isShared: upgrade !== undefined },
    diagnostics,
    profiling,
    logs,
    releases,
    alerts,
    jobs,
    notices,
    others,
    fleet,
    joinsFleet,
    isKept: () => keeper.isKept,
    nextRestartAt: () => cron.nextAt(),
    historyState,
    secretsProblem: releases.secretsProblem,
    upgrade: upgrade?.begin,
    move,
    examine: () => examine()
  })
  const examine = createChecks({ config, settings, environment, deck, history, vitals, releases, keeper })
  if (upgrade) closers.add(upgrade.join(upgradable({ settings, supervisor, keeper })), (leave) => leave())
  const cron = closers.add(createCronRestarts({
    expression: () => settings.current.restart.cron ?? '',
    nextRun: (expression, after) => nextRun(expression, after, timeZone),
    restart: () => deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'cron' }),
    events
  }), ({ close }) => close())
  // Only a developer's master needs what watches files.
  if (config.watch) {
    const { watchFor } = await import('../releases/watch.js')
    const current = () => ({ config: releases.configured(), configFile: configFileOf(releases.configured()) })
    const watcher = closers.add(watchFor({ deck, logs, events, tell: terminal.quote, current }), ({ close }) => close())
    if (config.runtime === 'other') watcher.addFolder(config.cwd)
    supervisor.onLoaded(watcher.add)
  }
  return deck

  /** @param {string} release @returns {string | null} */
  function folderOf (release) {
    try {
      return releases.get(release).path
    } catch {
      // It is no longer kept.
      return null
    }
  }

  /** Hands changed options to those who do not look them up each time. @param {import('../config/config.js').Config} changed */
  function configureParts (changed) {
    supervisor.configure(lifecycleOptions(changed), changed)
    logs.configure(changed.logs)
    alerts.configure(changed.alerts)
    cron.plan()
    keeper.send({ type: 'watch', hang: hangOptions(changed) })
  }
}

/** @param {import('../config/config.js').Config} config @returns {() => string | null} */
function ownPublicUrl ({ admin: { publicUrl } }) {
  return () => publicUrl?.replace(/\/+$/, '') ?? null
}

/**
 * What an upgrade of the host has to know of this app.
 * @param {{ settings: import('../config/settings.js').Settings, supervisor: import('../cluster/supervisor.js').Supervisor, keeper: { isKept: boolean } }} parts
 * @returns {import('../handover/joint-upgrade.js').Upgradable}
 */
function upgradable ({ settings, supervisor, keeper }) {
  return {
    check (order) {
      const checked = checkedUpgrade(order, { config: settings.current, isKept: keeper.isKept })
      const refusal = supervisor.refusal(checked)
      if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
      return checked
    },

    look () {
      const { state, desiredWorkers, readyWorkers, workers } = supervisor.snapshot()
      const finished = workers.filter((worker) => worker.state === 'finished').length
      return { isServing: state === 'running' && readyWorkers + finished === desiredWorkers, readyTimeoutMs: settings.current.ready.timeoutMs }
    },

    begin: supervisor.dispatch
  }
}
