import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { openHistory } from '../../db/history.ts'
import { createSupervisor, type Supervisor } from '../../server/cluster/supervisor.ts'
import { configFromOptions, type Config } from '../../server/config/config.ts'
import { createSettings } from '../../server/config/settings.ts'
import { createCrashRecorder } from '../../server/crashes/recorder.ts'
import { createDeck } from '../../server/deck.ts'
import { createDiagnostics } from '../../server/diagnostics/diagnostics.ts'
import { createProfiling } from '../../server/diagnostics/profiling.ts'
import { openStore } from '../../server/diagnostics/store.ts'
import { DeckError } from '../../server/errors.ts'
import { createRecorder } from '../../server/events/recorder.ts'
import { createNotices } from '../../server/events/notices.ts'
import { createEventStream } from '../../server/events/stream.ts'
import { createState, type OperatorInput } from '../../server/lifecycle/state.ts'
import { createLogs } from '../../server/logs/logs.ts'
import { createJudge } from '../../server/releases/judge.ts'
import { keepOutcomes } from '../../server/releases/outcomes.ts'
import { openReleases } from '../../server/releases/registry.ts'
import { openDataDir } from '../../server/system/data-dir.ts'
import { createOtherDecks } from '../../server/system/other-decks.ts'
import { createVitals } from '../../server/vitals/vitals.ts'
import { createAlerts } from '../../server/alerts/alerts.ts'
import { createFakeJobs } from '../support/fake-jobs.ts'
import { servicesOf } from '../support/cluster.ts'
import { fake, type Parts } from '../support/fake.ts'
import { tempFolder } from '../support/folder.ts'
import { releaseServices } from '../support/release-services.ts'
import { report } from '../support/vitals.ts'
import type { Forker } from '../../server/cluster/forker.ts'
import type { ToMaster, ToWorker } from '../../workers/protocol.ts'
import type { ToldExit } from '../../server/lifecycle/loss.ts'

/** Above every pid that Linux gives away: nothing here is ever signalled. */
const FIRST_PID = 5_000_000
const WORKERS = 3
const REST_AFTER_MS = 200
const MAX_WORKERS_AT_REST = 6

const NOTE = Object.freeze({ kind: 'exception', errorName: 'TypeError', errorMessage: 'total is not a function',
  stack: 'TypeError: total is not a function\n    at sum (/srv/app/shop.js:12:34)', causes: [],
  requests: [{ method: 'POST', path: '/checkout', ageMs: 12 }], memory: null, nodeVersion: process.version })

type Hooks = Parameters<Forker>[1]
export type IdleDeck = Awaited<ReturnType<typeof startDeck>>

/**
 * All of a master but its processes: workers that boot, drain and end as soon as they are told, alerts that go nowhere,
 * no keeper and no signals. Whatever it is asked to do, nothing happens to this machine.
 */
