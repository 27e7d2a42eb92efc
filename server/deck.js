import path from 'node:path'
import { stickyBy } from './config/session-by.js'
import { createCrashService } from './crashes/crashes.js'
import { DeckError, errorText } from './errors.js'
import { WRITTEN } from './events/recorder.js'
import { createHealth } from './health.js'
import { programName } from './launch/program-name.js'
import { createPreview, isBusy } from './preview.js'
import { whyUnheard } from './programs/running-program.js'
import { controlGroups } from './system/control-groups.js'
import { checkedProgram } from './system/program.js'

/**
 * All that the admin side knows.
 * @typedef {ReturnType<typeof createDeck>} Deck
 * @typedef {ReturnType<Deck['snapshot']>} Status
 * @typedef {Status['workers'][number]} WorkerRow
 * @typedef {import('./lifecycle/rollout/record.js').RolloutView} RolloutView
 * @typedef {ReturnType<typeof import('./lifecycle/state.js').shownRelease> & { outcome: import('./releases/catalogue.js').Outcome | null, rollout: number | null, deployedAt: string | null, servedAt: string | null, setback: import('./releases/catalogue.js').Setback | null, isLastGood: boolean, inUse: boolean, changedInPlace: import('./lifecycle/state.js').Drift & { message: string } | null }} ReleaseView
 * @typedef {import('./config/steering.js').Steering} Steering
 * @typedef {import('./lifecycle/state.js').Client} Client
 * @typedef {import('./lifecycle/rollout/strategy.js').StrategyWish} StrategyWish
 * @typedef {import('./cluster/supervisor.js').Supervisor} Supervisor
 * @typedef {(to: { path: string, secret: string, actor: string }) => Promise<{ name: string }>} Move  `path`, `secret`: where a host waits; `name`: what it calls the app
 *
 * What an operator wants; `release` of a rollback: the one before, unless it is said.
 * @typedef {{ actor: string } & (
 *   { type: 'rollout', kind: 'restart' | 'deploy' | 'rollback', release?: string, note?: string, strategy?: StrategyWish, source?: Record<string, unknown>, client?: Client }
 *   | { [S in Steering]: { type: S, rollout: number } }[Steering]
 *   | { type: 'restart-worker', worker: number, client?: Client }
 *   | { type: 'kill-worker', worker: number }
 *   | { type: 'end-connections', worker: number }
 *   | { type: 'scale', workers: number }
 *   | { type: 'upgrade', execPath: string | null, note: string | null }
 *   | { type: 'stop' })} DeckCommand
 */

const MAX_RELEASES = 100
const TRY_AGAIN_MS = 100

