import { ChildProcess, spawn } from 'node:child_process'
import { crlfHint } from '../programs/not-executed.js'
import { oneLine, readableText } from '../system/one-line.js'
import { signalGroup } from '../system/process-group.js'
import { identifyProcess, isAlive } from '../system/process-identity.js'
import { SHELL_VARIABLE } from '../system/own-variables.js'
import { limitAsShell, startAsShell } from '../system/shell-limits.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { durationText } from '../lifecycle/duration.js'

/** @typedef {ReturnType<typeof runCommand>} CommandRun */
/**
 * @typedef {object} CommandEnd
 * @property {boolean} passed
 * @property {number | null} code
 * @property {string | null} signal
 * @property {number} durationMs
 * @property {boolean} timedOut
 * @property {string | null} reason  why it has not passed
 * @property {string} output  the last of both streams
 */

const SH = '/bin/sh'
/** Runs its argument once it has been told to. */
const WAIT = `read -r told <&3; exec ${SH} -c "$1" 3<&-`
const MAX_OUTPUT_CHARS = 8000
const MAX_LAST_LINE_CHARS = 300
/** A command that writes more than this has to wait a moment, so that it slows nobody but itself. */
const MAX_CHARS_AT_ONCE = 512 * 1024
const BREATHER_MS = 50
const TERM_GRACE_MS = 5000
/** Output that a process outside the group holds open is waited for this long. */
const LAST_OUTPUT_MS = 200

/**
 * Runs one command in its own process group. Processes that it leaves in that group end with it.
 * @param {object} order
 * @param {string} order.name  of the hook or the job
 * @param {string} order.option  that has set its timeout
 * @param {string | readonly string[]} order.command  program and arguments; as one text it is for the shell
 * @param {number} order.timeoutMs
 * @param {string} order.cwd
 * @param {Record<string, string | undefined>} order.env
 * @param {number} [order.maxOutputChars]  how much of its output is kept
 * @param {(stream: 'stdout' | 'stderr', text: string) => void} [order.onOutput]  as it is written
 * @param {(pid: number) => void} [order.onExited]  the process has ended; its last output may still follow
 */
