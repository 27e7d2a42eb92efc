import path from 'node:path'
import { attachCommand } from '../cluster/command-attached.ts'
import { adoptCommand } from '../cluster/command-left.ts'
import { durationText } from '../lifecycle/duration.ts'
import { createJobLogs, type JobLog } from './job-log.ts'
import { createKeptStreams } from './kept-streams.ts'
import { createRunOutputs, MAX_OUTPUT_CHARS } from './run-outputs.ts'
import { isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'
import { attempt } from '../errors.ts'
import type { CommandEnd, CommandRun } from '../cluster/command-run.ts'
import type { Exit } from '../keeper/link.ts'
import type { Run } from '../../db/job-runs.ts'
import type { JobConfig, JobServices } from './jobs.ts'
import type { RunOutput } from './run-output.ts'
import type { Made } from './run-steps.ts'

export type Runs = ReturnType<typeof createRuns>
/**
 * What is to be run. `job`: null: a command that somebody has typed; `dueAt`: ISO 8601; null: somebody has asked for
 * it; `attached`: it runs already, in a terminal of theirs; `hasSteps`: it is of several commands; `git`: what they
 * build, as somebody has called the commit.
 */
export type Order = { job: string | null, command: JobConfig['command'], timeoutMs: number, actor: string,
  dueAt: string | null, attached?: ProcessIdentity | null, hasSteps?: true, git?: string }
type Process =
  & Omit<CommandRun, 'ended'>
  & { ended: Promise<End>, tellEnd?: (exit: { code: number | null, signal: string | null }) => void }
/** `cause`, `made`: of one with steps */
type End = CommandEnd & { cause?: string, made?: Made }
type Shared = { option: string, timeoutMs: number, maxOutputChars: number,
  onOutput: (stream: 'stdout' | 'stderr', text: string) => void, onExited: (pid: number) => void }
export type Active = { id: number, order: Order, process: Process, log: JobLog, output: RunOutput,
  endedFor: string | null, done: Promise<void>, view: Run }
/** of the master before */
export type LeftRun = ProcessIdentity & { run: number, job: string | null, name: string, timeoutMs: number,
  hasTerminal: boolean }

/** An event has less of it, since alerts send it on. */
const MAX_TOLD_CHARS = 2000
const MAX_COMMAND_CHARS = 1000
const MAX_NAME_CHARS = 80
/** A run has this long to end after SIGTERM, until it is killed. */
export const GRACE_MS = 5000
/** Commands of `clusterdeck run` share the log of this name. */
const COMMAND_LOG = 'command'

/** Runs that have not ended. `onOver`: the run of a job has */
export function createRuns (services: JobServices, onOver: (job: string) => void) {
  const { events, store, logFolder, logLimits, onLogError, hide, keeper, now } = services
  /** by id */
  const active: Map<number, Active> = new Map()
  /** Runs that the next master goes on with. */
  const left: Set<Active> = new Set()
  /** Processes whose exit Node still waits for. */
  const children: Set<number> = new Set()
  const kept = createKeptStreams(keeper)
  const outputs = createRunOutputs(services)
  const logs = createJobLogs({ folder: path.join(logFolder, 'jobs'), limits: logLimits, onError: onLogError })

  return {
    /** `release`: that it runs in; `start`: begins its process */
    begin (order: Order, release: string | null, start: (shared: Shared, id: number, name: string) => Process): Active {
      const { job, command, actor, dueAt, attached = null } = order
      // Nothing else is published before it has begun.
      const id = events.lastId + 1
      const shownCommand = job === null
        ? withoutUrlSecrets([command].flat().join(' ')).slice(0, MAX_COMMAND_CHARS)
        : null
      const name = job ?? String(shownCommand).slice(0, MAX_NAME_CHARS)
      const startedAt = new Date(now()).toISOString()
      const where = release === null ? '' : `release ${release}, `
      const log = logs.open(job ?? COMMAND_LOG, `--- run ${id} of ${name}, ${startedAt}, ${where}by ${actor}`)
      const entry = follow({ id, order, log, output: outputs.open(id) }, (shared) => start(shared, id, name), { id, job,
        command: shownCommand, state: 'running', cause: null, actor, release, rollout: null, pid: null, dueAt,
        startedAt, finishedAt: null, durationMs: null, code: null, signal: null, reason: null, acknowledgedBy: null,
        hasTerminal: attached !== null, git: order.git ?? null, stage: null })
      const { pid } = entry.view
      if (pid !== null && attached === null) children.add(pid)
      kept.keep(id, entry.process.handles)
      events.publish({ type: 'job.started', actor, release, pid, message: name,
        detail: { job, command: shownCommand, dueAt, ...(attached && { hasTerminal: true }),
          ...(order.git !== undefined && { git: order.git }) } })
      return entry
    },

    /**
     * Goes on with a run of the master before: what it writes has waited with the keeper. Returns false: nobody can
     * read what it writes.
     */
    goOn ({ run: id, job, name, timeoutMs, hasTerminal, ...identity }: LeftRun,
      cause: 'upgrade' | 'master-lost'): boolean
    {
      const handles = kept.take(id)
      const found = attempt(() => store.find(id))
      if ((hasTerminal ? !isAlive(identity) : handles === null) || found?.state !== 'running') return false
      const { output: _, ...view } = found
      const output = outputs.open(id)
      const order = { job, command: '', timeoutMs, actor: view.actor, dueAt: view.dueAt,
        attached: hasTerminal ? identity : null }
      const ageMs = Math.max(0, now() - Date.parse(view.startedAt))
      if (handles) children.add(identity.pid)
      follow({ id, order, log: logs.open(job ?? COMMAND_LOG, null), output }, (shared) => {
        if (handles === null) return attachCommand({ name, identity, ageMs })
        const findExit = () => keeper.exits.findLast(({ pid }) => pid === identity.pid) ?? null
        return adoptCommand({ identity, handles, findExit }, { ...shared, name, ageMs, before: output.text() })
      }, view)
      events.publish({ type: 'job.continued', cause, actor: 'system', release: view.release, pid: identity.pid,
        message: name, detail: { job, run: id, command: view.command } })
      return true
    },

    /** Runs of the master before do not go on. `isAlive`: which is about to end */
    tellLost ({ run, job, name, isAlive }: { run: number, job: string | null, name: string, isAlive: boolean }) {
      const output = outputs.open(run).text()
      if (output !== '') outputs.record(run, job, output)
      const message = `${name} was interrupted: its master has died${isAlive ? ', and the run is ended' : ''}`
      events.publish({ type: 'job.interrupted', cause: 'master-lost', actor: 'system', message, detail: { run, job } })
    },

    /** Forgets what all others have written. */
    sweep () {
      kept.dropOthers(active)
      outputs.sweep(active)
    },

    memory: (): LeftRun[] =>
      [...active.values()].flatMap(({ id, order: { job, timeoutMs, attached }, process: { name, identity } }) =>
        identity ? [{ run: id, job, name, timeoutMs, hasTerminal: Boolean(attached), ...identity }] : []
      ),

    all: (): Active[] => [...active.values()],
    find: (id: number): Active | undefined => active.get(id),

    /** Null: it has ended a while ago */
    outputOf: (id: number): Pick<RunOutput, 'since'> | null => active.get(id)?.output ?? outputs.ofEnded(id),

    isChild: (pid: number): boolean =>
      children.has(pid) || [...active.values()].some(({ process }) => process.identity?.pid === pid),

    end: endRun,

    handOver () {
      for (const each of goingOn()) {
        each.process.leave()
        leave(each)
      }
    },

    letGo: (): Promise<Exit>[] =>
      goingOn().flatMap((each) => {
        const exit = each.process.letGo()
        if (exit || each.order.attached) leave(each)
        return exit ?? []
      }),

    /** Ends those that nobody goes on with. Returns when they are gone. */
    async close (cause: string, why: string, graceMs: number) {
      const all = [...active.values()].filter((each) => !left.has(each))
      for (const each of all) endRun(each, cause, why, graceMs)
      await Promise.all(all.map(({ done }) => done))
    }
  }

  function follow ({ id, order, log, output }: Pick<Active, 'id' | 'order' | 'log' | 'output'>,
    start: (shared: Shared) => Process, view: Run): Active
  {
    const process = start({ option: `jobs.${order.job}.timeoutMs`, timeoutMs: order.timeoutMs,
      maxOutputChars: MAX_OUTPUT_CHARS, onOutput (stream, written) {
      const text = hide(written)
      output.add(stream, text)
      log.write(text)
    }, onExited: (pid) => children.delete(pid) })
    const entry: Active = { id, order, process, log, output, endedFor: null,
      view: { ...view, pid: process.identity?.pid ?? null }, done: process.ended.then((end) => finish(entry, end)) }
    active.set(id, entry)
    return entry
  }

  function endRun (entry: Active, cause: string, why: string, graceMs: number = GRACE_MS) {
    entry.endedFor ??= cause
    entry.process.end(why, { graceMs })
  }

  function finish (
    { id, order: { job, actor, dueAt, attached }, view, endedFor, process: { name }, log, output: own }: Active,
    { passed, code, signal, durationMs, timedOut, reason, output, cause: why, made }: End
  ) {
    log.close()
    active.delete(id)
    kept.drop(id)
    if (dueAt === null) outputs.keepForAWhile(id, own)
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
      ...(view.stage && { stage: view.stage }), ...(output !== '' && { output: output.slice(-MAX_TOLD_CHARS) }) }
    if (!attached) outputs.record(id, job, hide(output))
    events.publish({ type, cause, actor, release: made?.release ?? view.release, pid: view.pid, code, signal, message,
      detail })
    if (job !== null) onOver(job)
  }

  /** The runs that another master, or the next part of this one, can go on with. */
  function goingOn () {
    return [...active.values()].filter(({ endedFor, order, process }) =>
      endedFor === null && (order.attached || process.handles.stdout !== null)
    )
  }

  /** `entry`: that goes on without us */
  function leave (entry: Active) {
    left.add(entry)
    entry.log.leave()
  }
}
