import { attachCommand } from '../cluster/command-attached.ts'
import { DeckError, isErrorCode } from '../errors.ts'
import { lend, type Loan } from '../system/loan.ts'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'
import { isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import { runSteps, type Steps } from './run-steps.ts'
import type { Run } from '../../db/job-runs.ts'
import type { JobServices } from './jobs.ts'
import type { Active, Order, Runs } from './runs.ts'

type StepsOrder = { name: string, git?: string, option: string, timeoutMs: number, steps: Steps, actor: string }

/** The longest that a Node timer can wait. */
const NO_TIMEOUT_MS = 2 ** 31 - 1
const LOOK_EVERY_MS = 50
const MAX_STAGE_CHARS = 200

/** Commands in the folder of the current release, with the variables of its workers. */
export function createCommands ({ current, place, events, dataFolder, run, hide, now }: JobServices, runs: Runs) {
  /** Variables that nobody has taken yet. */
  const loans: Set<Loan> = new Set()
  let isClosed = false

  return {
    startRun,
    checkRunning,

    stopLending () {
      isClosed = true
      for (const { close } of loans) close()
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
    building: (): Run | null => runs.all().findLast(({ order }) => order.git !== undefined)?.view ?? null,

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
      const { release, cwd, env } = place()
      const loan = await lend(JSON.stringify({ ...env, [SHELL_VARIABLE]: undefined }), { below: dataFolder })
      loans.add(loan)
      loan.over.then(() => loans.delete(loan))
      return { release, cwd, variables: loan.path }
    }
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

  /** @throws {DeckError} stopping, upgrade-running, secrets-failed */
  function beginSteps ({ name, git, option, timeoutMs, steps, actor }: StepsOrder): Active {
    checkRunning()
    return runs.begin({ job: null, command: name, timeoutMs, actor, dueAt: null, hasSteps: true, git }, null,
      (shared, id) =>
        runSteps({ ...shared, name, option, run, onStep: (step, pid) =>
          events.publish({ type: 'job.step', actor, pid, message: step.name,
            detail: { run: id, job: null, command: name } }), async steps (tools) {
          const tell = (line: string) => {
            tools.tell(line)
            const stage = { name: hide(withoutUrlSecrets(line)).replace(/^\$ /, '').slice(0, MAX_STAGE_CHARS),
              startedAt: new Date(now()).toISOString() }
            Object.assign(Object(runs.find(id)?.view), { stage })
          }
          const before = () =>
            runs.all().find((other) => other.order.hasSteps && other.id < id)
          if (before()) tell(`waiting for the end of run ${before()?.id}`)
          while (before()) await tools.pause(LOOK_EVERY_MS)
          return await steps({ ...tools, tell })
        } }))
  }

  function startRun (order: Order): Active {
    const { job, command, attached = null } = order
    const { release, cwd, env } = place()
    return runs.begin(order, release, (shared, id, name) => {
      if (attached) return attachCommand({ name, identity: attached })
      return run({ ...shared, name, command, cwd,
        env: { ...env, CLUSTERDECK_JOB: job ?? undefined, CLUSTERDECK_RUN: String(id) } })
    })
  }
}
