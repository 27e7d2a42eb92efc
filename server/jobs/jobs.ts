import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { attachCommand } from '../cluster/command-attached.ts'
import { adoptCommand } from '../cluster/command-left.ts'
import { endLeftGroup, runCommand, type CommandEnd, type CommandRun } from '../cluster/command-run.ts'
import { placeOfRelease } from '../cluster/command-place.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError, isErrorCode } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'
import { createJobLogs, type JobLog } from './job-log.ts'
import { createKeptStreams, type Keeper } from './kept-streams.ts'
import { orNone } from './or-none.ts'
import { createOutcomes } from './outcomes.ts'
import { createRunOutput, removeOutput, type RunOutput } from './run-output.ts'
import { lend, type Loan } from '../system/loan.ts'
import { runSteps, type Made, type Steps } from './steps-run.ts'
import { readableText } from '../system/one-line.ts'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import { namesIn } from '../system/proc.ts'
import { isGroupAlive } from '../system/process-group.ts'
import { isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import { createTimetable, type Due } from '../system/timetable.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'
import type { Run } from '../../db/job-runs.ts'
import type { Release } from '../lifecycle/state.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { History } from '../../db/history.ts'
import type { Exit } from '../keeper/link.ts'

export type Jobs = ReturnType<typeof createJobs>
export type JobConfigs = Readonly<Record<string, JobConfig>>
export type JobConfig = {
  /** without it, the job runs only when somebody asks */
  cron?: string,
  /** one text is for the shell */
  command: string | readonly string[],
  /** what happens if its time comes while it still runs */
  overlap: 'skip' | 'queue' | 'replace',
  timeoutMs: number,
  timeZone?: string
}
/**
 * What is to be run. `job`: null: a command that somebody has typed; `dueAt`: ISO 8601; null: somebody has asked for
 * it; `attached`: it runs already, in a terminal of theirs; `hasSteps`: it is of several commands; `git`: what they
 * build, as somebody has called the commit.
 */
type Order = { job: string | null, command: JobConfig['command'], timeoutMs: number, actor: string,
  dueAt: string | null, attached?: ProcessIdentity | null, hasSteps?: true, git?: string }
type StepsOrder = { name: string, git?: string, option: string, timeoutMs: number, steps: Steps, actor: string }
type Waiting = { actor: string, dueAt: string | null, onStarted: ((run: Run) => void) | null }
type Process =
  & Omit<CommandRun, 'ended'>
  & { ended: Promise<End>, tellEnd?: (exit: { code: number | null, signal: string | null }) => void }
/** `cause`, `made`: of one with steps */
type End = CommandEnd & { cause?: string, made?: Made }
type Shared = { option: string, timeoutMs: number, maxOutputChars: number,
  onOutput: (stream: 'stdout' | 'stderr', text: string) => void, onExited: (pid: number) => void }
type Active = { id: number, order: Order, process: Process, log: JobLog, output: RunOutput, endedFor: string | null,
  done: Promise<void>, view: Run }
/** of the master before */
type LeftRun = ProcessIdentity & { run: number, job: string | null, name: string, timeoutMs: number,
  hasTerminal: boolean }
export type JobsMemory = { runs: LeftRun[], due: Record<string, Due> }

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
/**
 * What a dead master has left running is killed after the grace. It is waited for this long: a process that the kernel
 * does not let go would never end.
 */
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

/** Runs the configured jobs at their times, and what else an operator wants to run beside the workers. */
export function createJobs (
  { jobs: first, current, release: findRelease, environment, inherited, cwd, events, store, dataFolder, logFolder,
    logLimits, onLogError, hide = (text) => text, nextRun, keeper, configured = () => first, run = runCommand,
    adopt = adoptCommand, now = Date.now, timers = globalThis }: {
      /** as configured at the start */
      jobs: JobConfigs,
      /**
       * state of the cluster; `release`: the last one that was deployed; `secretsProblem`: why its variables are not
       * known
       */
      current: () => { release: string, isStopping: boolean, isUpgrading: boolean, secretsProblem?: string | null },
      release: (id: string) => Release | undefined,
      /** of the workers of a release, over what is inherited */
      environment: (id: string) => Record<string, string | undefined>,
      /** of the shell that the app is from */
      inherited: (id: string) => Record<string, string | undefined>,
      /** of a release that has none */
      cwd: string,
      events: EventStream,
      store: History['jobRuns'],
      dataFolder: string,
      logFolder: string,
      logLimits: () => { maxBytes: number, maxFiles: number },
      onLogError?: (reason: string) => void,
      /** takes out of what runs write what nobody is to read */
      hide?: (text: string) => string,
      nextRun: (cron: string, after: Date, timeZone: string | undefined) => Date | null,
      keeper:
        & Keeper
        & { exits: readonly { pid: number, code: number | null, signal: string | null }[] },
      /** by the configuration that was read last, which counts once a deploy has succeeded */
      configured?: () => JobConfigs,
      run?: (order: Parameters<typeof runCommand>[0]) => CommandRun,
      adopt?: typeof adoptCommand,
      /** wall clock, ms */
      now?: () => number,
      timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
    }
) {
  let jobs = first
  /** by id */
  const active: Map<number, Active> = new Map()
  /** Output of runs that have just ended. */
  const lastOutputs: Map<number, RunOutput> = new Map()
  /** by job */
  const waiting: Map<string, Waiting> = new Map()
  const paused: Map<string, { at: string, actor: string }> = new Map()
  /** Runs of the last master that were told to end. */
  const ending: Set<LeftRun> = new Set()
  /** Runs that the next master goes on with. */
  const left: Set<Active> = new Set()
  /** Processes whose exit Node still waits for. */
  const children: Set<number> = new Set()
  /** Times that have come while another master was about to take over, by job. */
  const postponed: Map<string, Date> = new Map()
  /** Due times that the master before has left, which wait until the secrets are known. */
  let missedDue: JobsMemory['due'] = {}
  /** Variables that nobody has taken yet. */
  const loans: Set<Loan> = new Set()
  let isClosed = false
  const kept = createKeptStreams(keeper)
  const outputFolder = path.join(dataFolder, 'run-output')
  const logs = createJobLogs({ folder: path.join(logFolder, 'jobs'), limits: logLimits, onError: onLogError })
  const timetable = createTimetable({ nextRun, onDue: runDue, onSetBack: tellSetBack, now, timers })
  /** What a time does that comes while the job still runs. */
  const overlaps = { skip: skipRun, queue: queueRun, replace: replaceRun }
  const outcomes = createOutcomes({ store, names: () => Object.keys(jobs).sort(),
    isScheduled: (name) => jobs[name].cron !== undefined })
  const stopNoting = events.subscribe(outcomes.note)
  // Events that follow from another event are published after it.
  const unsubscribe = events.subscribe((event) => {
    Promise.resolve(event).then(readAgain)
  })

  return {
    /**
     * Begins to run them. `left`: of the master before: its runs go on here, and what it has missed is run once;
     * `secrets`: what a new run has to wait for.
     */
    start (
      { runs, due, isUpgrade = false, secrets = null }: JobsMemory & { isUpgrade?: boolean,
        secrets?: Promise<unknown> | null }
    ) {
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

    /** @throws {DeckError} not-found */
    get (name: string) {
      mustFind(name)
      return toView(name)
    },

    /** `job`: null: those of no job; undefined: all @throws {DeckError} not-found */
    runs (job: string | null | undefined, query: { limit?: number, cursor?: string | null }) {
      const page = store.page({ job, ...query })
      // One that is no longer configured may have runs.
      if (page.items.length === 0 && typeof job === 'string') mustFind(job)
      return page
    },

    /** Returns `output`: the last part of it; null: no longer kept @throws {DeckError} not-found */
    run (id: number): Run & { output: string | null } {
      const running = active.get(id)
      if (running) return { ...running.view, output: readableText(running.output.text()) }
      const run = store.find(id)
      if (!run) throw new DeckError('not-found', `Run ${id} does not exist, or is no longer kept`)
      return run
    },

    /** Null: it has ended a while ago */
    outputOf: (id: number): Pick<RunOutput, 'since'> | null => active.get(id)?.output ?? lastOutputs.get(id) ?? null,

    /**
     * Runs a job now. Returns once it has begun.
     * @throws {DeckError} not-found, job-running, stopping, upgrade-running, secrets-failed
     */
    async runNow (name: string, { actor }: { actor: string }): Promise<Run> {
      const { overlap } = mustFind(name)
      checkRunning()
      const busy = busyRun(name)
      if (busy === null) return startJob(name, { actor, dueAt: null })
      if (overlap !== 'replace')
        throw new DeckError('job-running', `${name} is running (run ${busy})`, { details: { run: busy } })
      return await new Promise((resolve) => replaceRun(name, { actor, dueAt: null, onStarted: resolve }))
    },

    /**
     * Runs a command in the folder of the current release, with the variables of its workers.
     * @param order `process`: it runs there already, in a terminal of whoever has started it
     * @throws {DeckError} stopping, upgrade-running, secrets-failed, invalid-body
     */
    runCommand (
      { command, actor, process: attached = null }: { command: readonly string[], actor: string,
        process?: ProcessIdentity | null }
    ): Run {
      checkRunning()
      if (attached && (attached.startTime === null || !isAlive(attached))) {
        throw new DeckError('invalid-body',
          `process: expected one that runs on this machine, received ${attached.pid} since ${
            JSON.stringify(attached.startTime)
          }`)
      }
      return startRun({ job: null, command, timeoutMs: NO_TIMEOUT_MS, actor, dueAt: null, attached }).view
    },

    /**
     * Runs several commands as one, after those that were begun before in this way.
     * @throws {DeckError} stopping, upgrade-running, secrets-failed
     */
    runSteps: (order: StepsOrder): Run => beginSteps(order).view,

    /** The newest run that builds a commit. Returns null: none does. */
    building (): { run: number, git: string, startedAt: string, actor: string } | null {
      const newest = [...active.values()].findLast(({ order }) => order.git !== undefined)
      return newest
        ? { run: newest.id, git: String(newest.order.git), startedAt: newest.view.startedAt, actor: newest.order.actor }
        : null
    },

    /**
     * The same, for somebody who waits for it.
     * @throws {DeckError} as runSteps(), and what it has failed of; job-failed: it was ended
     */
    async runToEnd (order: StepsOrder) {
      const { passed, reason, cause } = await beginSteps(order).process.ended
      if (!passed) throw new DeckError(isErrorCode(cause) ? cause : 'job-failed', String(reason))
    },

    /**
     * Where a command belongs that somebody runs in a terminal of theirs.
     * @returns `variables`: the socket that gives them, for take()
     * @throws {DeckError} stopping, upgrade-running, secrets-failed
     */
    async place (): Promise<{ release: string, cwd: string, variables: string }> {
      checkRunning()
      const { release, place } = placeNow()
      const loan = await lend(JSON.stringify({ ...place.env, [SHELL_VARIABLE]: undefined }), { below: dataFolder })
      loans.add(loan)
      loan.over.then(() => loans.delete(loan))
      return { release: release.id, cwd: place.cwd, variables: loan.path }
    },

    /**
     * Whoever has run a command in a terminal of theirs tells how it has ended.
     * @throws {DeckError} not-found, run-ended, not-possible
     */
    tellEnd (id: number, exit: { code: number | null, signal: string | null }): Run {
      const running = active.get(id)
      if (!running) {
        this.run(id)
        throw new DeckError('run-ended', `Run ${id} has ended`)
      }
      if (!running.process.tellEnd)
        throw new DeckError('not-possible', `Run ${id} has no terminal of its own: the master sees how it ends`)
      running.process.tellEnd(exit)
      return running.view
    },

    /** `isForced`: without a grace @throws {DeckError} not-found, run-ended */
    end (id: number, { isForced = false, actor }: { isForced?: boolean, actor: string }): Run {
      const running = active.get(id)
      if (!running) {
        this.run(id)
        throw new DeckError('run-ended', `Run ${id} has ended`)
      }
      endRun(running, 'operator', `was ended by ${actor}`, isForced ? 0 : GRACE_MS)
      return running.view
    },

    /** @throws {DeckError} not-found */
    pause (name: string, actor: string) {
      mustFind(name)
      if (!paused.has(name)) {
        const { at } = events.publish({ type: 'job.paused', actor, message: name, detail: { job: name } })
        paused.set(name, { at, actor })
      }
      return toView(name)
    },

    /** @throws {DeckError} not-found */
    resume (name: string, actor: string) {
      mustFind(name)
      if (paused.delete(name)) events.publish({ type: 'job.resumed', actor, message: name, detail: { job: name } })
      return toView(name)
    },

    /**
     * From now on its failure is known.
     * @throws {DeckError} not-found
     */
    acknowledge (name: string, actor: string) {
      mustFind(name)
      const failure = outcomes.failureOf(name)
      if (failure === null)
        throw new DeckError('not-found',
          `Job ${name} has not failed since its last good run, or that is acknowledged already`)
      events.publish({ type: 'job.acknowledged', actor, message: name, detail: { job: name, run: failure.run } })
      return toView(name)
    },

    /** Tells whether it is a run whose exit Node waits for */
    isChild: (pid: number): boolean =>
      children.has(pid) || [...active.values()].some(({ process }) => process.identity?.pid === pid),

    /** What the next master needs if this one dies. */
    memory: (): JobsMemory => ({
      runs: [...active.values()].flatMap(({ id, order: { job, timeoutMs, attached }, process: { name, identity } }) => {
        return identity ? [{ run: id, job, name, timeoutMs, hasTerminal: Boolean(attached), ...identity }] : []
      }),
      due: { ...missedDue, ...timetable.memory(), ...dueAgain() }
    }),

    /** The releases that runs are of: their folders stay until then. */
    releasesInUse: (): string[] => [...active.values()].flatMap(({ view: { release } }) => release ?? []),

    /** Another master goes on with the runs. Those that cannot be handed over are ended. Returns when they are gone. */
    async handOver (): Promise<void> {
      for (const each of goingOn()) {
        each.process.leave()
        leaveRun(each)
      }
      await this.close({ cause: 'upgrade', why: 'as the master was upgraded' })
    },

    /**
     * The runs go on for whoever opens the app anew in this process. Whatever is left is to be closed. Returns how
     * those end that are its children.
     */
    letGo (): Promise<Exit>[] {
      return goingOn().flatMap((each) => {
        const exit = each.process.letGo()
        if (exit || each.order.attached) leaveRun(each)
        return exit ?? []
      })
    },

    /** Starts no more runs, and ends those that run. `why`: they are ended. Returns when they are gone. */
    async close (
      { graceMs = GRACE_MS, cause = 'stopping', why = 'as the master was stopping' }: { graceMs?: number,
        cause?: 'stopping' | 'upgrade', why?: string } = {}
    ): Promise<void> {
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

  function toView (name: string) {
    const { cron = null, overlap, timeoutMs, timeZone = null } = jobs[name]
    const [last] = store.page({ job: name, limit: 1 }).items
    return { name, cron, timeZone, overlap, timeoutMs, nextAt: paused.has(name) ? null : timetable.nextAt(name),
      paused: paused.get(name) ?? null, isWaiting: waiting.has(name), running: busyRun(name),
      isFailing: jobs[name].cron !== undefined && outcomes.failureOf(name) !== null, last: last ?? null }
  }

  /** @throws {DeckError} not-found */
  function mustFind (name: string): JobConfig {
    if (Object.hasOwn(jobs, name)) return jobs[name]
    const names = Object.keys(jobs)
    throw new DeckError('not-found',
      names.length === 0
        ? 'There are no jobs (option jobs)'
        : `There is no job ${JSON.stringify(name)}${didYouMean(name, names)}`)
  }

  /** @throws {DeckError} stopping, upgrade-running, secrets-failed */
  function checkRunning () {
    const { isStopping, isUpgrading, secretsProblem = null } = current()
    if (isClosed || isStopping) throw new DeckError('stopping', 'The master is stopping')
    if (secretsProblem !== null) throw new DeckError('secrets-failed', secretsProblem)
    if (isUpgrading)
      throw new DeckError('upgrade-running',
        'An upgrade is running: the next master starts jobs and commands, in a moment')
  }

  /** What the next master is to run at once: what waits here, and what has come during the upgrade. */
  function dueAgain (): JobsMemory['due'] {
    const times = [...waiting].flatMap(([name, { dueAt }]) => dueAt === null ? [] : [{ name, at: dueAt }])
    const all = [...times, ...Array.from(postponed, ([name, at]) => ({ name, at: at.toISOString() }))]
    return Object.fromEntries(all.map(({ name, at }) => [name, { cron: String(jobs[name].cron), at }]))
  }

  /** @returns the run that has not ended */
  function busyRun (name: string): number | null {
    const own = [...active.values()].find(({ order }) => order.job === name)?.id
    return own ?? [...ending].find(({ job }) => job === name)?.run ?? null
  }

  function runDue (name: string, at: Date) {
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

  /**
   * What has come meanwhile runs once; that it is late, and how many times that one run stands for, nobody would see
   * otherwise.
   */
  function tellMissed (name: string, at: Date) {
    const lateMs = now() - at.getTime()
    if (lateMs < LATE_AFTER_MS) return
    const { cron, timeZone } = jobs[name]
    let count = 0
    for (let next = nextRun(String(cron), at, timeZone); next !== null && next.getTime() <= now() && count < MAX_MISSED;
      next = nextRun(String(cron), next, timeZone)) count++
    events.publish({ type: 'job.missed', actor: 'system', message: name,
      detail: { job: name, dueAt: at.toISOString(), lateMs, missed: count } })
  }

  function tellSetBack (names: string[], backMs: number) {
    events.publish({ type: 'clock.set-back', actor: 'system', message: `jobs ${names.join(', ')}`, detail: { backMs } })
  }

  function skipRun (name: string, { actor, dueAt }: Waiting, busy: number, why: string = '') {
    events.publish({ type: 'job.skipped', actor, message: `${name} was skipped: run ${busy} has not ended${why}`,
      detail: { job: name, dueAt, run: busy } })
  }

  function queueRun (name: string, order: Waiting, busy: number) {
    if (waiting.has(name)) skipRun(name, order, busy, ', and the next one waits already')
    else waiting.set(name, order)
  }

  function replaceRun (name: string, order: Waiting) {
    const before = waiting.get(name)
    waiting.set(name, { ...order, onStarted (run) {
      before?.onStarted?.(run)
      order.onStarted?.(run)
    } })
    for (const each of active.values())
      if (each.order.job === name) endRun(each, 'replaced', 'was ended, as the next run begins')
  }

  function startJob (name: string, { actor, dueAt }: { actor: string, dueAt: string | null }) {
    const { command, timeoutMs } = jobs[name]
    return startRun({ job: name, command, timeoutMs, actor, dueAt }).view
  }

  function placeNow () {
    const release = findRelease(current().release) as Release
    return { release,
      place: placeOfRelease(release, { own: environment(release.id), inherited: inherited(release.id), cwd }) }
  }

  /** @throws {DeckError} stopping, upgrade-running, secrets-failed */
  function beginSteps ({ name, git, option, timeoutMs, steps, actor }: StepsOrder): Active {
    checkRunning()
    return beginRun({ job: null, command: name, timeoutMs, actor, dueAt: null, hasSteps: true, git }, null,
      (shared, id) =>
        runSteps({ ...shared, name, option, run, onStep: (step, pid) =>
          events.publish({ type: 'job.step', actor, pid, message: step.name,
            detail: { run: id, job: null, command: name } }), async steps (tools) {
          const before = () =>
            [...active.values()].find((other) => other.order.hasSteps && other.id < id)
          if (before()) tools.tell(`waiting for the end of run ${before()?.id}`)
          while (before()) await tools.pause(LOOK_EVERY_MS)
          return await steps(tools)
        } }))
  }

  function startRun (order: Order): Active {
    const { job, command, attached = null } = order
    const { release, place } = placeNow()
    return beginRun(order, release.id, (shared, id, name) => {
      if (attached) return attachCommand({ name, identity: attached })
      return run({ ...shared, name, command, cwd: place.cwd,
        env: { ...place.env, CLUSTERDECK_JOB: job ?? undefined, CLUSTERDECK_RUN: String(id) } })
    })
  }

  /** `release`: that it runs in */
  function beginRun (order: Order, release: string | null,
    begin: (shared: Shared, id: number, name: string) => Active['process']): Active
  {
    const { job, command, actor, dueAt, attached = null } = order
    // Nothing else is published before it has begun.
    const id = events.lastId + 1
    const shownCommand = job === null ? withoutUrlSecrets([command].flat().join(' ')).slice(0, MAX_COMMAND_CHARS) : null
    const name = job ?? String(shownCommand).slice(0, MAX_NAME_CHARS)
    const log = logs.open(job ?? COMMAND_LOG,
      `--- run ${id} of ${name}, ${new Date(now()).toISOString()}, ${
        release === null ? '' : `release ${release}, `
      }by ${actor}`)
    const entry = follow({ id, order, log, output: outputFor(id) }, (shared) => begin(shared, id, name), { id, job,
      command: shownCommand, state: 'running', cause: null, actor, release, rollout: null, pid: null, dueAt,
      startedAt: new Date(now()).toISOString(), finishedAt: null, durationMs: null, code: null, signal: null,
      reason: null, acknowledgedBy: null, hasTerminal: attached !== null })
    const { pid } = entry.view
    if (pid !== null && attached === null) children.add(pid)
    kept.keep(id, entry.process.handles)
    events.publish({ type: 'job.started', actor, release, pid, message: name,
      detail: { job, command: shownCommand, dueAt, ...(attached && { hasTerminal: true }) } })
    return entry
  }

  function follow ({ id, order, log, output }: Pick<Active, 'id' | 'order' | 'log' | 'output'>,
    begin: (shared: Shared) => Active['process'], view: Run): Active
  {
    const { job, timeoutMs } = order
    const process = begin({ option: `jobs.${job}.timeoutMs`, timeoutMs, maxOutputChars: MAX_OUTPUT_CHARS,
      onOutput (stream, written) {
        const text = hide(written)
        output.add(stream, text)
        log.write(text)
      }, onExited: (pid) => children.delete(pid) })
    const entry: Active = { id, order, process, log, output, endedFor: null,
      view: { ...view, pid: process.identity?.pid ?? null }, done: process.ended.then((end) => finishRun(entry, end)) }
    active.set(id, entry)
    return entry
  }

  function endRun (entry: Active, cause: string, why: string, graceMs: number = GRACE_MS) {
    entry.endedFor ??= cause
    entry.process.end(why, { graceMs })
  }

  /** The runs that another master, or the next part of this one, can go on with. */
  function goingOn () {
    return [...active.values()].filter(({ endedFor, order, process }) =>
      endedFor === null && (order.attached || process.handles.stdout !== null)
    )
  }

  /** `entry`: that goes on without us */
  function leaveRun (entry: Active) {
    left.add(entry)
    entry.log.leave()
  }

  function finishRun (
    { id, order: { job, actor, dueAt, attached }, view, endedFor, process: { name }, log, output: own }: Active,
    { passed, code, signal, durationMs, timedOut, reason, output, cause: why, made }: End
  ) {
    log.close()
    active.delete(id)
    kept.drop(id)
    if (dueAt === null) keepForAWhile(id, own)
    else own.end()
    const type = passed
      ? 'job.succeeded'
      : endedFor !== null && !timedOut
      ? 'job.interrupted'
      : job === null
      ? 'job.command-failed'
      : 'job.failed'
    const cause = passed ? null : timedOut ? 'timed-out' : endedFor ?? why ?? null
    const message = reason ?? `${name} took ${durationText(durationMs)}`
    const detail = { run: id, job, command: view.command, durationMs, ...(made && { rollout: made.rollout }),
      ...(output !== '' && { output: output.slice(-MAX_TOLD_CHARS) }) }
    if (!attached) keepOutput(id, job, hide(output))
    events.publish({ type, cause, actor, release: made?.release ?? view.release, pid: view.pid, code, signal, message,
      detail })
    if (job !== null) startWaiting(job)
  }

  function keepForAWhile (id: number, output: RunOutput) {
    lastOutputs.set(id, output)
    const timer = timers.setTimeout(() => {
      lastOutputs.delete(id)
      output.end()
    }, KEPT_AFTER_MS)
    timer?.unref?.()
  }

  /** `id`: of a run that has begun, here or with the master before */
  function outputFor (id: number) {
    return createRunOutput({ maxChars: MAX_OUTPUT_CHARS, file: path.join(outputFolder, String(id)) })
  }

  function keepOutput (id: number, job: string | null, output: string) {
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

  function startWaiting (name: string) {
    const next = waiting.get(name)
    if (!next || isClosed || current().isUpgrading || !Object.hasOwn(jobs, name) || busyRun(name) !== null) return
    waiting.delete(name)
    const run = startJob(name, next)
    next.onStarted?.(run)
  }

  function takeLeft (runs: LeftRun[], cause: 'upgrade' | 'master-lost') {
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

  /** What it writes has waited with the keeper. Returns false: nobody can read what it writes. */
  function goOn ({ run: id, job, name, timeoutMs, hasTerminal, ...identity }: LeftRun,
    cause: 'upgrade' | 'master-lost'): boolean
  {
    const handles = kept.take(id)
    const view = orNone(() => store.find(id))
    if ((hasTerminal ? !isAlive(identity) : handles === null) || !view || view.state !== 'running') return false
    const { output: _, ...shown } = view
    const output = outputFor(id)
    const log = logs.open(job ?? COMMAND_LOG, null)
    const order = { job, command: '', timeoutMs, actor: view.actor, dueAt: view.dueAt,
      attached: hasTerminal ? identity : null }
    const ageMs = Math.max(0, now() - Date.parse(view.startedAt))
    if (handles) children.add(identity.pid)
    follow({ id, order, log, output }, (shared) => {
      if (handles === null) return attachCommand({ name, identity, ageMs })
      const findExit = () => keeper.exits.findLast(({ pid }) => pid === identity.pid) ?? null
      return adopt({ identity, handles, findExit }, { ...shared, name, ageMs, before: output.text() })
    }, shown)
    events.publish({ type: 'job.continued', cause, actor: 'system', release: view.release, pid: identity.pid,
      message: name, detail: { job, run: id, command: view.command } })
    return true
  }

  /** `run`: which has been told to end */
  async function waitForEnd (run: LeftRun) {
    ending.add(run)
    const until = performance.now() + LEFT_PATIENCE_MS
    while (isGroupAlive(run.pid) && performance.now() < until) await wait(LOOK_EVERY_MS, undefined, { ref: false })
    ending.delete(run)
    if (run.job !== null) startWaiting(run.job)
  }

  function tellLost ({ run, job, name, isAlive }: { run: number, job: string | null, name: string, isAlive: boolean }) {
    const output = outputFor(run).text()
    if (output !== '') keepOutput(run, job, output)
    const message = `${name} was interrupted: its master has died${isAlive ? ', and the run is ended' : ''}`
    events.publish({ type: 'job.interrupted', cause: 'master-lost', actor: 'system', message, detail: { run, job } })
  }

  function readAgain ({ type, detail }: DeckEvent) {
    if (type === 'master.upgrade-failed') runPostponed()
    if (isClosed || type !== 'rollout.succeeded' || detail?.kind !== 'deploy') return
    jobs = configured()
    for (const name of waiting.keys()) if (!Object.hasOwn(jobs, name)) waiting.delete(name)
    timetable.plan(jobs)
  }
}

function listOrNone<T> (read: () => T[]): T[] {
  return orNone(read) ?? []
}
