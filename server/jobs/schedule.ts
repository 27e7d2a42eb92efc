import { didYouMean } from '../config/nearest.ts'
import { attempt, DeckError } from '../errors.ts'
import { createTimetable, type Due } from '../system/timetable.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Run } from '../../db/job-runs.ts'
import type { JobConfig, JobServices } from './jobs.ts'

type Waiting = { actor: string, dueAt: string | null, onStarted: ((run: Run) => void) | null }
export type Dues = Record<string, Due>

/** A time that is noticed this late is told: the machine slept, its clock was set, or no master ran. */
const LATE_AFTER_MS = 2 * 60_000
/** So many missed times are counted. */
const MAX_MISSED = 1000

/** Which jobs there are, and when each of them runs. */
export function createSchedule ({ configured, current, events, store, nextRun, now, timers, ...services }: JobServices,
  { check, start, runOf, replace }: {
    /** refuses what cannot be started now */
    check: () => void,
    start: (name: string, config: JobConfig, by: { actor: string, dueAt: string | null }) => Run,
    runOf: (name: string) => number | null,
    /** ends the run of a job, as the next one begins */
    replace: (name: string) => void
  })
{
  /** as configured at the start */
  let { jobs } = services
  /** by job */
  const waiting: Map<string, Waiting> = new Map()
  const paused: Map<string, { at: string, actor: string }> = new Map()
  /** Times that have come while another master was about to take over, by job. */
  const postponed: Map<string, Date> = new Map()
  /** Due times that the master before has left, which wait until the secrets are known. */
  let missedDue: Dues = {}
  let isClosed = false
  const timetable = createTimetable({ nextRun, onDue: runDue, onSetBack: tellSetBack, now, timers })
  /** What a time does that comes while the job still runs. */
  const overlaps = { skip: skipRun, queue: queueRun, replace: replaceRun }
  // Events that follow from another event are published after it.
  const unsubscribe = events.subscribe((event) => {
    Promise.resolve(event).then(readAgain)
  })

  return {
    /** `due`: what a master before has missed, which is run once; `secrets`: what a new run has to wait for */
    begin (due: Dues, secrets: Promise<unknown> | null) {
      for (const { job, at, actor } of attempt(store.paused) ?? []) paused.set(job, { at, actor })
      if (secrets === null) return timetable.plan(jobs, due)
      missedDue = due
      secrets.then(() => {
        missedDue = {}
        if (!isClosed) timetable.plan(jobs, due)
      })
    },

    names: () => Object.keys(jobs).sort(),

    isScheduled: (name: string): boolean => jobs[name].cron !== undefined,

    find,

    show (name: string) {
      const { cron = null, overlap, timeoutMs, timeZone = null } = jobs[name]
      return { name, cron, timeZone, overlap, timeoutMs, nextAt: paused.has(name) ? null : timetable.nextAt(name),
        paused: paused.get(name) ?? null, isWaiting: waiting.has(name) || postponed.has(name), running: runOf(name) }
    },

    /**
     * Runs a job now. Returns once it has begun.
     * @throws {DeckError} not-found, job-running, stopping, upgrade-running, secrets-failed
     */
    async runNow (name: string, { actor }: { actor: string }): Promise<Run> {
      find(name)
      check()
      const busy = runOf(name)
      if (busy === null) return start(name, jobs[name], { actor, dueAt: null })
      if (jobs[name].overlap !== 'replace')
        throw new DeckError('job-running', `${name} is running (run ${busy})`, { details: { run: busy } })
      return await new Promise((resolve) => replaceRun(name, { actor, dueAt: null, onStarted: resolve }))
    },

    /** `name`: of a job whose run has ended */
    startWaiting,

    pause (name: string, actor: string) {
      find(name)
      if (paused.has(name)) return
      const { at } = events.publish({ type: 'job.paused', actor, message: name, detail: { job: name } })
      paused.set(name, { at, actor })
    },

    resume (name: string, actor: string) {
      find(name)
      if (paused.delete(name)) events.publish({ type: 'job.resumed', actor, message: name, detail: { job: name } })
    },

    /** What the next master is to run: what is due, what waits here, and what has come during the upgrade. */
    memory (): Dues {
      const times = [...waiting].flatMap(([name, { dueAt }]) => dueAt === null ? [] : [{ name, at: dueAt }])
      const all = [...times, ...Array.from(postponed, ([name, at]) => ({ name, at: at.toISOString() }))]
      return { ...missedDue, ...timetable.memory(),
        ...Object.fromEntries(all.map(({ name, at }) => [name, { cron: String(jobs[name].cron), at }])) }
    },

    close () {
      isClosed = true
      unsubscribe()
      timetable.close()
    }
  }

  /** @throws {DeckError} not-found */
  function find (name: string): JobConfig {
    if (Object.hasOwn(jobs, name)) return jobs[name]
    const names = Object.keys(jobs)
    throw new DeckError('not-found',
      names.length === 0
        ? 'There are no jobs (option jobs)'
        : `There is no job ${JSON.stringify(name)}${didYouMean(name, names)}`)
  }

  function runDue (name: string, at: Date) {
    if (isClosed || current().isStopping || paused.has(name)) return
    if (current().isUpgrading) {
      postponed.set(name, at)
      return
    }
    tellMissed(name, at)
    const order = { actor: 'cron', dueAt: at.toISOString(), onStarted: null }
    const busy = runOf(name)
    if (busy === null) start(name, jobs[name], order)
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
    replace(name)
  }

  function startWaiting (name: string) {
    const next = waiting.get(name)
    if (!next || isClosed || current().isUpgrading || !Object.hasOwn(jobs, name) || runOf(name) !== null) return
    waiting.delete(name)
    const run = start(name, jobs[name], next)
    next.onStarted?.(run)
  }

  function readAgain ({ type, detail }: DeckEvent) {
    if (type === 'master.upgrade-failed') runPostponed()
    if (isClosed || type !== 'rollout.succeeded' || detail?.kind !== 'deploy') return
    jobs = configured()
    for (const name of waiting.keys()) if (!Object.hasOwn(jobs, name)) waiting.delete(name)
    timetable.plan(jobs)
  }

  /** No other master takes over. */
  function runPostponed () {
    const times = [...postponed]
    postponed.clear()
    for (const name of [...waiting.keys()]) startWaiting(name)
    for (const [name, at] of times) if (Object.hasOwn(jobs, name)) runDue(name, at)
  }
}
