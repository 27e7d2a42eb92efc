import { createForker } from '../cluster/forker.js'
import { measurePrograms } from '../cluster/program-vitals.js'
import { createSupervisor } from '../cluster/supervisor.js'
import { cpuCount } from '../config/cpu-count.js'
import { sessionBy } from '../config/session-by.js'
import { DeckError } from '../errors.js'
import { createState } from '../lifecycle/state.js'
import { whyUnheard } from '../programs/running-program.js'
import { createJudge } from '../releases/judge.js'
import { loadPosix } from '../system/posix.js'

/** @typedef {import('../../db/history.js').History} History */
/** @typedef {import('../handover/checkpoint.js').Restored} Restored */

/**
 * The workers of an app, none of which has been started yet.
 * @param {object} parts
 * @param {import('../config/settings.js').Settings} parts.settings
 * @param {Record<string, string | undefined>} parts.environment  what the workers inherit
 * @param {import('../keeper/app-links.js').AppLink} parts.keeper
 * @param {import('../system/data-dir.js').DataDir} parts.dataDir
 * @param {import('../vitals/vitals.js').Vitals} parts.vitals
 * @param {import('../telemetry/app-metrics.js').AppMetrics} parts.appMetrics
 * @param {import('../logs/logs.js').Logs} parts.logs
 * @param {import('../releases/drift.js').Drift} parts.drift
 * @param {import('../releases/registry.js').Releases} parts.releases
 * @param {import('../cluster/hooks.js').Hooks} parts.hooks
 * @param {import('../crashes/recorder.js').CrashRecorder} parts.crashes
 * @param {History} parts.history
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {import('../cluster/rollout-turn.js').Turns | null} parts.rolloutTurns
 * @param {object} past
 * @param {import('../lifecycle/state.js').Release} past.release  to begin with
 * @param {Restored} past.restored
 * @param {import('../handover/next-master.js').NextMaster | null} past.next  in an upgrade: another master has the history
 */
export function createCluster ({ settings, environment, keeper, dataDir, vitals, appMetrics, logs, drift, releases, hooks, crashes, history, events, rolloutTurns }, { release, restored, next }) {
  const { dispatch, portPerSlot, rebalance, sticky, watchdog, recycle } = settings.current
  // Workers that pass each other connections, as sessions stay with them by name, need the same of the machine.
  const calls = dispatch === 'sticky' ? stickyCalls() : null
  const by = sessionBy(settings.current)
  const state = createState({
    options: lifecycleOptions(settings.current),
    cpus: cpuCount(),
    release,
    lastRollout: Math.max(history.lastRolloutId(), restored.lastRollout),
    addresses: restored.addresses,
    ...next ? { nextWorker: restored.firstOfNext, bootCost: restored.bootCost } : { nextWorker: restored.nextWorker, ...pastOf(history) }
  })
  const fork = createForker(settings, {
    ...dataDir,
    sessions: by && { folder: dataDir.sessionFolder, by, idleMs: sticky.idleMs },
    outlives: () => next?.hasTakenOver ?? true,
    keeperPid: () => keeper.isKept ? process.ppid : null,
    logs,
    environment: releases.environment,
    hasSecrets: (id) => Object.keys(releases.secrets(id)).length > 0,
    inherited: environment,
    onProblem: (message) => events.publish({ type: 'unexpected', actor: 'system', message })
  })
  return createSupervisor(state, {
    fork,
    events,
    keeper,
    steering: steeringOf(settings.current, next ? restored.left : null),
    sticky: by || !calls ? null : { calls, failoverMs: sticky.failoverMs },
    balance: { dispatch, rebalance },
    rolloutTurns,
    portPerSlot,
    vitals,
    appMetrics,
    measure: measurePrograms,
    watch: { watchdog, recycle },
    crashes,
    judge: createJudge(),
    prepare: releases.forRollout,
    hooks,
    drift: { ...drift, look: releases.changedInPlace }
  })
}

/** @param {import('../config/config.js').Config} config @returns {import('../lifecycle/state.js').LifecycleOptions} its sections of it */
export function lifecycleOptions ({ start, ready, drain, stop, crash, restart, rollout, recycle, releases, standby }) {
  return { start, ready, drain, stop, crash, restart, rollout, recycle, releases, standby }
}

/** How the keeper looks after its master. @param {Pick<import('../config/config.js').Config, 'keeper' | 'watchdog'>} config */
export function hangOptions ({ keeper, watchdog }) {
  return { afterMs: keeper.hungAfterMs, stack: watchdog.stack }
}

/**
 * What is known of the workers that this data folder had: whether they have listened, so that the next start is waited
 * for; whether one was ever ready, and what it needed for that. No start depends on the history.
 * @param {History} history
 * @returns {{ hasListened: boolean, hasBeenReady: boolean, bootCost: import('../lifecycle/boot-room.js').BootCost | null }}
 */
function pastOf (history) {
  try {
    const [lastReady] = newest('worker.ready')
    return {
      hasListened: newest('worker.listening').length > 0,
      hasBeenReady: lastReady !== undefined || history.releases.all().some(({ outcome }) => outcome === 'succeeded'),
      bootCost: lastReady?.detail?.boot ?? null
    }
  } catch {
    return { hasListened: false, hasBeenReady: true, bootCost: null }
  }

  /** @param {string} type */
  function newest (type) {
    return history.page({ type: [type], limit: 1 }).items
  }
}

/**
 * @param {import('../config/config.js').Config} config @param {Restored['left'] | null} others  workers of the master that has the cluster now
 * @returns {{ calls: import('../system/posix.js').Posix, others: Restored['left'] | null } | null} null: the kernel is not told which workers get connections
 * @throws {DeckError} invalid-config
 */
function steeringOf ({ runtime, workers, rollout }, others) {
  if (runtime !== 'other') return null
  const reason = whyUnheard()
  if (reason !== null && (workers > 1 || rollout.order !== 'stop-first')) {
    throw new DeckError('invalid-config', `workers: expected 1 with rollout.order "stop-first" on this machine, received ${workers} with "${rollout.order}": workers of a program that is no Node program cannot share its sockets here (${reason})`)
  }
  const calls = loadPosix()
  return calls && { calls, others }
}

/** @returns {import('../system/posix.js').Posix} @throws {DeckError} invalid-config */
function stickyCalls () {
  const calls = loadPosix()
  if (!calls) throw new DeckError('invalid-config', 'dispatch: expected "shared" or "round-robin" on this machine, received "sticky" (it takes Linux and the optional package koffi)')
  return calls
}
