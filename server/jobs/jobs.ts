import { setTimeout as wait } from 'node:timers/promises'
import { attempt, DeckError } from '../errors.ts'
import { readableText } from '../system/one-line.ts'
import { endLeftGroup, type runCommand, type CommandRun } from '../cluster/command-run.ts'
import { isGroupAlive } from '../system/process-group.ts'
import { createCommands } from './commands.ts'
import { createOutcomes } from './outcomes.ts'
import { createRuns, GRACE_MS, type Active, type LeftRun, type Runs } from './runs.ts'
import { createSchedule, type Dues } from './schedule.ts'
import type { PlaceOf } from '../cluster/command-place.ts'
import type { Run } from '../../db/job-runs.ts'
import type { EventStream } from '../events/stream.ts'
import type { History } from '../../db/history.ts'
import type { Keeper } from './kept-streams.ts'

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
/** What is around the jobs of an app. */
export type JobServices = {
  /** as configured at the start */
  jobs: JobConfigs,
  /** by the configuration that was read last, which counts once a deploy has succeeded */
  configured: () => JobConfigs,
  /** state of the cluster; `secretsProblem`: why the variables of its release are not known */
  current: () => { isStopping: boolean, isUpgrading: boolean, secretsProblem?: string | null },
  /** of the last release that was deployed */
  place: () => ReturnType<PlaceOf>,
  events: EventStream,
  store: History['jobRuns'],
  dataFolder: string,
  logFolder: string,
  logLimits: () => { maxBytes: number, maxFiles: number },
  onLogError?: (reason: string) => void,
  /** takes out of what runs write what nobody is to read */
  hide: (text: string) => string,
  nextRun: (cron: string, after: Date, timeZone: string | undefined) => Date | null,
  keeper:
    & Keeper
    & { exits: readonly { pid: number, code: number | null, signal: string | null }[] },
  run: (order: Parameters<typeof runCommand>[0]) => CommandRun,
  /** wall clock, ms */
  now: () => number,
  timers: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
}
export type JobsMemory = { runs: LeftRun[], due: Dues }

/**
 * What a dead master has left running is killed after the grace. It is waited for this long: a process that the kernel
 * does not let go would never end.
 */
const PATIENCE_MS = GRACE_MS + 1000

const LOOK_EVERY_MS = 50

