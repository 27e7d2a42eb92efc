import { setPriority } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { runCommand } from '../cluster/command-run.js'
import { DeckError, errorText } from '../errors.js'
import { durationText } from '../lifecycle/duration.js'
import { withoutUrlSecrets } from '../system/without-url-secrets.js'

/** What it runs makes way for the workers, which serve meanwhile. */
const NICENESS = 10
/** The longest that a Node timer can wait. */
const NO_TIMEOUT_MS = 2 ** 31 - 1

/**
 * A command. `isQuiet`: nobody is to read what it writes.
 * @typedef {{ name: string, command: readonly string[], cwd: string, env: Record<string, string | undefined>, isQuiet?: boolean }} Step
 *
 * What the function of such a run works with.
 * @typedef {object} StepTools
 * @property {(step: Step) => Promise<string>} exec  runs a command to its end, and returns what it has written to stdout; rejects where it fails
 * @property {(line: string) => void} tell  adds a line to the output of the run
 * @property {() => void} check  throws once the run is to end
 * @property {(ms: number) => Promise<void>} pause  waits, and rejects once the run is to end
 *
 * What comes of it. @typedef {{ release: string, rollout: number | null }} Made
 * @typedef {(tools: StepTools) => Promise<Made | void>} Steps
 */

/**
 * Runs several commands, and what is done in between, as one run: with one output, one limit of time and one end. No other master can go
 * on with it.
 * @param {object} order
 * @param {string} order.name
 * @param {string} order.option  that has set its timeout
 * @param {number} order.timeoutMs
 * @param {number} order.maxOutputChars
 * @param {Steps} order.steps
 * @param {(step: Step, pid: number | null) => void} order.onStep  a command has been started
 * @param {(stream: 'stdout' | 'stderr', text: string) => void} order.onOutput
 * @param {(order: Parameters<typeof runCommand>[0]) => import('../cluster/command-run.js').CommandRun} [order.run]
 * @returns {import('../cluster/command-run.js').CommandRun & { ended: Promise<import('../cluster/command-run.js').CommandEnd & { cause?: string, made?: Made }> }}
 */
export function runSteps ({ name, option, timeoutMs, maxOutputChars, steps, onStep, onOutput, run = runCommand }) {
  const startedAt = performance.now()
  const over = new AbortController()
  /** @type {import('../cluster/command-run.js').CommandRun | null} */
  let current = null
  /** Why it was told to end. @type {string | null} */
  let endedFor = null
  let timedOut = false
  let output = ''
  /** The last command that has failed. @type {{ code: number | null, signal: string | null }} */
  let failed = { code: null, signal: null }
  const timer = setTimeout(() => {
    timedOut = endedFor === null
    endSteps(`did not end within ${durationText(timeoutMs)} (option ${option})`)
  }, timeoutMs)

  return {
    name,
    /** Names the process of the command that runs now. */
    get identity () { return current?.identity ?? null },
    handles: { stdout: null, stderr: null },
    ended: takeSteps(),
    end: endSteps,
    leave () {},
    letGo: () => null
  }

  /** @param {string} why @param {{ graceMs?: number }} [how] */
  function endSteps (why, how) {
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
      return endWith({ ...failed, ...(endedFor === null && { cause: error instanceof DeckError ? error.code : 'internal' }), reason: endedFor === null ? errorText(error) : `${name} ${endedFor}` })
    } finally {
      clearTimeout(timer)
    }
  }

  /** @param {{ code: number | null, signal: string | null, reason: string | null, cause?: string, made?: Made }} end */
  function endWith (end) {
    return { passed: end.reason === null, ...end, durationMs: Math.round(performance.now() - startedAt), timedOut, output }
  }

  function check () {
    if (endedFor !== null) throw new DeckError('build-failed', `${name} ${endedFor}`)
  }

  /** @param {number} ms */
  async function pause (ms) {
    await wait(ms, undefined, { signal: over.signal }).catch(() => {})
    check()
  }

  /** @param {Step} step */
  async function exec (step) {
    check()
    const { isQuiet = false, ...order } = step
    let stdout = ''
    current = run({
      ...order,
      option,
      timeoutMs: NO_TIMEOUT_MS,
      onOutput (stream, text) {
        if (stream === 'stdout' && isQuiet) stdout += text
        if (!isQuiet) write(stream, text)
      }
    })
    const pid = current.identity?.pid ?? null
    if (pid !== null) makeWay(pid)
    onStep(step, pid)
    const { passed, code, signal, reason } = await current.ended
    current = null
    check()
    if (passed) return stdout
    failed = { code, signal }
    throw new DeckError('build-failed', withoutUrlSecrets(String(reason)))
  }

  /** @param {'stdout' | 'stderr'} stream @param {string} written  git and package managers name the addresses that they fetch from */
  function write (stream, written) {
    const text = withoutUrlSecrets(written)
    output = (output + text).slice(-maxOutputChars)
    onOutput(stream, text)
  }
}

/** @param {number} pid of a group's leader, which has not started any other yet */
function makeWay (pid) {
  try {
    setPriority(pid, NICENESS)
  } catch {
    // ESRCH: it has ended already.
  }
}
