import path from 'node:path'
import { stickyBy } from './config/session-by.ts'
import { createCrashService } from './crashes/crashes.ts'
import { DeckError, errorText } from './errors.ts'
import { WRITTEN, type HistoryState } from './events/recorder.ts'
import { createHealth } from './words/health.ts'
import { programName } from './launch/program-name.ts'
import { createPreview, isBusy } from './rollouts/preview.ts'
import { whyUnheard } from './programs/running-program.ts'
import { controlGroups, type Limits } from './system/control-groups.ts'
import { checkedProgram } from './system/program.ts'
import type { RolloutView } from './lifecycle/rollout/record.ts'
import type { Steering } from './config/steering.ts'
import type { Client, OperatorInput } from './lifecycle/state.ts'
import type { StrategyWish } from './lifecycle/rollout/strategy.ts'
import type { Supervisor } from './cluster/supervisor.ts'
import type { Setting } from './api/shapes.ts'
import type { Change, NewChange, Settings } from './config/settings.ts'
import type { Config } from './config/config.ts'
import type { EventStream } from './events/stream.ts'
import type { History } from '../db/history.ts'
import type { Vitals } from './vitals/vitals.ts'
import type { Metric } from './telemetry/metric.ts'
import type { MetricHistory } from './telemetry/metric-history.ts'
import type { Diagnostics } from './diagnostics/diagnostics.ts'
import type { Profiling } from './diagnostics/profiling.ts'
import type { Logs } from './logs/logs.ts'
import type { Releases } from './releases/registry.ts'
import type { Alerts } from './alerts/alerts.ts'
import type { Jobs } from './jobs/jobs.ts'
import type { Notices } from './events/notices.ts'
import type { OtherDecks } from './system/other-decks.ts'
import type { AppFleet } from './fleet/app-fleet.ts'
import type { Report } from './doctor/doctor.ts'
import type { Run } from '../db/job-runs.ts'
import type { StepTools } from './jobs/run-steps.ts'

/** All that the admin side knows. */
export type Deck = ReturnType<typeof createDeck>
export type Status = ReturnType<Deck['snapshot']>
export type WorkerRow = Status['workers'][number]
/** `path`, `secret`: where a host waits; `name`: what it calls the app */
export type Move = (to: { path: string, secret: string, actor: string }) => Promise<{ name: string }>
/** What an operator wants; `release` of a rollback: the one before, unless it is said. */
type DeckCommand =
  & { actor: string }
  & ({ type: 'rollout', kind: 'restart' | 'deploy' | 'rollback', release?: string, note?: string,
    strategy?: StrategyWish, source?: Record<string, unknown>, client?: Client } | {
    [S in Steering]: { type: S, rollout: number }
  }[Steering] | { type: 'restart-worker', worker: number, client?: Client } | { type: 'kill-worker', worker: number }
    | { type: 'end-connections', worker: number } | { type: 'scale', workers: number } | { type: 'upgrade',
    execPath: string | null, note: string | null } | { type: 'stop' })

const MAX_RELEASES = 100
const TRY_AGAIN_MS = 100