/**
 * The one facade between the admin side and the cluster.
 * @param {object} parts
 * @param {import('./config/settings.js').Settings} parts.settings
 * @param {(config: import('./config/config.js').Config) => void} parts.configure  makes what has changed count everywhere, or throws before anything has
 * @param {Supervisor} parts.supervisor
 * @param {import('./events/stream.js').EventStream} parts.events
 * @param {import('../db/history.js').History} parts.history
 * @param {Pick<import('./vitals/vitals.js').Vitals, 'series' | 'lastMinute' | 'metrics' | 'routes'>} parts.vitals
 * @param {{ read: () => Promise<{ metrics: import('./telemetry/metric.js').Metric[], leftOut: number }> }} parts.appMetrics  what the app counts itself
 * @param {{ pid: number, version: string, nodeVersion: string, startedAt: string, isShared: boolean }} parts.master  `isShared`: it has other apps as well
 * @param {import('./diagnostics/diagnostics.js').Diagnostics} parts.diagnostics
 * @param {Pick<import('./diagnostics/profiling.js').Profiling, 'isOn' | 'list' | 'read'>} parts.profiling
 * @param {import('./logs/logs.js').Logs} parts.logs
 * @param {Pick<import('./releases/registry.js').Releases, 'check' | 'checkReturn' | 'before' | 'planGit' | 'refs' | 'get' | 'list' | 'compare' | 'preview' | 'configurations'>} parts.releases
 * @param {Pick<import('./alerts/alerts.js').Alerts, 'list' | 'add' | 'change' | 'delete' | 'test' | 'digest' | 'retry' | 'preview'>} parts.alerts
 * @param {Pick<import('./jobs/jobs.js').Jobs, 'isEmpty' | 'failing' | 'metrics' | 'acknowledge' | 'list' | 'get' | 'runs' | 'run' | 'outputOf' | 'runNow' | 'runCommand' | 'building' | 'runSteps' | 'runToEnd' | 'place' | 'tellEnd' | 'end' | 'pause' | 'resume'>} parts.jobs
 * @param {import('./events/notices.js').Notices} parts.notices
 * @param {import('./system/other-decks.js').OtherDecks} parts.others
 * @param {() => import('./fleet/app-fleet.js').AppFleet | null} [parts.fleet]  the app on other machines, once its host has joined them
 * @param {boolean} [parts.joinsFleet]
 * @param {() => string | null} [parts.nextRestartAt]  by restart.cron
 * @param {() => boolean} parts.isKept  by a keeper, which alone can change masters
 * @param {() => import('./events/recorder.js').HistoryState} [parts.historyState]
 * @param {() => string | null} [parts.secretsProblem]  why no worker can be started
 * @param {(order: Extract<import('./lifecycle/state.js').OperatorInput, { type: 'upgrade' }>) => void} [parts.upgrade]  where other apps change masters with this one
 * @param {Move} [parts.move]  into a host
 * @param {() => Promise<import('./doctor/doctor.js').Report>} parts.examine  the app and the machine
 */
