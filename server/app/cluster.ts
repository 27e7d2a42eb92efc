import { createInherited } from '../cluster/inherited-sockets.ts'
import { createForker } from '../cluster/forker.ts'
import { createSupervisor } from '../cluster/supervisor.ts'
import { cpuCount } from '../config/cpu-count.ts'
import { sessionBy } from '../config/session-by.ts'
import { attempt, DeckError } from '../errors.ts'
import { createState, type LifecycleOptions, type Release } from '../lifecycle/state.ts'
import { whyUnheard } from '../programs/running-program.ts'
import { createJudge } from '../releases/judge.ts'
import { loadPosix, type Posix } from '../system/posix.ts'
import type { History } from '../../db/history.ts'
import type { Restored } from '../handover/checkpoint.ts'
import type { Settings } from '../config/settings.ts'
import type { AppLink } from '../keeper/app-links.ts'
import type { DataDir } from '../system/data-dir.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { AppMetrics } from '../telemetry/app-metrics.ts'
import type { Logs } from '../logs/logs.ts'
import type { Drift } from '../releases/drift.ts'
import type { Releases } from '../releases/registry.ts'
import type { Hooks } from '../cluster/hooks.ts'
import type { CrashRecorder } from '../crashes/recorder.ts'
import type { EventStream } from '../events/stream.ts'
import type { Turns } from '../cluster/rollout-turn.ts'
import type { NextMaster } from '../handover/next-master.ts'
import type { Config } from '../config/config.ts'
import type { BootCost } from '../lifecycle/boot-room.ts'

/** The workers of an app, none of which has been started yet. */
export function createCluster (
  { settings, keeper, dataDir, vitals, appMetrics, logs, drift, releases, hooks, crashes, history, events,
    rolloutTurns }: { settings: Settings, keeper: AppLink, dataDir: DataDir, vitals: Vitals, appMetrics: AppMetrics,
      logs: Logs, drift: Drift, releases: Releases, hooks: Hooks, crashes: CrashRecorder, history: History,
      events: EventStream, rolloutTurns: Turns | null },
  { release, restored, next }: {
    /** to begin with */
    release: Release,
    restored: Restored,
    /** in an upgrade: another master has the history */
    next: NextMaster | null
  }
) {
  const { dispatch, portPerSlot, rebalance, sticky, watchdog, recycle } = settings.current
  // Workers that pass each other connections, as sessions stay with them by name, need the same of the machine.
  const calls = dispatch === 'sticky' ? stickyCalls(keeper) : null
  const by = sessionBy(settings.current)
  const state = createState({ options: lifecycleOptions(settings.current), cpus: cpuCount(), release,
    lastRollout: Math.max(history.lastRolloutId(), restored.lastRollout), addresses: restored.addresses,
    ...next
      ? { nextWorker: restored.firstOfNext, bootCost: restored.bootCost }
      : { nextWorker: restored.nextWorker, ...pastOf(history) } })
  const fork = createForker(settings, { ...dataDir,
    sessions: by && { folder: dataDir.sessionFolder, by, idleMs: sticky.idleMs },
    outlives: () => next?.hasTakenOver ?? true, keeperPid: () => keeper.isKept ? process.ppid : null, logs,
    environment: releases.environment, hasSecrets: (id) => Object.keys(releases.secrets(id)).length > 0,
    inherited: releases.inherited,
    onProblem: (message) => events.publish({ type: 'unexpected', actor: 'system', message }) })
  return createSupervisor(state, {
    fork,
    events,
    keeper,
    // The file of the configuration may have changed since the release was deployed.
    steering: steeringOf({ ...settings.current, runtime: release.runtime ?? settings.current.runtime },
      next ? restored.left : null),
    sticky: by || !calls ? null : { calls, failoverMs: sticky.failoverMs },
    balance: { dispatch, rebalance },
    rolloutTurns,
    portPerSlot,
    vitals,
    appMetrics,
    limits: { watchdog, recycle },
    crashes,
    judge: createJudge(),
    prepare: releases.forRollout,
    hooks,
    drift: { ...drift, look: releases.changedInPlace }
  })
}

/** @returns its sections of it */
export function lifecycleOptions (
  { start, ready, drain, stop, crash, restart, rollout, recycle, releases, standby }: Config
): LifecycleOptions {
  return { start, ready, drain, stop, crash, restart, rollout, recycle, releases, standby }
}

/** How the keeper looks after its master. */
export function hangOptions ({ keeper, watchdog }: Pick<Config, 'keeper' | 'watchdog'>) {
  return { afterMs: keeper.hungAfterMs, stack: watchdog.stack }
}

/**
 * What is known of the workers that this data folder had: whether they have listened, so that the next start is waited
 * for; whether one was ever ready, and what it needed for that. No start depends on the history.
 */
function pastOf (history: History): { hasListened: boolean, hasBeenReady: boolean, bootCost: BootCost | null } {
  return attempt(() => {
    const [lastReady] = newest('worker.ready')
    return { hasListened: newest('worker.listening').length > 0,
      hasBeenReady: lastReady !== undefined || history.releases.all().some(({ outcome }) => outcome === 'succeeded'),
      bootCost: (lastReady?.detail?.boot ?? null) as BootCost | null }
  }, { hasListened: false, hasBeenReady: true, bootCost: null })

  function newest (type: string) {
    return history.page({ type: [type], limit: 1 }).items
  }
}

/**
 * @param others workers of the master that has the cluster now
 * @returns null: the kernel is not told which workers get connections
 * @throws {DeckError} invalid-config
 */
function steeringOf ({ runtime, workers, rollout }: Config, others: Restored['left'] | null): { calls: Posix,
  others: Restored['left'] | null } | null
{
  if (runtime !== 'other') return null
  const reason = whyUnheard()
  if (reason !== null && (workers > 1 || rollout.order !== 'stop-first')) {
    throw new DeckError('invalid-config',
      `workers: expected 1 with rollout.order "stop-first" on this machine, received ${workers} with "${rollout.order}": workers of a program that is no Node program cannot share its sockets here (${reason})`)
  }
  const calls = loadPosix()
  return calls && { calls, others }
}

/** @throws {DeckError} invalid-config */
function stickyCalls (keeper: AppLink): Posix {
  const calls = loadPosix()
  if (!calls)
    throw new DeckError('invalid-config',
      'dispatch: expected "shared" on this machine, received "sticky" (it takes Linux and the optional package koffi)')
  const [inherited] = createInherited(keeper).unused(new Set())
  // Each slot needs a socket of its own at the address.
  if (inherited !== undefined)
    throw new DeckError('invalid-config',
      `dispatch: expected "shared" for a socket of the service manager, ${inherited}, received "sticky"`)
  return calls
}