/** Runs the configured jobs at their times, and what else an operator wants to run beside the workers. */
export function createJobs (services: JobServices) {
  const { events, store } = services
  const runs = createRuns(services, (job) => schedule.startWaiting(job))
  const leftRuns = createLeftRuns(services, runs, (job) => schedule.startWaiting(job))
  const { startRun, checkRunning, stopLending, ...commands } = createCommands(services, runs)
  const schedule = createSchedule(services, { check: checkRunning,
    start: (job, { command, timeoutMs }, by) => startRun({ job, command, timeoutMs, ...by }).view,
    runOf: (job) => runs.all().find(({ order }) => order.job === job)?.id ?? leftRuns.runOf(job), replace (job) {
    for (const each of runs.all())
      if (each.order.job === job) runs.end(each, 'replaced', 'was ended, as the next run begins')
  } })
  const outcomes = createOutcomes({ store, names: schedule.names, isScheduled: schedule.isScheduled })
  const stopNoting = events.subscribe(outcomes.note)

  return {
    ...commands,

    /**
     * Begins to run them. `left`: of the master before: its runs go on here, and what it has missed is run once;
     * `secrets`: what a new run has to wait for.
     */
    start (
      { runs: left, due, isUpgrade = false, secrets = null }: JobsMemory & { isUpgrade?: boolean,
        secrets?: Promise<unknown> | null }
    ) {
      leftRuns.take(left, isUpgrade ? 'upgrade' : 'master-lost')
      schedule.begin(due, secrets)
    },

    /** Asks no history, as a list does: every page has a link to the jobs where there are some. */
    isEmpty: () => schedule.names().length === 0,

    failing: outcomes.failing,

    metrics: outcomes.metrics,

    list: () => schedule.names().map(toView),

    /** @throws {DeckError} not-found */
    get (name: string) {
      schedule.find(name)
      return toView(name)
    },

    /** `job`: null: those of no job; undefined: all @throws {DeckError} not-found */
    runs (job: string | null | undefined, query: { limit?: number, cursor?: string | null }) {
      const page = store.page({ job, ...query })
      // One that is no longer configured may have runs.
      if (page.items.length === 0 && typeof job === 'string') schedule.find(job)
      return page
    },

    /** Returns `output`: the last part of it; null: no longer kept @throws {DeckError} not-found */
    run: findRun,

    outputOf: runs.outputOf,

    runNow: schedule.runNow,

    /**
     * Whoever has run a command in a terminal of theirs tells how it has ended.
     * @throws {DeckError} not-found, run-ended, not-possible
     */
    tellEnd (id: number, exit: { code: number | null, signal: string | null }): Run {
      const running = mustRun(id)
      if (!running.process.tellEnd)
        throw new DeckError('not-possible', `Run ${id} has no terminal of its own: the master sees how it ends`)
      running.process.tellEnd(exit)
      return running.view
    },

    /** `isForced`: without a grace @throws {DeckError} not-found, run-ended */
    end (id: number, { isForced = false, actor }: { isForced?: boolean, actor: string }): Run {
      const running = mustRun(id)
      runs.end(running, 'operator', `was ended by ${actor}`, isForced ? 0 : GRACE_MS)
      return running.view
    },

    /** @throws {DeckError} not-found */
    pause (name: string, actor: string) {
      schedule.pause(name, actor)
      return toView(name)
    },

    /** @throws {DeckError} not-found */
    resume (name: string, actor: string) {
      schedule.resume(name, actor)
      return toView(name)
    },

    /**
     * From now on its failure is known.
     * @throws {DeckError} not-found
     */
    acknowledge (name: string, actor: string) {
      schedule.find(name)
      const failure = outcomes.failureOf(name)
      if (failure === null)
        throw new DeckError('not-found',
          `Job ${name} has not failed since its last good run, or that is acknowledged already`)
      events.publish({ type: 'job.acknowledged', actor, message: name, detail: { job: name, run: failure.run } })
      return toView(name)
    },

    isChild: runs.isChild,

    memory: (): JobsMemory => ({ runs: runs.memory(), due: schedule.memory() }),

    /** The releases that runs are of: their folders stay until then. */
    releasesInUse: (): string[] => runs.all().flatMap(({ view: { release } }) => release ?? []),

    /** Another master goes on with the runs. Those that cannot be handed over are ended. Returns when they are gone. */
    async handOver (): Promise<void> {
      runs.handOver()
      await this.close({ cause: 'upgrade', why: 'as the master was upgraded' })
    },

    /**
     * The runs go on for whoever opens the app anew in this process. Whatever is left is to be closed. Returns how
     * those end that are its children.
     */
    letGo: runs.letGo,

    /** Starts no more runs, and ends those that run. `why`: they are ended. Returns when they are gone. */
    async close (
      { graceMs = GRACE_MS, cause = 'stopping', why = 'as the master was stopping' }: { graceMs?: number,
        cause?: 'stopping' | 'upgrade', why?: string } = {}
    ): Promise<void> {
      schedule.close()
      stopLending()
      await runs.close(cause, `was ended, ${why}`, graceMs)
      stopNoting()
    }
  }

  function toView (name: string) {
    const shown = schedule.show(name)
    const [last] = store.page({ job: name, limit: 1 }).items
    return { ...shown, isFailing: shown.cron !== null && outcomes.failureOf(name) !== null, last: last ?? null }
  }

  function findRun (id: number): Run & { output: string | null } {
    const running = runs.find(id)
    if (running) return { ...running.view, output: readableText(running.output.text()) }
    const run = store.find(id)
    if (!run) throw new DeckError('not-found', `Run ${id} does not exist, or is no longer kept`)
    return run
  }

  /** @throws {DeckError} not-found, run-ended */
  function mustRun (id: number): Active {
    const running = runs.find(id)
    if (running) return running
    findRun(id)
    throw new DeckError('run-ended', `Run ${id} has ended`)
  }
}

/** Runs of the master before: those that can go on here, and those that are to end. `onOver`: the run of a job has. */
function createLeftRuns ({ store }: JobServices, runs: Runs, onOver: (job: string) => void) {
  /** They were told to end. */
  const ending: Set<LeftRun> = new Set()

  return { runOf: (name: string): number | null => [...ending].find(({ job }) => job === name)?.run ?? null,
    take (left: LeftRun[], cause: 'upgrade' | 'master-lost') {
      for (const run of left) {
        if (runs.goOn(run, cause)) continue
        const isAlive = endLeftGroup(run, GRACE_MS)
        if (isAlive) waitForEnd(run)
        runs.tellLost({ ...run, isAlive })
      }
      const known = new Set(left.map(({ run }) => run))
      for (const { id, job, command } of attempt(store.unfinished) ?? []) {
        if (!known.has(id)) runs.tellLost({ run: id, job, name: job ?? String(command), isAlive: false })
      }
      runs.sweep()
    } }

  async function waitForEnd (run: LeftRun) {
    ending.add(run)
    const until = performance.now() + PATIENCE_MS
    while (isGroupAlive(run.pid) && performance.now() < until) await wait(LOOK_EVERY_MS, undefined, { ref: false })
    ending.delete(run)
    if (run.job !== null) onOver(run.job)
  }
}