export function createDeck ({ settings, configure, supervisor, events, history, vitals, appMetrics, master, diagnostics, profiling, logs, releases, alerts, jobs, notices, others, fleet = () => null, joinsFleet = false, isKept, nextRestartAt = () => null, historyState = () => WRITTEN, secretsProblem = () => null, upgrade = supervisor.dispatch, move = refuseMove, examine }) {
  const config = settings.current
  const isOther = config.runtime === 'other'
  const program = isOther ? programName(config) : null
  const ownSockets = isOther ? whyUnheard() : null
  const clientsStayBy = stickyBy(config)
  const limitsOf = createLimitsView()
  const crashes = createCrashService({
    store: history.crashes, events, release: () => supervisor.snapshot().release?.id ?? null, releases: () => /** @type {ReleaseView[]} */ (releases.list({ limit: MAX_RELEASES }).items)
  })

  return {
    events,
    history,
    vitals,
    appMetrics,
    diagnostics,
    profiling,
    logs,
    releases: /** @type {{ get: (id: string) => ReleaseView, list: (query: { limit?: number, cursor?: string }) => { items: ReleaseView[], next: string | null }, before: (id: string) => string, compare: typeof releases.compare, refs: typeof releases.refs }} */ (
      { get: releases.get, list: releases.list, before: releases.before, compare: releases.compare, refs: releases.refs }
    ),
    alerts,
    jobs,
    crashes,
    notices,
    /** Decks of this user on this machine. */
    others,

    /** The app on other machines; null: its host is alone, or has not joined them yet. */
    get fleet () { return fleet() },

    /** Whether its host is to be in one: what that needs is loaded after the app has been started. */
    joinsFleet,

    /** Whether an old worker ends before its new one starts, so that fewer serve meanwhile. */
    isStopFirst: () => settings.current.rollout.order === 'stop-first',

    /** What there is to say of a snapshot. */
    health: createHealth({ history, crashes, notices, jobs }),

    /** What a deploy or a rollback would do; it changes nothing. */
    preview: createPreview({ supervisor, releases, history, settings, jobs }),

    /** What has changed in the configuration since it was read. @returns {Promise<import('./config/settings.js').NewChange[]>} @throws {DeckError} invalid-config */
    async configuredAnew () {
      const { now, deployed } = await releases.configurations()
      return settings.changesIn(now, deployed)
    },

    settings: /** @type {{ list: () => import('./config/settings.js').Setting[], digest: () => string }} */ (settings),

    snapshot () {
      const snapshot = supervisor.snapshot()
      return {
        ...snapshot,
        master: { ...master, rssBytes: process.memoryUsage.rss() },
        app: { name: deckName(config, snapshot.release), entry: config.entry, program, cwd: config.cwd, addresses: supervisor.addresses(), ownSockets },
        nextRestartAt: nextRestartAt(),
        dispatch: config.dispatch,
        stickyBy: clientsStayBy,
        // The master hands connections out in turn.
        ...(config.dispatch === 'round-robin' && { isEven: true }),
        limits: limitsOf(settings.current),
        history: historyState(),
        secrets: { problem: secretsProblem() },
        lastEventId: events.lastId
      }
    },

    /** The same, and what there is to say of it. */
    status () {
      const snapshot = this.snapshot()
      return { ...snapshot, health: this.health(snapshot), notices: notices.list() }
    },

    /** What an operator has to say to the app. */
    send: supervisor.send,

    /** Moves it into a host. */
    move,

    /** Finds what could drop a request or lose a release. */
    examine,

    /** What a worker has in flight. */
    openRequests: supervisor.openRequests,

    /**
     * @template {DeckCommand['type']} T
     * @param {Extract<DeckCommand, { type: T }>} command
     * @returns {ReturnType<typeof RESULTS[T]>}
     * @throws {import('./errors.js').DeckError}
     */
    dispatch (command) {
      const wanted = /** @type {DeckCommand} */ (command)
      const order = toOrder(wanted)
      if (order.type === 'upgrade') upgrade(order)
      else supervisor.dispatch(order)
      return /** @type {ReturnType<typeof RESULTS[T]>} */ (RESULTS[command.type](supervisor))
    },

    /**
     * Changes options while the cluster runs, all or none of them.
     * @param {{ wanted: Record<string, unknown>, actor: string }} order  `wanted`: by the name of the option
     * @throws {import('./errors.js').DeckError} unknown-option, not-possible, invalid-config, and what dispatch throws
     */
    configure ({ wanted, actor }) {
      const { config: next, changes } = settings.plan(wanted)
      if (changes.length === 0) return
      configure(next)
      settings.adopt(next)
      events.publish({ type: 'config.changed', actor, message: changes.map(describeChange).join(', '), detail: { changes } })
    },

    /**
     * Rolls out what is on the disk now. What is wrong with it for certain is refused at once; making the release of it
     * may take a while, and is the rollout's own first step.
     * @param {{ path?: string, mode?: 'folder', note?: string, strategy?: StrategyWish, actor: string, client?: Client }} wanted  `mode`: in place of releases.mode
     * @returns {Promise<RolloutView>}
     * @throws {import('./errors.js').DeckError} entry-not-found, path-refused, and what dispatch throws
     */
    async deploy ({ path, mode, ...command }) {
      const spec = await releases.check({ path })
      return this.dispatch({ ...command, type: 'rollout', kind: 'deploy', source: { path, mode, spec } })
    },

    /**
     * Makes a release of a commit and rolls it out. That may take minutes: it is a run, whose end names the release and the rollout.
     * @param {{ git: string, isGuessAccepted?: boolean, note?: string, strategy?: StrategyWish, actor: string, client?: Client }} wanted
     * @returns {Promise<import('./jobs/jobs.js').Run>} once it has begun
     * @throws {import('./errors.js').DeckError} not-found, build-unconfirmed, unshared-files, invalid-config, stopping, upgrade-running, secrets-failed
     */
    async deployCommit ({ git, isGuessAccepted, ...command }) {
      const { make, ...run } = await releases.planGit({ git, isGuessAccepted, actor: command.actor, note: command.note ?? null })
      return jobs.runSteps({
        ...run,
        actor: command.actor,
        steps: async (tools) => {
          const { id } = await make(tools)
          const rollout = await whenFree(() => this.dispatch({ ...command, type: 'rollout', kind: 'deploy', source: { release: id } }), tools)
          return { release: id, rollout: rollout.id }
        }
      })
    }
  }

  /** @param {DeckCommand} command @returns {any} */
  function toOrder (command) {
    if (command.type === 'upgrade') return checkedUpgrade(command, { config, isKept: isKept() })
    return command.type === 'rollout' && command.kind === 'rollback' ? toRollback(command) : command
  }

  /** @param {{ release?: string }} command */
  function toRollback ({ release = releases.before(supervisor.snapshot().release.id), ...command }) {
    releases.checkReturn(release)
    return { ...command, source: { release } }
  }
}

