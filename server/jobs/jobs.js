import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { attachCommand } from '../cluster/command-attached.js'
import { adoptCommand } from '../cluster/command-left.js'
import { endLeftGroup, runCommand } from '../cluster/command-run.js'
import { placeOfRelease } from '../cluster/command-place.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError, isErrorCode } from '../errors.js'
import { durationText } from '../lifecycle/duration.js'
import { createJobLogs } from './job-log.js'
import { createKeptStreams } from './kept-streams.js'
import { orNone } from './or-none.js'
import { createOutcomes } from './outcomes.js'
import { createRunOutput, removeOutput } from './run-output.js'
import { lend } from '../system/loan.js'
import { runSteps } from './steps-run.js'
import { readableText } from '../system/one-line.js'
import { SHELL_VARIABLE } from '../system/own-variables.js'
import { namesIn } from '../system/proc.js'
import { isGroupAlive } from '../system/process-group.js'
import { isAlive } from '../system/process-identity.js'
import { createTimetable } from '../system/timetable.js'
import { withoutUrlSecrets } from '../system/without-url-secrets.js'

/**
 * @typedef {ReturnType<typeof createJobs>} Jobs
 * @typedef {import('../../db/job-runs.js').Run} Run
 * @typedef {import('../lifecycle/state.js').Release} Release
 * @typedef {Readonly<Record<string, JobConfig>>} JobConfigs
 * @typedef {object} JobConfig
 * @property {string} [cron]  without it, the job runs only when somebody asks
 * @property {string | readonly string[]} command  one text is for the shell
 * @property {'skip' | 'queue' | 'replace'} overlap  what happens if its time comes while it still runs
 * @property {number} timeoutMs
 * @property {string} [timeZone]
 *
 * What is to be run. `job`: null: a command that somebody has typed; `dueAt`: ISO 8601; null: somebody has asked for it; `attached`: it runs already, in a
 * terminal of theirs; `hasSteps`: it is of several commands; `git`: what they build, as somebody has called the commit.
 * @typedef {{ job: string | null, command: JobConfig['command'], timeoutMs: number, actor: string, dueAt: string | null, attached?: import('../system/process-identity.js').ProcessIdentity | null, hasSteps?: true, git?: string }} Order
 * @typedef {{ name: string, git?: string, option: string, timeoutMs: number, steps: import('./steps-run.js').Steps, actor: string }} StepsOrder
 * @typedef {{ actor: string, dueAt: string | null, onStarted: ((run: Run) => void) | null }} Waiting
 * @typedef {import('../cluster/command-run.js').CommandRun} CommandRun
 * @typedef {Omit<CommandRun, 'ended'> & { ended: Promise<End>, tellEnd?: (exit: { code: number | null, signal: string | null }) => void }} Process
 * @typedef {import('../cluster/command-run.js').CommandEnd & { cause?: string, made?: import('./steps-run.js').Made }} End  `cause`, `made`: of one with steps
 * @typedef {{ option: string, timeoutMs: number, maxOutputChars: number, onOutput: (stream: 'stdout' | 'stderr', text: string) => void, onExited: (pid: number) => void }} Shared
 * @typedef {{ id: number, order: Order, process: Process, log: import('./job-log.js').JobLog, output: import('./run-output.js').RunOutput, endedFor: string | null, done: Promise<void>, view: Run }} Active
 * @typedef {import('../system/process-identity.js').ProcessIdentity & { run: number, job: string | null, name: string, timeoutMs: number, hasTerminal: boolean }} LeftRun  of the master before
 * @typedef {{ runs: LeftRun[], due: Record<string, import('../system/timetable.js').Due> }} JobsMemory
 */

/** So much of the output of a run is kept in the history, and goes to those who follow it. */
const MAX_OUTPUT_CHARS = 64 * 1024
/** An event has less of it, since alerts send it on. */
const MAX_TOLD_CHARS = 2000
const MAX_COMMAND_CHARS = 1000
const MAX_NAME_CHARS = 80
/** The longest that a Node timer can wait. */
const NO_TIMEOUT_MS = 2 ** 31 - 1
/** A run has this long to end after SIGTERM, until it is killed. */
const GRACE_MS = 5000
/** What a dead master has left running is killed after the grace. It is waited for this long: a process that the kernel does not let go would never end. */
const LEFT_PATIENCE_MS = GRACE_MS + 1000
const LOOK_EVERY_MS = 50
/** Whoever has started a run may still be about to ask for its output. */
const KEPT_AFTER_MS = 10_000
/** A time that is noticed this late is told: the machine slept, its clock was set, or no master ran. */
const LATE_AFTER_MS = 2 * 60_000
/** So many missed times are counted. */
const MAX_MISSED = 1000
/** Commands of `clusterdeck run` share the log of this name. */
const COMMAND_LOG = 'command'