export function runCommand ({ command, cwd, env: { [SHELL_VARIABLE]: shell, ...env }, ...order }) {
  const [program, ...args] = typeof command === 'string' ? [command] : command
  return followCommand(spawnChild(), { ...order, place: `${program} in ${cwd}`, hint: () => crlfHint([program, ...args], cwd) })

  function spawnChild () {
    try {
      // A shell may look at its limits before these are set.
      const waits = shell !== undefined && typeof command === 'string'
      const child = startAsShell(shell, () => waits
        ? spawn(SH, ['-c', WAIT, SH, command], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
        : spawn(program, args, { cwd, env, detached: true, shell: typeof command === 'string', stdio: ['ignore', 'pipe', 'pipe'] }))
      if (child.pid !== undefined) limitAsShell(shell, child.pid)
      // EPIPE: it has ended already.
      if (waits) /** @type {import('node:net').Socket} */ (child.stdio?.[3])?.on('error', () => {}).end('\n')
      return child
    } catch (error) {
      // E2BIG, ENOMEM: of some errors node makes an event, of others none.
      const none = new ChildProcess()
      process.nextTick(() => none.emit('error', error))
      return none
    }
  }
}

/** @typedef {Pick<import('node:child_process').ChildProcess, 'pid' | 'once' | 'removeAllListeners'> & { stdout: import('node:net').Socket | null, stderr: import('node:net').Socket | null }} Child */

/**
 * Follows a command that runs, and ends it with its whole group.
 * @param {import('node:child_process').ChildProcess | import('./command-left.js').LeftChild} process
 * @param {object} order  as of runCommand()
 * @param {string} order.name
 * @param {string} order.option
 * @param {number} order.timeoutMs
 * @param {string} [order.place]  what was to be started where
 * @param {() => string | null} [order.hint]  what may help where it has failed
 * @param {import('../system/process-identity.js').ProcessIdentity} [order.identity]  of a process that may have ended
 * @param {number} [order.ageMs]  for how long it has been running
 * @param {string} [order.before]  what it has written
 * @param {number} [order.maxOutputChars]
 * @param {(stream: 'stdout' | 'stderr', text: string) => void} [order.onOutput]
 * @param {(pid: number) => void} [order.onExited]
 */
export function followCommand (process, {
  name, option, timeoutMs, place = '', hint = () => null, identity, ageMs = 0, before = '', maxOutputChars = MAX_OUTPUT_CHARS, onOutput = () => {}, onExited = () => {}
}) {
  const startedAt = performance.now() - ageMs
  const child = /** @type {Child} */ (process)
  const { pid } = child
  const output = collectOutput(child, { maxChars: maxOutputChars, before, onOutput })
  let timedOut = false
  let hasExited = false
  /** Why it was told to end. @type {string | null} */
  let endedFor = null
  /** @type {NodeJS.Timeout | undefined} */
  let killTimer
  const timeout = setTimeout(() => {
    timedOut = endedFor === null
    endRun(`did not end within ${durationText(timeoutMs)} (option ${option})`)
  }, Math.max(0, timeoutMs - ageMs))

  return {
    name,
    /** null: it could not be started */
    identity: identity ?? (pid === undefined ? null : identifyProcess(pid)),
    /** What it writes comes by these. */
    handles: { stdout: child.stdout?._handle ?? null, stderr: child.stderr?._handle ?? null },
    /** Never rejects. @type {Promise<CommandEnd>} */
    ended: new Promise((resolve) => {
      child.once('error', (/** @type {NodeJS.ErrnoException} */ error) => {
        // Afterwards it would be a signal that could not be sent.
        if (pid === undefined) finishRun({ code: null, signal: null, failure: `could not be started: ${place} (${error.code})` })
      })
      child.once('exit', async (code, signal) => {
        hasExited = true
        signalAll('SIGKILL')
        onExited(Number(pid))
        output.flush()
        await waitAtMost(output.closed, LAST_OUTPUT_MS)
        finishRun({ code, signal, failure: failureOf({ code, signal }) })
      })

      /** @param {{ code: number | null, signal: string | null, failure: string | null }} exit */
      function finishRun ({ code, signal, failure }) {
        clearTimeout(timeout)
        clearTimeout(killTimer)
        const text = output.close()
        const durationMs = Math.round(performance.now() - startedAt)
        const why = endedFor ?? (failure && pid !== undefined ? withLastLine(`${failure} after ${durationText(durationMs)}`, text) : failure)
        const help = failure === null ? null : hint()
        resolve({ passed: why === null, code, signal, durationMs, timedOut, reason: why && `${name} ${why}${help ? `; ${help}` : ''}`, output: text })
      }
    }),

    end: endRun,

    /** Another master goes on with it: whatever has come is passed on, and what it writes from now on stays unread here. */
    leave () {
      stopFollowing()
      output.leave()
    },

    /**
     * Somebody else in this process goes on with it, by the same handles.
     * @returns {Promise<import('./command-left.js').Exit & { pid: number }> | null} how it ends; null: it has ended, and is followed to its last output
     */
    letGo () {
      if (hasExited) return null
      stopFollowing()
      output.letGo()
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
    }
  }

  function stopFollowing () {
    clearTimeout(timeout)
    clearTimeout(killTimer)
    child.removeAllListeners('exit')
  }

  /** @param {string} why @param {{ graceMs?: number }} [how] until whatever is left is killed */
  function endRun (why, { graceMs = TERM_GRACE_MS } = {}) {
    endedFor ??= why
    clearTimeout(timeout)
    clearTimeout(killTimer)
    killTimer = setTimeout(() => signalAll('SIGKILL'), graceMs)
    signalAll('SIGTERM')
  }

  /** @param {NodeJS.Signals} signal */
  function signalAll (signal) {
    if (pid !== undefined) signalGroup(pid, signal)
  }
}

/**
 * Ends what a dead master has left running.
 * @param {import('../system/process-identity.js').ProcessIdentity} left @param {number} graceMs until it is killed
 * @returns {boolean} whether it still runs; one whose start is not known might be another process by now
 */
export function endLeftGroup (left, graceMs) {
  if (left.startTime === null || !isAlive(left)) return false
  signalGroup(left.pid, 'SIGTERM')
  // While somebody is in it, its number belongs to no other group.
  setTimeout(() => signalGroup(left.pid, 'SIGKILL'), graceMs)
  return true
}

/** @param {import('node:net').Socket | null} stream that may have some that it has not passed on, as it was paused */
function endReading (stream) {
  while (stream?.read() != null);
  stream?.destroy()
}

/** @param {{ code: number | null, signal: string | null }} exit @returns {string | null} why a command has not passed; null: it has */
export function failureOf ({ code, signal }) {
  if (code === 0) return null
  if (signal) return `was ended by ${signal}`
  return code === null ? 'has ended, and nobody saw how' : `exited with code ${code}`
}

/** @param {string} why @param {string} output */
function withLastLine (why, output) {
  const last = oneLine(output.trimEnd().split('\n').at(-1) ?? '').trim().slice(0, MAX_LAST_LINE_CHARS)
  return last === '' ? why : `${why}: ${last}`
}

/**
 * Keeps the last of what a process writes.
 * @param {Child} child
 * @param {{ maxChars: number, before: string, onOutput: (stream: 'stdout' | 'stderr', text: string) => void }} how
 */
function collectOutput (child, { maxChars, before, onOutput }) {
  let text = before
  let isCut = false
  let isExited = false
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) {
    const stream = child[name]
    let room = MAX_CHARS_AT_ONCE
    stream?.setEncoding('utf8').on('data', (/** @type {string} */ part) => {
      addOutput(part)
      onOutput(name, part)
      room -= part.length
      if (room > 0 || isExited) return
      room = MAX_CHARS_AT_ONCE
      stream.pause()
      setTimeout(() => stream.resume(), BREATHER_MS)
    })
  }

  return {
    closed: new Promise((resolve) => child.once('close', resolve)),

    /** The process has exited: the rest of its output is read at once. */
    flush () {
      isExited = true
      child.stdout?.resume()
      child.stderr?.resume()
    },

    leave () { for (const stream of [child.stdout, child.stderr]) endReading(stream) },

    /** Does the same as `leave`, but what it writes can still be read by the handles. */
    letGo () {
      for (const stream of [child.stdout, child.stderr]) {
        const handle = stream?._handle
        if (!stream || !handle) continue
        handle.reading = false
        handle.readStop?.()
        stream._handle = null
        endReading(stream)
      }
    },

    /** @returns {string} without control sequences */
    close () {
      child.stdout?.destroy()
      child.stderr?.destroy()
      // The cut may have split a character.
      const shown = readableText(text.replace(/^[\udc00-\udfff]/, ''))
      return isCut ? `…${shown}` : shown
    }
  }

  /** @param {string} part */
  function addOutput (part) {
    isCut ||= text.length + part.length > maxChars
    text = (text + part).slice(-maxChars)
  }
}