/**
 * Waits while another rollout runs.
 * @template T @param {() => T} begin @param {import('./jobs/steps-run.js').StepTools} tools @returns {Promise<T>}
 */
async function whenFree (begin, { tell, pause }) {
  for (let isTold = false; ; isTold = true) {
    try {
      return begin()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (!isTold) tell(`waiting: ${errorText(error)}`)
      await pause(TRY_AGAIN_MS)
    }
  }
}

/** @returns {Promise<never>} */
async function refuseMove () {
  throw new DeckError('not-possible', 'this app is in a host already')
}

/**
 * As somebody has called it, or as its package, or else as its folder is called.
 * @param {Pick<import('./config/config.js').Config, 'name' | 'entry' | 'cwd'>} config @param {{ package?: { name: string | null } | null } | null} release
 */
export function deckName ({ name, entry, cwd }, release) {
  return name ?? (release?.package?.name || path.basename(cwd) || path.basename(entry))
}

/** Each snapshot says whether the limits can be kept. That changes with the limits alone, so the machine is looked at once for them. */
function createLimitsView () {
  /** @type {{ limits: import('./system/control-groups.js').Limits, problem: string | null } | null} */
  let known = null

  return function limitsOf (/** @type {Pick<import('./config/config.js').Config, 'limits'>} */ { limits }) {
    if (known?.limits !== limits) known = { limits, problem: controlGroups.whyUnlimited(limits) }
    return { ...limits, problem: known.problem }
  }
}

/** @param {import('./config/settings.js').Change} change */
function describeChange ({ name, from, to }) {
  return to === null ? name : `${name} from ${from} to ${to}`
}

/** What a command answers with, once it has been accepted. */
const RESULTS = {
  rollout: started,
  'restart-worker': started,
  'kill-worker': () => ({}),
  'end-connections': () => ({}),
  scale: (/** @type {Supervisor} */ supervisor) => ({ desiredWorkers: supervisor.snapshot().desiredWorkers }),
  pause: running,
  resume: running,
  abort: running,
  promote: running,
  retry: running,
  upgrade: (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().upgrade,
  stop: () => ({ state: 'stopping' })
}

/** @param {Supervisor} supervisor @returns {RolloutView} */
function started (supervisor) {
  return /** @type {RolloutView} */ (supervisor.snapshot().rollout)
}

/** @param {Supervisor} supervisor @returns {RolloutView | null} null: that was its end */
function running (supervisor) {
  return supervisor.snapshot().rollout
}

/**
 * @template {{ execPath: string | null }} T
 * @param {T} command @param {{ config: import('./config/config.js').Config, isKept: boolean }} master
 * @returns {T} with the program itself: a link that leads to it may lead elsewhere by the next start
 */
export function checkedUpgrade (command, { config, isKept }) {
  if (!isKept) throw new DeckError('not-possible', 'an upgrade in place needs the keeper, and this master runs without one: restart it instead')
  if (config.dispatch === 'round-robin') {
    throw new DeckError('not-possible', 'an upgrade in place needs sockets that two masters can share: dispatch is "round-robin", expected "shared"')
  }
  return command.execPath === null ? command : { ...command, execPath: checkedProgram(command.execPath) }
}