/** The one facade between the admin side and the cluster. */
export function createDeck (
  { settings, configure, supervisor, events, history, vitals, appMetrics, metricHistory, master, diagnostics, profiling,
    logs, releases, alerts, jobs, notices, others, fleet = () => null, joinsFleet = false, isKept, nextRestartAt = () =>
      null, stored = async () => {}, historyState = () => WRITTEN, secretsProblem = () => null, upgrade,
    move = refuseMove, examine }: {
      settings: Settings,
      /** makes what has changed count everywhere, or throws before anything has */
      configure: (config: Config) => void,
      supervisor: Supervisor,
      events: EventStream,
      history: History,
      vitals: Pick<Vitals,
        'series' | 'lastMinute' | 'metrics' | 'routes' | 'requestsByMinute' | 'minutesOfRoute' | 'slowestRequests'>,
      /** of what the app counts itself */
      metricHistory: Pick<MetricHistory, 'isEmpty' | 'newestAt' | 'list'>,
      /** what the app counts itself */
      appMetrics: { read: () => Promise<{ metrics: Metric[], leftOut: number }> },
      /** `isShared`: it has other apps as well */
      master: { pid: number, version: string, nodeVersion: string, startedAt: string, isShared: boolean },
      diagnostics: Diagnostics,
      profiling: Pick<Profiling, 'isOn' | 'list' | 'read'>,
      logs: Logs,
      releases: Pick<Releases,
        'check' | 'checkReturn' | 'before' | 'planGit' | 'refs' | 'get' | 'list' | 'compare' | 'preview'
          | 'configurations'>,
      alerts: Pick<Alerts, 'list' | 'add' | 'change' | 'delete' | 'test' | 'digest' | 'retry' | 'preview' | 'hear'>,
      jobs: Pick<Jobs,
        'isEmpty' | 'failing' | 'metrics' | 'acknowledge' | 'list' | 'get' | 'runs' | 'run' | 'outputOf' | 'runNow'
          | 'runCommand' | 'building' | 'runSteps' | 'runToEnd' | 'place' | 'tellEnd' | 'end' | 'pause' | 'resume'>,
      notices: Notices,
      others: OtherDecks,
      /** the app on other machines, once its host has joined them */
      fleet?: () => AppFleet | null,
      joinsFleet?: boolean,
      /** by restart.cron */
      nextRestartAt?: () => string | null,
      /** by a keeper, which alone can change masters */
      isKept: () => boolean,
      /** resolves once the next start goes on with what runs now; throws not-stored */
      stored?: () => Promise<void>,
      historyState?: () => HistoryState,
      /** why no worker can be started */
      secretsProblem?: () => string | null,
      /** all apps of its host change masters, or none does */
      upgrade: (order: Extract<OperatorInput, { type: 'upgrade' }>) => void,
      /** into a host */
      move?: Move,
      /** the app and the machine */
      examine: () => Promise<Report>
    }
) {
  const config = settings.current
  const isOther = config.runtime === 'other'
  const program = isOther ? programName(config) : null
  const ownSockets = isOther ? whyUnheard() : null
  const clientsStayBy = stickyBy(config)
  const limitsOf = createLimitsView()
  const crashes = createCrashService({ store: history.crashes, events,
    release: () => supervisor.snapshot().release?.id ?? null,
    releases: () => releases.list({ limit: MAX_RELEASES }).items })

  return {
    events,
    history,
    vitals,
    appMetrics,
    metricHistory,
    diagnostics,
    profiling,
    logs,
    releases: { get: releases.get, list: releases.list, before: releases.before, compare: releases.compare,
      refs: releases.refs },
    alerts,
    jobs,
    crashes,
    notices,
    /** Decks of this user on this machine. */
    others,

    /** The app on other machines; null: its host is alone, or has not joined them yet. */
    get fleet () {
      return fleet()
    },

    /** Whether its host is to be in one: what that needs is loaded after the app has been started. */
    joinsFleet,

    /** Whether an old worker ends before its new one starts, so that fewer serve meanwhile. */
    isStopFirst: () => settings.current.rollout.order === 'stop-first',

    /** What there is to say of a snapshot. */
    health: createHealth({ history, crashes, notices, jobs }),

    /** What a deploy or a rollback would do; it changes nothing. */
    preview: createPreview({ supervisor, releases, history, settings, jobs }),

    /**
     * What has changed in the configuration since it was read.
     * @throws {DeckError} invalid-config
     */
    async configuredAnew (): Promise<NewChange[]> {
      const { now, deployed } = await releases.configurations()
      return settings.changesIn(now, deployed)
    },

    settings: settings as { list: () => Setting[], digest: () => string },

    snapshot () {
      const snapshot = supervisor.snapshot()
      return { ...snapshot, master: { ...master, rssBytes: process.memoryUsage.rss() },
        app: { name: deckName(config, snapshot.release), entry: config.entry, program, cwd: config.cwd,
          addresses: supervisor.addresses(), ownSockets }, nextRestartAt: nextRestartAt(), dispatch: config.dispatch,
        stickyBy: clientsStayBy, limits: limitsOf(settings.current), history: historyState(),
        secrets: { problem: secretsProblem() }, lastEventId: events.lastId }
    },

    /** The same, and what there is to say of it. */
    status () {
      const snapshot = this.snapshot()
      return { ...snapshot, health: this.health(snapshot), notices: notices.list() }
    },

    /** What an operator has to say to the app. */
    send: supervisor.send,

    /**
     * Resolves once the next start goes on with what runs now.
     * @throws {import('./errors.ts').DeckError} not-stored
     */
    stored,

    /** Moves it into a host. */
    move,

    /** Finds what could drop a request or lose a release. */
    examine,

    /** What a worker has in flight. */
    openRequests: supervisor.openRequests,

    /** @throws {import('./errors.ts').DeckError} */
    dispatch<T extends DeckCommand['type']> (
      command: Extract<DeckCommand, { type: T }>
    ): ReturnType<typeof RESULTS[T]> {
      const wanted: DeckCommand = command
      const order = toOrder(wanted)
      if (order.type === 'upgrade') upgrade(order)
      else supervisor.dispatch(order)
      return RESULTS[command.type](supervisor) as ReturnType<typeof RESULTS[T]>
    },

    /**
     * Changes options while the cluster runs, all or none of them. `wanted`: by the name of the option.
     * @throws {import('./errors.ts').DeckError} unknown-option, not-possible, invalid-config, and what dispatch throws
     */
    configure ({ wanted, actor }: { wanted: Record<string, unknown>, actor: string }) {
      const { config: next, changes } = settings.plan(wanted)
      if (changes.length === 0) return
      configure(next)
      settings.adopt(next)
      events.publish({ type: 'config.changed', actor, message: changes.map(describeChange).join(', '),
        detail: { changes } })
    },

    /**
     * Rolls out what is on the disk now. What is wrong with it for certain is refused at once; making the release of it
     * may take a while, and is the rollout's own first step. `mode`: in place of releases.mode.
     * @throws {import('./errors.ts').DeckError} entry-not-found, path-refused, and what dispatch throws
     */
    async deploy (
      { path, mode, ...command }: { path?: string, mode?: 'folder', note?: string, strategy?: StrategyWish,
        actor: string, client?: Client }
    ): Promise<RolloutView> {
      const spec = await releases.check({ path })
      return this.dispatch({ ...command, type: 'rollout', kind: 'deploy', source: { path, mode, spec } })
    },

    /**
     * Makes a release of a commit and rolls it out. That may take minutes: it is a run, whose end names the release and
     * the rollout.
     * @returns once it has begun
     * @throws {import('./errors.ts').DeckError} not-found, build-unconfirmed, unshared-files, invalid-config, stopping,
     * upgrade-running, secrets-failed
     */
    async deployCommit (
      { git, commit, isGuessAccepted, ...command }: { git: string, commit?: string, isGuessAccepted?: boolean,
        note?: string, strategy?: StrategyWish, actor: string, client?: Client }
    ): Promise<Run> {
      const { make, ...run } = await releases.planGit({ git, commit, isGuessAccepted, actor: command.actor,
        note: command.note ?? null })
      return jobs.runSteps({ ...run, actor: command.actor, steps: async (tools) => {
        const { id } = await make(tools)
        const rollout = await whenFree(
          () => this.dispatch({ ...command, type: 'rollout', kind: 'deploy', source: { release: id } }),
          tools
        )
        return { release: id, rollout: rollout.id }
      } })
    }
  }

  function toOrder (command: DeckCommand) {
    if (command.type === 'upgrade') return checkedUpgrade(command, isKept())
    return command.type === 'rollout' ? withSource(command) : command
  }

  function withSource ({ release, ...order }: Extract<DeckCommand, { type: 'rollout' }>) {
    if (order.kind !== 'rollback') return order
    const source = { release: release ?? releases.before(supervisor.snapshot().release.id) }
    releases.checkReturn(source.release)
    return { ...order, source }
  }
}

