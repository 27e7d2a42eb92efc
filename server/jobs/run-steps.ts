import { setPriority } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { runCommand, type CommandEnd, type CommandRun } from '../cluster/command-run.ts'
import { attempt, DeckError, errorText } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'

/** What it runs makes way for the workers, which serve meanwhile. */
const NICENESS = 10
/** The longest that a Node timer can wait. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/** A command. `isQuiet`: nobody is to read what it writes. */
type Step = { name: string, command: readonly string[], cwd: string, env: Record<string, string | undefined>,
  isQuiet?: boolean }
/** What the function of such a run works with. */
export type StepTools = {
  /** runs a command to its end, and returns what it has written to stdout; rejects where it fails */
  exec: (step: Step) => Promise<string>,
  tell: (line: string) => void,
  /** throws once the run is to end */
  check: () => void,
  /**
   * waits, and rejects once the run is to end
   *
   * What comes of it.
   */
  pause: (ms: number) => Promise<void>
}
export type Made = { release: string, rollout: number | null }
export type Steps = (tools: StepTools) => Promise<Made | void>

/**
 * Runs several commands, and what is done in between, as one run: with one output, one limit of time and one end. No
 * other master can go on with it.
 */
export function runSteps ({ name, option, timeoutMs, maxOutputChars, steps, onStep, onOutput, run = runCommand }: {
  name: string,
  /** that has set its timeout */
  option: string,
  timeoutMs: number,
  maxOutputChars: number,
  steps: Steps,
  /** a command has been started */
  onStep: (step: Step, pid: number | null) => void,
  onOutput: (stream: 'stdout' | 'stderr', text: string) => void,
  run?: (order: Parameters<typeof runCommand>[0]) => CommandRun
}): CommandRun & { ended: Promise<CommandEnd & { cause?: string, made?: Made }> } {
  const startedAt = performance.now()
  const over = new AbortController()
  let current: CommandRun | null = null
  /** Why it was told to end. */
  let endedFor: string | null = null
  let timedOut = false
  let output = ''
  /** The last command that has failed. */
  let failed: { code: number | null, signal: string | null } = { code: null, signal: null }
  const timer = setTimeout(() => {
    timedOut = endedFor === null
    endSteps(`did not end within ${durationText(timeoutMs)} (option ${option})`)
  }, timeoutMs)

  return {
    name,
    /** Names the process of the command that runs now. */
    get identity () {
      return current?.identity ?? null
    },
    handles: { stdout: null, stderr: null },
    ended: takeSteps(),
    end: endSteps,
    leave () {},
    letGo: () => null
  }

  function endSteps (why: string, how?: { graceMs?: number }) {
    endedFor ??= why
    current?.end(why, how)
    over.abort()
  }

  async function takeSteps () {
    try {
      // Whoever has begun it has to hold it first.
      await Promise.resolve()
      const made = await steps({ exec, tell: (line) => write('stdout', `${line}\n`), check, pause })
      return endWith({ ...(made && { made }), code: 0, signal: null, reason: null })
    } catch (error) {
      // What it says itself, those who follow its output would not see otherwise.
      if (endedFor === null) write('stderr', `${errorText(error)}\n`)
      return endWith({ ...failed,
        ...(endedFor === null && { cause: error instanceof DeckError ? error.code : 'internal' }),
        reason: endedFor === null ? errorText(error) : `${name} ${endedFor}` })
    } finally {
      clearTimeout(timer)
    }
  }

  function endWith (
    end: { code: number | null, signal: string | null, reason: string | null, cause?: string, made?: Made }
  ) {
    return { passed: end.reason === null, ...end, durationMs: Math.round(performance.now() - startedAt), timedOut,
      output }
  }

  function check () {
    if (endedFor !== null) throw new DeckError('build-failed', `${name} ${endedFor}`)
  }

  async function pause (ms: number) {
    await wait(ms, undefined, { signal: over.signal }).catch(() => {})
    check()
  }

  async function exec (step: Step) {
    check()
    const { isQuiet = false, ...order } = step
    let stdout = ''
    current = run({ ...order, option, timeoutMs: NO_TIMEOUT_MS, onOutput (stream, text) {
      if (stream === 'stdout' && isQuiet) stdout += text
      if (!isQuiet) write(stream, text)
    } })
    const pid = current.identity?.pid ?? null
    // ESRCH: it has ended already. It leads a group, and has not started any other process yet.
    if (pid !== null) attempt(() => setPriority(pid, NICENESS))
    onStep(step, pid)
    const { passed, code, signal, reason } = await current.ended
    current = null
    check()
    if (passed) return stdout
    failed = { code, signal }
    throw new DeckError('build-failed', withoutUrlSecrets(String(reason)))
  }

  /** `written`: git and package managers name the addresses that they fetch from */
  function write (stream: 'stdout' | 'stderr', written: string) {
    const text = withoutUrlSecrets(written)
    output = (output + text).slice(-maxOutputChars)
    onOutput(stream, text)
  }
}
