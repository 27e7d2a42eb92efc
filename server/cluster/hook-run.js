import { ChildProcess, spawn } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { errorCode } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { identifyProcess } from '../system/process-identity.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { durationText } from '../lifecycle/duration.js'

/** @typedef {ReturnType<typeof runHook>} HookRun */
/**
 * @typedef {object} HookEnd
 * @property {boolean} passed
 * @property {number | null} code
 * @property {string | null} signal
 * @property {number} durationMs
 * @property {string | null} reason  why it has not passed
 * @property {string} output  the last of both streams
 */

const MAX_OUTPUT_CHARS = 8000
const MAX_LAST_LINE_CHARS = 300
/** A hook that writes more than this has to wait a moment, so that it slows nobody but itself. */
const MAX_CHARS_AT_ONCE = 512 * 1024
const BREATHER_MS = 50
const TERM_GRACE_MS = 5000
/** Output that a process outside the group holds open is waited for this long. */
const LAST_OUTPUT_MS = 200
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/**
 * Runs one command in its own process group, without a shell. Processes that it leaves in that group end with it.
 * @param {object} order
 * @param {string} order.name  of the hook
 * @param {readonly string[]} order.command  program and arguments
 * @param {number} order.timeoutMs
 * @param {string} order.cwd
 * @param {Record<string, string | undefined>} order.env
 * @param {(pid: number) => void} [order.onExited]  the process has ended; its last output may still follow
 */
export function runHook ({ name, command: [program, ...args], timeoutMs, cwd, env, onExited = () => {} }) {
  const startedAt = performance.now()
  const child = spawnHook()
  const { pid } = child
  const output = collectOutput(child)
  /** Why it was told to end. @type {string | null} */
  let endedFor = null
  /** @type {NodeJS.Timeout | undefined} */
  let killTimer
  const timeout = setTimeout(() => endRun(`did not end within ${durationText(timeoutMs)} (option hooks.${name})`), timeoutMs)

  return {
    name,
    /** null: it could not be started */
    identity: pid === undefined ? null : identifyProcess(pid),
    /** Never rejects. @type {Promise<HookEnd>} */
    ended: new Promise((resolve) => {
      child.once('error', (/** @type {NodeJS.ErrnoException} */ error) => {
        // Afterwards it would be a signal that could not be sent.
        if (pid === undefined) finishRun({ code: null, signal: null, failure: `could not be started: ${program} in ${cwd} (${error.code})` })
      })
      child.once('exit', async (code, signal) => {
        signalGroup('SIGKILL')
        onExited(Number(pid))
        output.flush()
        await waitAtMost(output.closed, LAST_OUTPUT_MS)
        finishRun({ code, signal, failure: code === 0 ? null : signal ? `was ended by ${signal}` : `exited with code ${code}` })
      })

      /** @param {{ code: number | null, signal: string | null, failure: string | null }} exit */
      function finishRun ({ code, signal, failure }) {
        clearTimeout(timeout)
        clearTimeout(killTimer)
        const text = output.close()
        const durationMs = Math.round(performance.now() - startedAt)
        const why = endedFor ?? (failure && pid !== undefined ? withLastLine(`${failure} after ${durationText(durationMs)}`, text) : failure)
        resolve({ passed: why === null, code, signal, durationMs, reason: why && `${name} ${why}`, output: text })
      }
    }),

    end: endRun
  }

  function spawnHook () {
    try {
      return spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    } catch (error) {
      // E2BIG, ENOMEM: of some errors node makes an event, of others none.
      const none = new ChildProcess()
      process.nextTick(() => none.emit('error', error))
      return none
    }
  }

  /** @param {string} why @param {{ graceMs?: number }} [how] until whatever is left is killed */
  function endRun (why, { graceMs = TERM_GRACE_MS } = {}) {
    endedFor ??= why
    clearTimeout(timeout)
    clearTimeout(killTimer)
    killTimer = setTimeout(() => signalGroup('SIGKILL'), graceMs)
    signalGroup('SIGTERM')
  }

  /** @param {NodeJS.Signals} signal */
  function signalGroup (signal) {
    if (pid !== undefined) signalProcessGroup(pid, signal)
  }
}

/** @param {number} pid of its leader @param {NodeJS.Signals} signal */
export function signalProcessGroup (pid, signal) {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    // ESRCH: nobody is left in it. EPERM: those who are have become somebody else's.
    if (!['ESRCH', 'EPERM'].includes(String(errorCode(error)))) throw error
  }
}

/** @param {string} why @param {string} output */
function withLastLine (why, output) {
  const last = oneLine(output.trimEnd().split('\n').at(-1) ?? '').trim().slice(0, MAX_LAST_LINE_CHARS)
  return last === '' ? why : `${why}: ${last}`
}

/**
 * Keeps the last of what a process writes.
 * @param {import('node:child_process').ChildProcess} child
 */
function collectOutput (child) {
  let text = ''
  let isCut = false
  let isExited = false
  for (const stream of [child.stdout, child.stderr]) {
    let room = MAX_CHARS_AT_ONCE
    stream?.setEncoding('utf8').on('data', (/** @type {string} */ part) => {
      addOutput(part)
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

    /** @returns {string} without control sequences */
    close () {
      child.stdout?.destroy()
      child.stderr?.destroy()
      // The cut may have split a character.
      const shown = stripVTControlCharacters(text.replace(/^[\udc00-\udfff]/, '')).replace(/\r\n?/g, '\n').replace(CONTROLS, '')
      return isCut ? `…${shown}` : shown
    }
  }

  /** @param {string} part */
  function addOutput (part) {
    isCut ||= text.length + part.length > MAX_OUTPUT_CHARS
    text = (text + part).slice(-MAX_OUTPUT_CHARS)
  }
}