/** Waits while another rollout runs. */
async function whenFree<T> (begin: () => T, { tell, pause }: StepTools): Promise<T> {
  for (let isTold = false;; isTold = true) {
    try {
      return begin()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (!isTold) tell(`waiting: ${errorText(error)}`)
      await pause(TRY_AGAIN_MS)
    }
  }
}

async function refuseMove (): Promise<never> {
  throw new DeckError('not-possible', 'this app is in a host already')
}

/** As somebody has called it, or as its package, or else as its folder is called. */
export function deckName ({ name, entry, cwd }: Pick<Config, 'name' | 'entry' | 'cwd'>,
  release: { package?: { name: string | null } | null } | null)
{
  return name ?? (release?.package?.name || path.basename(cwd) || path.basename(entry))
}

/**
 * Each snapshot says whether the limits can be kept. That changes with the limits alone, so the machine is looked at
 * once for them.
 */
function createLimitsView () {
  let known: { limits: Limits, problem: string | null } | null = null

  return function limitsOf ({ limits }: Pick<Config, 'limits'>) {
    if (known?.limits !== limits) known = { limits, problem: controlGroups.whyUnlimited(limits) }
    return { ...limits, problem: known.problem }
  }
}

function describeChange ({ name, from, to }: Change) {
  return to === null ? name : `${name} from ${from} to ${to}`
}

/** What a command answers with, once it has been accepted. */
const RESULTS = { rollout: started, 'restart-worker': started, 'kill-worker': () => ({}), 'end-connections': () => ({}),
  scale: (supervisor: Supervisor) => ({ desiredWorkers: supervisor.snapshot().desiredWorkers }), pause: running,
  resume: running, abort: running, promote: running, retry: running,
  upgrade: (supervisor: Supervisor) => supervisor.snapshot().upgrade, stop: () => ({ state: 'stopping' }) }

function started (supervisor: Supervisor): RolloutView {
  return supervisor.snapshot().rollout as RolloutView
}

/** Null: that was its end */
function running (supervisor: Supervisor): RolloutView | null {
  return supervisor.snapshot().rollout
}

/** @returns with the program itself: a link that leads to it may lead elsewhere by the next start */
export function checkedUpgrade<T extends { execPath: string | null }> (command: T, isKept: boolean): T {
  if (!isKept)
    throw new DeckError('not-possible',
      'an upgrade in place needs the keeper, and this master runs without one: restart it instead')
  return command.execPath === null ? command : { ...command, execPath: checkedProgram(command.execPath) }
}