/**
 * Runs the configured jobs at their times, and what else an operator wants to run beside the workers.
 * @param {object} parts
 * @param {JobConfigs} parts.jobs  as configured at the start
 * @param {() => { release: string, isStopping: boolean, isUpgrading: boolean, secretsProblem?: string | null }} parts.current  state of the cluster; `release`: the last one that was deployed; `secretsProblem`: why its variables are not known
 * @param {(id: string) => Release | undefined} parts.release
 * @param {(id: string) => Record<string, string | undefined>} parts.environment  of the workers of a release, over what is inherited
 * @param {Record<string, string | undefined>} parts.inherited  of the shell that the app is from
 * @param {string} parts.cwd  of a release that has none
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {import('../../db/history.js').History['jobRuns']} parts.store
 * @param {string} parts.dataFolder
 * @param {string} parts.logFolder
 * @param {() => { maxBytes: number, maxFiles: number }} parts.logLimits
 * @param {(reason: string) => void} [parts.onLogError]
 * @param {(text: string) => string} [parts.hide]  takes out of what runs write what nobody is to read
 * @param {(cron: string, after: Date, timeZone: string | undefined) => Date | null} parts.nextRun
 * @param {import('./kept-streams.js').Keeper & { exits: readonly { pid: number, code: number | null, signal: string | null }[] }} parts.keeper
 * @param {() => JobConfigs} [parts.configured]  by the configuration that was read last, which counts once a deploy has succeeded
 * @param {(order: Parameters<typeof runCommand>[0]) => CommandRun} [parts.run]
 * @param {typeof adoptCommand} [parts.adopt]
 * @param {() => number} [parts.now]  wall clock, ms
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 */
export function createJobs ({
  jobs: first, current, release: findRelease, environment, inherited, cwd, events, store, dataFolder, logFolder, logLimits, onLogError, hide = (text) => text, nextRun, keeper,
  configured = () => first, run = runCommand, adopt = adoptCommand, now = Date.now, timers = globalThis
}) {
  let jobs = first
  /** @type {Map<number, Active>} by id */
  const active = new Map()
  /** Output of runs that have just ended. @type {Map<number, import('./run-output.js').RunOutput>} */
  const lastOutputs = new Map()
  /** @type {Map<string, Waiting>} by job */
  const waiting = new Map()
  /** @type {Map<string, { at: string, actor: string }>} */
  const paused = new Map()
  /** Runs of the last master that were told to end. @type {Set<LeftRun>} */
  const ending = new Set()
  /** Runs that the next master goes on with. @type {Set<Active>} */
  const left = new Set()
  /** Processes whose exit Node still waits for. @type {Set<number>} */
  const children = new Set()
  /** Times that have come while another master was about to take over, by job. @type {Map<string, Date>} */
  const postponed = new Map()
  /** Due times that the master before has left, which wait until the secrets are known. @type {JobsMemory['due']} */
  let missedDue = {}
  /** Variables that nobody has taken yet. @type {Set<import('../system/loan.js').Loan>} */
  const loans = new Set()
  let isClosed = false
  const kept = createKeptStreams(keeper)
  const outputFolder = path.join(dataFolder, 'run-output')
  const logs = createJobLogs({ folder: path.join(logFolder, 'jobs'), limits: logLimits, onError: onLogError })
  const timetable = createTimetable({ nextRun, onDue: runDue, onSetBack: tellSetBack, now, timers })
  /** What a time does that comes while the job still runs. */
  const overlaps = { skip: skipRun, queue: queueRun, replace: replaceRun }
  const outcomes = createOutcomes({ store, names: () => Object.keys(jobs).sort(), isScheduled: (name) => jobs[name].cron !== undefined })
  const stopNoting = events.subscribe(outcomes.note)
  // Events that follow from another event are published after it.
  const unsubscribe = events.subscribe((event) => { Promise.resolve(event).then(readAgain) })

  return {
    /**
     * Begins to run them.
     * @param {JobsMemory & { isUpgrade?: boolean, secrets?: Promise<unknown> | null }} left  of the master before: its runs go on here, and
     *   what it has missed is run once; `secrets`: what a new run has to wait for
     */
    start ({ runs, due, isUpgrade = false, secrets = null }) {
      for (const { job, at, actor } of listOrNone(store.paused)) paused.set(job, { at, actor })
      takeLeft(runs, isUpgrade ? 'upgrade' : 'master-lost')
      if (secrets === null) return timetable.plan(jobs, due)
      missedDue = due
      secrets.then(() => {
        missedDue = {}
        if (!isClosed) timetable.plan(jobs, due)
      })
    },

    /** Asks no history, as a list does: every page has a link to the jobs where there are some. */
    isEmpty: () => Object.keys(jobs).length === 0,

    /** As of createOutcomes(): it reads the history only at the first call. */
    failing: outcomes.failing,

    metrics: outcomes.metrics,

    /** All jobs, sorted by name. */
    list: () => Object.keys(jobs).sort().map(toView),

    /** @param {string} name @throws {DeckError} not-found */
    get (name) {
      mustFind(name)
      return toView(name)
    },

    /**
     * @param {string | null | undefined} job  null: those of no job; undefined: all
     * @param {{ limit?: number, cursor?: string | null }} query
     */
    runs: (job, query) => store.page({ job, ...query }),

    /** @param {number} id @returns {Run & { output: string | null }} `output`: the last part of it; null: no longer kept @throws {DeckError} not-found */
    run (id) {
      const running = active.get(id)
      if (running) return { ...running.view, output: readableText(running.output.text()) }
      const run = store.find(id)
      if (!run) throw new DeckError('not-found', `Run ${id} does not exist, or is no longer kept`)
      return run
    },

    /** @param {number} id @returns {Pick<import('./run-output.js').RunOutput, 'since'> | null} null: it has ended a while ago */
    outputOf: (id) => active.get(id)?.output ?? lastOutputs.get(id) ?? null,

    /**
     * Runs a job now.
     * @param {string} name @param {{ actor: string }} by
     * @returns {Promise<Run>} once it has begun
     * @throws {DeckError} not-found, job-running, stopping, upgrade-running, secrets-failed
     */
    async runNow (name, { actor }) {
      const { overlap } = mustFind(name)
      checkRunning()
      const busy = busyRun(name)
      if (busy === null) return startJob(name, { actor, dueAt: null })
      if (overlap !== 'replace') throw new DeckError('job-running', `${name} is running (run ${busy})`, { details: { run: busy } })
      return await new Promise((resolve) => replaceRun(name, { actor, dueAt: null, onStarted: resolve }))
    },

    /**
     * Runs a command in the folder of the current release, with the variables of its workers.
     * @param {{ command: readonly string[], actor: string, process?: import('../system/process-identity.js').ProcessIdentity | null }} order
     *   `process`: it runs there already, in a terminal of whoever has started it
     * @returns {Run}
     * @throws {DeckError} stopping, upgrade-running, secrets-failed, invalid-body
     */
    runCommand ({ command, actor, process: attached = null }) {
      checkRunning()
      if (attached && (attached.startTime === null || !isAlive(attached))) {
        throw new DeckError('invalid-body', `process: expected one that runs on this machine, received ${attached.pid} since ${JSON.stringify(attached.startTime)}`)
      }
      return startRun({ job: null, command, timeoutMs: NO_TIMEOUT_MS, actor, dueAt: null, attached }).view
    },

    /**
     * Runs several commands as one, after those that were begun before in this way.
     * @param {StepsOrder} order @returns {Run}
     * @throws {DeckError} stopping, upgrade-running, secrets-failed
     */
    runSteps: (order) => beginSteps(order).view,

    /** The newest run that builds a commit. @returns {{ run: number, git: string, startedAt: string, actor: string } | null} null: none does */
    building () {
      const newest = [...active.values()].findLast(({ order }) => order.git !== undefined)
      return newest ? { run: newest.id, git: String(newest.order.git), startedAt: newest.view.startedAt, actor: newest.order.actor } : null
    },

    /**
     * The same, for somebody who waits for it.
     * @param {StepsOrder} order @throws {DeckError} as runSteps(), and what it has failed of; job-failed: it was ended
     */
    async runToEnd (order) {
      const { passed, reason, cause } = await beginSteps(order).process.ended
      if (!passed) throw new DeckError(isErrorCode(cause) ? cause : 'job-failed', String(reason))
    },

    /**
     * Where a command belongs that somebody runs in a terminal of theirs.
     * @returns {Promise<{ release: string, cwd: string, variables: string }>}  `variables`: the socket that gives them, for take()
     * @throws {DeckError} stopping, upgrade-running, secrets-failed
     */
    async place () {
      checkRunning()
      const { release, place } = placeNow()
      const loan = await lend(JSON.stringify({ ...place.env, [SHELL_VARIABLE]: undefined }), { below: dataFolder })
      loans.add(loan)
      loan.over.then(() => loans.delete(loan))
      return { release: release.id, cwd: place.cwd, variables: loan.path }
    },

    /**
     * Whoever has run a command in a terminal of theirs tells how it has ended.
     * @param {number} id @param {{ code: number | null, signal: string | null }} exit @returns {Run}
     * @throws {DeckError} not-found, run-ended, not-possible
     */
    tellEnd (id, exit) {
      const running = active.get(id)
      if (!running) {
        this.run(id)
        throw new DeckError('run-ended', `Run ${id} has ended`)
      }
      if (!running.process.tellEnd) throw new DeckError('not-possible', `Run ${id} has no terminal of its own: the master sees how it ends`)
      running.process.tellEnd(exit)
      return running.view
    },

    /** @param {number} id @param {{ isForced?: boolean, actor: string }} how `isForced`: without a grace @returns {Run} @throws {DeckError} not-found, run-ended */
    end (id, { isForced = false, actor }) {
      const running = active.get(id)
      if (!running) {
        this.run(id)
        throw new DeckError('run-ended', `Run ${id} has ended`)
      }
      endRun(running, 'operator', `was ended by ${actor}`, isForced ? 0 : GRACE_MS)
      return running.view
    },

    /** @param {string} name @param {string} actor @throws {DeckError} not-found */
    pause (name, actor) {
      mustFind(name)
      if (!paused.has(name)) {
        const { at } = events.publish({ type: 'job.paused', actor, message: name, detail: { job: name } })
        paused.set(name, { at, actor })
      }
      return toView(name)
    },

    /** @param {string} name @param {string} actor @throws {DeckError} not-found */
    resume (name, actor) {
      mustFind(name)
      if (paused.delete(name)) events.publish({ type: 'job.resumed', actor, message: name, detail: { job: name } })
      return toView(name)
    },

    /** From now on its failure is known. @param {string} name @param {string} actor @throws {DeckError} not-found */
    acknowledge (name, actor) {
      mustFind(name)
      const failure = outcomes.failureOf(name)
      if (failure === null) throw new DeckError('not-found', `Job ${name} has not failed since its last good run, or that is acknowledged already`)
      events.publish({ type: 'job.acknowledged', actor, message: name, detail: { job: name, run: failure.run } })
      return toView(name)
    },

    /** @param {number} pid @returns {boolean} whether it is a run whose exit Node waits for */
    isChild: (pid) => children.has(pid) || [...active.values()].some(({ process }) => process.identity?.pid === pid),

    /** What the next master needs if this one dies. @returns {JobsMemory} */
    memory: () => ({
      runs: [...active.values()].flatMap(({ id, order: { job, timeoutMs, attached }, process: { name, identity } }) => {
        return identity ? [{ run: id, job, name, timeoutMs, hasTerminal: Boolean(attached), ...identity }] : []
      }),
      due: { ...missedDue, ...timetable.memory(), ...dueAgain() }
    }),

    /** The releases that runs are of: their folders stay until then. @returns {string[]} */
    releasesInUse: () => [...active.values()].flatMap(({ view: { release } }) => release ?? []),

    /**
     * Another master goes on with the runs. Those that cannot be handed over are ended.
     * @returns {Promise<void>} when they are gone
     */
    async handOver () {
      for (const each of goingOn()) {
        each.process.leave()
        leaveRun(each)
      }
      await this.close({ cause: 'upgrade', why: 'as the master was upgraded' })
    },

    /**
     * The runs go on for whoever opens the app anew in this process. Whatever is left is to be closed.
     * @returns {Promise<import('../keeper/link.js').Exit>[]} how those end that are its children
     */
    letGo () {
      return goingOn().flatMap((each) => {
        const exit = each.process.letGo()
        if (exit || each.order.attached) leaveRun(each)
        return exit ?? []
      })
    },

    /**
     * Starts no more runs, and ends those that run.
     * @param {{ graceMs?: number, cause?: 'stopping' | 'upgrade', why?: string }} [how] `why`: they are ended
     * @returns {Promise<void>} when they are gone
     */
    async close ({ graceMs = GRACE_MS, cause = 'stopping', why = 'as the master was stopping' } = {}) {
      isClosed = true
      unsubscribe()
      timetable.close()
      for (const { close } of loans) close()
      const all = [...active.values()].filter((each) => !left.has(each))
      for (const each of all) endRun(each, cause, `was ended, ${why}`, graceMs)
      await Promise.all(all.map(({ done }) => done))
      stopNoting()
    }
  }

  /** @param {string} name */
  function toView (name) {
    const { cron = null, overlap, timeoutMs, timeZone = null } = jobs[name]
    const [last] = store.page({ job: name, limit: 1 }).items
    return {
      name,
      cron,
      timeZone,
      overlap,
      timeoutMs,
      nextAt: paused.has(name) ? null : timetable.nextAt(name),
      paused: paused.get(name) ?? null,
      isWaiting: waiting.has(name),
      running: busyRun(name),
      isFailing: jobs[name].cron !== undefined && outcomes.failureOf(name) !== null,
      last: last ?? null
    }
  }

  /** @param {string} name @returns {JobConfig} @throws {DeckError} not-found */
  function mustFind (name) {
    if (Object.hasOwn(jobs, name)) return jobs[name]
    const names = Object.keys(jobs)
    throw new DeckError('not-found', names.length === 0 ? 'There are no jobs (option jobs)' : `There is no job ${JSON.stringify(name)}${didYouMean(name, names)}`)
  }

  /** @throws {DeckError} stopping, upgrade-running, secrets-failed */
  function checkRunning () {
    const { isStopping, isUpgrading, secretsProblem = null } = current()
    if (isClosed || isStopping) throw new DeckError('stopping', 'The master is stopping')
    if (secretsProblem !== null) throw new DeckError('secrets-failed', secretsProblem)
    if (isUpgrading) throw new DeckError('upgrade-running', 'An upgrade is running: the next master starts jobs and commands, in a moment')
  }

  /** What the next master is to run at once: what waits here, and what has come during the upgrade. @returns {JobsMemory['due']} */
  function dueAgain () {
    const times = [...waiting].flatMap(([name, { dueAt }]) => dueAt === null ? [] : [{ name, at: dueAt }])
    const all = [...times, ...Array.from(postponed, ([name, at]) => ({ name, at: at.toISOString() }))]
    return Object.fromEntries(all.map(({ name, at }) => [name, { cron: String(jobs[name].cron), at }]))
  }

  /** @param {string} name @returns {number | null} the run that has not ended */
  function busyRun (name) {
    const own = [...active.values()].find(({ order }) => order.job === name)?.id
    return own ?? [...ending].find(({ job }) => job === name)?.run ?? null
  }

  /** @param {string} name @param {Date} at */
  function runDue (name, at) {
    if (isClosed || current().isStopping || paused.has(name)) return
    if (current().isUpgrading) {
      postponed.set(name, at)
      return
    }
    tellMissed(name, at)
    const order = { actor: 'cron', dueAt: at.toISOString(), onStarted: null }
    const busy = busyRun(name)
    if (busy === null) startJob(name, order)
    else overlaps[jobs[name].overlap](name, order, busy)
  }

  /** What has come meanwhile runs once; that it is late, and how many times that one run stands for, nobody would see otherwise. @param {string} name @param {Date} at */
  function tellMissed (name, at) {
    const lateMs = now() - at.getTime()
    if (lateMs < LATE_AFTER_MS) return
    const { cron, timeZone } = jobs[name]
    let count = 0
    for (let next = nextRun(String(cron), at, timeZone); next !== null && next.getTime() <= now() && count < MAX_MISSED; next = nextRun(String(cron), next, timeZone)) count++
    events.publish({ type: 'job.missed', actor: 'system', message: name, detail: { job: name, dueAt: at.toISOString(), lateMs, missed: count } })
  }

  /** @param {string[]} names @param {number} backMs */
  function tellSetBack (names, backMs) {
    events.publish({ type: 'clock.set-back', actor: 'system', message: `jobs ${names.join(', ')}`, detail: { backMs } })
  }

  /** @param {string} name @param {Waiting} order @param {number} busy @param {string} [why] */
  function skipRun (name, { actor, dueAt }, busy, why = '') {
    events.publish({ type: 'job.skipped', actor, message: `${name} was skipped: run ${busy} has not ended${why}`, detail: { job: name, dueAt, run: busy } })
  }

  /** @param {string} name @param {Waiting} order @param {number} busy */
  function queueRun (name, order, busy) {
    if (waiting.has(name)) skipRun(name, order, busy, ', and the next one waits already')
    else waiting.set(name, order)
  }

  /** @param {string} name @param {Waiting} order */
  function replaceRun (name, order) {
    const before = waiting.get(name)
    waiting.set(name, {
      ...order,
      onStarted (run) {
        before?.onStarted?.(run)
        order.onStarted?.(run)
      }
    })
    for (const each of active.values()) if (each.order.job === name) endRun(each, 'replaced', 'was ended, as the next run begins')
  }

  /** @param {string} name @param {{ actor: string, dueAt: string | null }} order */
  function startJob (name, { actor, dueAt }) {
    const { command, timeoutMs } = jobs[name]
    return startRun({ job: name, command, timeoutMs, actor, dueAt }).view
  }

  function placeNow () {
    const release = /** @type {Release} */ (findRelease(current().release))
    return { release, place: placeOfRelease(release, { own: environment(release.id), inherited, cwd }) }
  }

  /** @param {StepsOrder} order @returns {Active} @throws {DeckError} stopping, upgrade-running, secrets-failed */
  function beginSteps ({ name, git, option, timeoutMs, steps, actor }) {
    checkRunning()
    return beginRun({ job: null, command: name, timeoutMs, actor, dueAt: null, hasSteps: true, git }, null, (shared, id) => runSteps({
      ...shared,
      name,
      option,
      run,
      onStep: (step, pid) => events.publish({ type: 'job.step', actor, pid, message: step.name, detail: { run: id, job: null, command: name } }),
      async steps (tools) {
        const before = () => [...active.values()].find((other) => other.order.hasSteps && other.id < id)
        if (before()) tools.tell(`waiting for the end of run ${before()?.id}`)
        while (before()) await tools.pause(LOOK_EVERY_MS)
        return await steps(tools)
      }
    }))
  }

  /** @param {Order} order @returns {Active} */
  function startRun (order) {
    const { job, command, attached = null } = order
    const { release, place } = placeNow()
    return beginRun(order, release.id, (shared, id, name) => {
      if (attached) return attachCommand({ name, identity: attached })
      return run({ ...shared, name, command, cwd: place.cwd, env: { ...place.env, CLUSTERDECK_JOB: job ?? undefined, CLUSTERDECK_RUN: String(id) } })
    })
  }

  /**
   * @param {Order} order @param {string | null} release  that it runs in
   * @param {(shared: Shared, id: number, name: string) => Active['process']} begin @returns {Active}
   */
  function beginRun (order, release, begin) {
    const { job, command, actor, dueAt, attached = null } = order
    // Nothing else is published before it has begun.
    const id = events.lastId + 1
    const shownCommand = job === null ? withoutUrlSecrets([command].flat().join(' ')).slice(0, MAX_COMMAND_CHARS) : null
    const name = job ?? String(shownCommand).slice(0, MAX_NAME_CHARS)
    const log = logs.open(job ?? COMMAND_LOG, `--- run ${id} of ${name}, ${new Date(now()).toISOString()}, ${release === null ? '' : `release ${release}, `}by ${actor}`)
    const entry = follow({ id, order, log, output: outputFor(id) }, (shared) => begin(shared, id, name), {
      id, job, command: shownCommand, state: 'running', cause: null, actor, release, rollout: null, pid: null, dueAt, startedAt: new Date(now()).toISOString(), finishedAt: null, durationMs: null, code: null, signal: null, reason: null, acknowledgedBy: null, hasTerminal: attached !== null
    })
    const { pid } = entry.view
    if (pid !== null && attached === null) children.add(pid)
    kept.keep(id, entry.process.handles)
    events.publish({ type: 'job.started', actor, release, pid, message: name, detail: { job, command: shownCommand, dueAt, ...(attached && { hasTerminal: true }) } })
    return entry
  }

  /**
   * @param {Pick<Active, 'id' | 'order' | 'log' | 'output'>} parts
   * @param {(shared: Shared) => Active['process']} begin
   * @param {Run} view @returns {Active}
   */
  function follow ({ id, order, log, output }, begin, view) {
    const { job, timeoutMs } = order
    const process = begin({
      option: `jobs.${job}.timeoutMs`,
      timeoutMs,
      maxOutputChars: MAX_OUTPUT_CHARS,
      onOutput (stream, written) {
        const text = hide(written)
        output.add(stream, text)
        log.write(text)
      },
      onExited: (pid) => children.delete(pid)
    })
    /** @type {Active} */
    const entry = {
      id,
      order,
      process,
      log,
      output,
      endedFor: null,
      view: { ...view, pid: process.identity?.pid ?? null },
      done: process.ended.then((end) => finishRun(entry, end))
    }
    active.set(id, entry)
    return entry
  }

  /** @param {Active} entry @param {string} cause @param {string} why @param {number} [graceMs] */
  function endRun (entry, cause, why, graceMs = GRACE_MS) {
    entry.endedFor ??= cause
    entry.process.end(why, { graceMs })
  }

  /** The runs that another master, or the next part of this one, can go on with. */
  function goingOn () {
    return [...active.values()].filter(({ endedFor, order, process }) => endedFor === null && (order.attached || process.handles.stdout !== null))
  }

  /** @param {Active} entry that goes on without us */
  function leaveRun (entry) {
    left.add(entry)
    entry.log.leave()
  }

  /** @param {Active} entry @param {End} end */
  function finishRun ({ id, order: { job, actor, dueAt, attached }, view, endedFor, process: { name }, log, output: own }, { passed, code, signal, durationMs, timedOut, reason, output, cause: why, made }) {
    log.close()
    active.delete(id)
    kept.drop(id)
    if (dueAt === null) keepForAWhile(id, own)
    else own.end()
    const type = passed ? 'job.succeeded' : endedFor !== null && !timedOut ? 'job.interrupted' : job === null ? 'job.command-failed' : 'job.failed'
    const cause = passed ? null : timedOut ? 'timed-out' : endedFor ?? why ?? null
    const message = reason ?? `${name} took ${durationText(durationMs)}`
    const detail = { run: id, job, command: view.command, durationMs, ...(made && { rollout: made.rollout }), ...(output !== '' && { output: output.slice(-MAX_TOLD_CHARS) }) }
    if (!attached) keepOutput(id, job, hide(output))
    events.publish({ type, cause, actor, release: made?.release ?? view.release, pid: view.pid, code, signal, message, detail })
    if (job !== null) startWaiting(job)
  }

  /** @param {number} id @param {import('./run-output.js').RunOutput} output */
  function keepForAWhile (id, output) {
    lastOutputs.set(id, output)
    const timer = timers.setTimeout(() => {
      lastOutputs.delete(id)
      output.end()
    }, KEPT_AFTER_MS)
    timer?.unref?.()
  }

  /** @param {number} id  of a run that has begun, here or with the master before */
  function outputFor (id) {
    return createRunOutput({ maxChars: MAX_OUTPUT_CHARS, file: path.join(outputFolder, String(id)) })
  }

  /** @param {number} id @param {string | null} job @param {string} output */
  function keepOutput (id, job, output) {
    try {
      store.keepOutput(id, job, readableText(output))
    } catch {
      // The history says itself that it cannot be written; the log of the job has the output.
    }
  }

  /** No other master takes over. */
  function runPostponed () {
    const times = [...postponed]
    postponed.clear()
    for (const name of [...waiting.keys()]) startWaiting(name)
    for (const [name, at] of times) if (Object.hasOwn(jobs, name)) runDue(name, at)
  }

  /** @param {string} name */
  function startWaiting (name) {
    const next = waiting.get(name)
    if (!next || isClosed || current().isUpgrading || !Object.hasOwn(jobs, name) || busyRun(name) !== null) return
    waiting.delete(name)
    const run = startJob(name, next)
    next.onStarted?.(run)
  }

  /** @param {LeftRun[]} runs @param {'upgrade' | 'master-lost'} cause */
  function takeLeft (runs, cause) {
    kept.dropOthers(new Set(runs.map(({ run }) => run)))
    for (const run of runs) {
      if (goOn(run, cause)) continue
      kept.drop(run.run)
      if (endLeftGroup(run, GRACE_MS)) waitForEnd(run)
      tellLost({ run: run.run, job: run.job, name: run.name, isAlive: ending.has(run) })
    }
    const known = new Set(runs.map(({ run }) => run))
    for (const { id, job, command } of listOrNone(store.unfinished)) {
      if (!known.has(id)) tellLost({ run: id, job, name: job ?? String(command), isAlive: false })
    }
    for (const name of namesIn(outputFolder)) if (!active.has(Number(name))) removeOutput(path.join(outputFolder, name))
  }

  /**
   * What it writes has waited with the keeper.
   * @param {LeftRun} run @param {'upgrade' | 'master-lost'} cause @returns {boolean} false: nobody can read what it writes
   */
  function goOn ({ run: id, job, name, timeoutMs, hasTerminal, ...identity }, cause) {
    const handles = kept.take(id)
    const view = orNone(() => store.find(id))
    if ((hasTerminal ? !isAlive(identity) : handles === null) || !view || view.state !== 'running') return false
    const { output: _, ...shown } = view
    const output = outputFor(id)
    const log = logs.open(job ?? COMMAND_LOG, null)
    const order = { job, command: '', timeoutMs, actor: view.actor, dueAt: view.dueAt, attached: hasTerminal ? identity : null }
    const ageMs = Math.max(0, now() - Date.parse(view.startedAt))
    if (handles) children.add(identity.pid)
    follow({ id, order, log, output }, (shared) => {
      if (handles === null) return attachCommand({ name, identity, ageMs })
      const findExit = () => keeper.exits.findLast(({ pid }) => pid === identity.pid) ?? null
      return adopt({ identity, handles, findExit }, { ...shared, name, ageMs, before: output.text() })
    }, shown)
    events.publish({ type: 'job.continued', cause, actor: 'system', release: view.release, pid: identity.pid, message: name, detail: { job, run: id, command: view.command } })
    return true
  }

  /** @param {LeftRun} run which has been told to end */
  async function waitForEnd (run) {
    ending.add(run)
    const until = performance.now() + LEFT_PATIENCE_MS
    while (isGroupAlive(run.pid) && performance.now() < until) await wait(LOOK_EVERY_MS, undefined, { ref: false })
    ending.delete(run)
    if (run.job !== null) startWaiting(run.job)
  }

  /** @param {{ run: number, job: string | null, name: string, isAlive: boolean }} lost */
  function tellLost ({ run, job, name, isAlive }) {
    const output = outputFor(run).text()
    if (output !== '') keepOutput(run, job, output)
    const message = `${name} was interrupted: its master has died${isAlive ? ', and the run is ended' : ''}`
    events.publish({ type: 'job.interrupted', cause: 'master-lost', actor: 'system', message, detail: { run, job } })
  }

  /** @param {import('../events/stream.js').DeckEvent} event */
  function readAgain ({ type, detail }) {
    if (type === 'master.upgrade-failed') runPostponed()
    if (isClosed || type !== 'rollout.succeeded' || detail?.kind !== 'deploy') return
    jobs = configured()
    for (const name of waiting.keys()) if (!Object.hasOwn(jobs, name)) waiting.delete(name)
    timetable.plan(jobs)
  }
}

/** @template T @param {() => T[]} read @returns {T[]} */
function listOrNone (read) {
  return orNone(read) ?? []
}