export async function startDeck () {
  const folder = tempFolder()
  const entry = path.join(folder, 'app.js')
  mkdirSync(path.join(folder, 'releases', 'next'), { recursive: true })
  for (const file of [entry, path.join(folder, 'releases', 'next', 'app.js')]) writeFileSync(file, '')
  const config = await configFromOptions({ entry, workers: WORKERS, dataDir: 'data', releases: { root: 'releases' },
    logs: { mirror: 'off' },
    alerts: [{ kind: 'webhook', url: 'https://example.com/hook?token=hidden', events: ['scale.*'],
      secret: 'known to the receiver alone' }] }, { cwd: folder })

  const dataDir = openDataDir(config.dataDir)
  const history = openHistory({ file: dataDir.historyFile })
  const events = createEventStream()
  const recorder = createRecorder({ history, events })
  const settings = createSettings(config, { key: dataDir.releaseKey() })
  const vitals = createVitals({ store: history.vitals })
  vitals.start()
  events.subscribe(vitals.count)
  const logs = createLogs({ folder: dataDir.logFolder, options: config.logs, streams: process })
  const crashes = createCrashRecorder({ store: history.crashes, events, logs, vitals })
  let cluster: Supervisor | null = null
  const releases = await openReleases({ ...releaseServices(), config, dataDir, history, events,
    cluster: () => cluster })
  keepOutcomes({ releases, events })
  let isRefused = true
  const alerts = createAlerts({ configured: config.alerts, store: history.alerts, events,
    deck: () => ({ host: 'web-1', app: 'app', url: null, entry, pid: process.pid, version: '0.0.0' }),
    log: { warn () {} } }, {
    // The first one fails, so that there is a delivery to be sent again.
    async fetch () {
      const status = isRefused ? 404 : 204
      isRefused = false
      return new Response(null, { status })
    }
  })

  /** by worker */
  const hooks: Map<number, Hooks> = new Map()
  const state = createState({ options: lifecycleOptions(config), release: (await releases.begin()).release })
  const supervisor = cluster = createSupervisor(state,
    servicesOf({ fork, events, keeper: { held: new Map(), send: toKeeper }, vitals, crashes, judge: createJudge(),
      prepare: releases.forRollout }))
  const ofSources = { folderOf: () => null, places: { placeOf: () => null, lineOf: () => null } }
  const diagnostics = createDiagnostics({ supervisor, events,
    store: openStore(dataDir.diagnosticsFolder, config.diagnostics), ...ofSources })
  const profiling = createProfiling({ supervisor, folder: dataDir.profileFolder, isOn: () => false, ...ofSources })
  const master = { pid: process.pid, version: '0.0.0', nodeVersion: process.version,
    startedAt: new Date().toISOString(), isShared: false }
  const deck = createDeck({ settings, configure, supervisor: { ...supervisor, dispatch }, events, history, vitals,
    appMetrics: { read: async () => ({ metrics: [], leftOut: 0 }) },
    metricHistory: { isEmpty: () => true, newestAt: () => 0, list: () => ({ times: [], releases: [], metrics: [] }) },
    master, diagnostics, profiling, logs, releases, alerts, jobs: createFakeJobs({ history, events }),
    notices: createNotices({ history, events }),
    others: createOtherDecks({ isOwn: ({ dataDir }) => dataDir === config.dataDir, list: () => [] }),
    isKept: () => true, upgrade: dispatch,
    examine: async () => ({ checkedAt: new Date(0).toISOString(), isRunning: true, problems: 0, items: [] }) })
  supervisor.start({ workers: WORKERS })
  await supervisor.running
  for (const worker of hooks.keys()) hooks.get(worker)?.onMessage(report({ latenciesMs: [5] }))

  return {
    deck,

    /** `worker`: ends as by an exception that nobody catches */
    crash: (worker: number) => end(worker, { code: 1, signal: null, error: NOTE }),

    /**
     * From now on every command finds a cluster that is at rest, and small: nobody waits for what the last one has
     * begun.
     */
    keepAtRest () {
      events.subscribe(({ type, rollout }) => {
        if (type === 'rollout.started' && rollout !== null) setTimeout(endRollout, REST_AFTER_MS, rollout)
        if (type === 'scale.changed') setTimeout(shrink, REST_AFTER_MS)
      })
    },

    /** `type`: resolves with the next event of that type */
    next: (type: string) =>
      new Promise((resolve) => {
        const unsubscribe = events.subscribe((event) => {
          if (event.type !== type) return
          unsubscribe()
          resolve(event)
        })
      }),

    async close () {
      supervisor.dispatch({ type: 'stop', actor: 'system' })
      supervisor.killAll('it is over')
      await supervisor.finished
      await alerts.close()
      await diagnostics.close()
      profiling.close()
      await logs.close()
      await vitals.stop()
      await recorder.close()
      await history.close()
    }
  }

  /** One that is to stop goes on: others are still to be asked. */
  function dispatch (command: OperatorInput) {
    if (command.type !== 'stop') supervisor.dispatch(command)
  }

  function configure (changed: Config) {
    supervisor.configure(lifecycleOptions(changed), changed)
    logs.configure(changed.logs)
    alerts.configure(changed.alerts)
  }

  /** No other master ever starts. */
  function toKeeper ({ type }: { type: string }) {
    if (type === 'upgrade' || type === 'cancel')
      setTimeout(() => supervisor.nextGone({ reason: 'exit code 1', left: [], lastWorker: 0 }), REST_AFTER_MS)
  }

  function fork ({ worker, slot }: Parameters<Forker>[0], its: Hooks) {
    hooks.set(worker, its)
    logs.open({ worker, slot: Number(slot) }).close()
    setImmediate(say, 'onOnline', undefined)
    setImmediate(say, 'onMessage', { type: 'ready' })
    return { identity: { pid: FIRST_PID + worker }, tell (message: ToWorker) {
      if (message.type === 'drain') setImmediate(say, 'onMessage', { type: 'drained', heapBytes: 0 })
      if (message.type === 'diagnose') setImmediate(diagnose, message)
    }, pass: () => true, terminate: () => setImmediate(end, worker, { code: 0, signal: null, error: null }),
      kill: () => setImmediate(end, worker, { code: null, signal: 'SIGKILL', error: null }) }

    function say (what: 'onOnline' | 'onMessage', message?: ToMaster) {
      hooks.get(worker)?.[what](message as ToMaster)
    }

    function diagnose ({ id, file }: { id: number, file: string }) {
      writeFileSync(file, '{}')
      say('onMessage', { type: 'diagnosed', id, error: null })
    }
  }

  function end (worker: number, exit: Parts<ToldExit>) {
    const its = hooks.get(worker)
    hooks.delete(worker)
    its?.onExit(fake(exit))
  }

  /** `rollout`: that may wait for a person, or for hours */
  function endRollout (rollout: number) {
    if (supervisor.snapshot().rollout?.id === rollout) attempt({ type: 'abort', rollout, actor: 'system' })
  }

  function shrink () {
    if (supervisor.snapshot().desiredWorkers > MAX_WORKERS_AT_REST)
      attempt({ type: 'scale', workers: WORKERS, actor: 'system' })
  }

  /** `command`: that something else may have made impossible by now */
  function attempt (command: OperatorInput) {
    try {
      supervisor.dispatch(command)
    } catch (error) {
      if (!(error instanceof DeckError) || error.status !== 409) throw error
    }
  }
}

function lifecycleOptions ({ ready, drain, stop, crash, restart, rollout, recycle, releases }: Config) {
  return { ready, drain, stop, crash, restart, rollout, recycle, releases }
}
