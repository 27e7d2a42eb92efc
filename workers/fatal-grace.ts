import { readFileSync, statSync, writeSync } from 'node:fs'
import { setInterval, setTimeout } from 'node:timers'
import { fileURLToPath } from 'node:url'
import { inspect, types } from 'node:util'
import type { InFlight, Requests } from './requests.ts'
import type { createDrain } from './drain.ts'
import type { Channel } from './channel.ts'
import type { CrashNote } from './crash-note.ts'

const POLL_MS = 10
/** Answers get this long to leave before the process ends. */
const FLUSH_MS = 50
/** Node's exit code for an uncaught exception. */
const EXIT_CODE = 1

const MAX_FILE_BYTES = 8 * 1024 * 1024

/**
 * Gives the open connections a moment when an exception is about to end this worker: it accepts nothing new, requests
 * in flight and those that were just being sent get a moment to be answered, and what is left then gets a 500. The
 * process ends as Node would end it. To end takes a process some time, in which a client that keeps its connection may
 * send its next request, and would be reset.
 *
 * Nothing happens where Node would not end the process, or nobody can ask it. So an 'uncaughtException' listener
 * exists only for the one turn in which it is called.
 */
export function createFatalGrace ({ graceMs, requests, drain, channel }: {
  /** 0: never */
  graceMs: () => number,
  requests: Requests,
  drain: Pick<ReturnType<typeof createDrain>, 'endWithin' | 'canBeAsked' | 'holdsLongLived'>,
  channel: Channel
}) {
  // The app may replace it.
  const { exit } = process
  /** ends the process; null: it lives */
  let end: (() => void) | null = null
  let isEnding = false

  return {
    isDying: () => end !== null,

    /** Ends the process without a wait: a second exception has come. */
    endNow () {
      process.once('uncaughtException', () => end?.())
    },

    begin (error: unknown, origin: string, note: CrashNote | null) {
      if (graceMs() === 0 || isHandled() || !isNeeded()) return
      const text = laterText(error, origin)
      if (text === null) return answerRest()
      process.once('uncaughtException', () => lingerThenEnd(text, note))
    }
  }

  function lingerThenEnd (text: string, note: CrashNote | null) {
    end = () => {
      if (isEnding) return
      isEnding = true
      answerRest()
      setTimeout(() => exit.call(process, EXIT_CODE), FLUSH_MS)
    }
    let isTold = false
    // Node tells what ended it after the app's 'exit' listeners, whoever ends the process by now.
    process.once('exit', () => {
      if (!isEnding) process.exitCode = EXIT_CODE
      if (isTold) return
      isTold = true
      writeToStderr(text)
    })
    const { errorName = 'Error', errorMessage = '' } = note ?? {}
    channel.send({ type: 'crashing', errorName, errorMessage: errorMessage.slice(0, 1000) })
    const ms = graceMs()
    drain.endWithin(ms)
    const until = performance.now() + ms
    setInterval(() => {
      if (!isNeeded() || performance.now() >= until) end?.()
    }, POLL_MS)
  }

  function isNeeded () {
    return requests.inFlight().length > 0 || drain.canBeAsked() || drain.holdsLongLived()
  }

  function answerRest () {
    for (const { response } of requests.inFlight()) answer500(response)
  }
}

/** Tells whether the app handles such errors itself */
function isHandled (): boolean {
  return process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()
}

/**
 * Node shows the line where something was thrown. For an ordinary error that text can be made now and written later;
 * for a string, or an error that cannot be read, Node has to write it now. In the mode "strict" Node would report an
 * unhandled rejection more than once. Returns what Node would write now; null: it has to do so itself.
 */
function laterText (error: unknown, origin: string): string | null {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
  try {
    if (!types.isNativeError(error) || /unhandled-rejections[= ]strict/.test(flags)) return null
    const { name, message, stack } = error
    const code = 'code' in error ? error.code : undefined
    const isOrdinary = [name, message, stack].every((text) => typeof text === 'string') &&
      code !== 'ERR_UNHANDLED_REJECTION'
    return isOrdinary ? fatalText(error, origin) : null
  } catch {
    // Any of its getters may throw.
    return null
  }
}

/**
 * Written at once: the socket's buffer takes it even where the process ends in this turn. What the app has put around
 * its answers does not run. An answer that has begun is cut in a way that its client can tell from its end. `response`:
 * null: of HTTP/2.
 */
function answer500 (response: InFlight['response']) {
  try {
    const socket = response?.socket
    // A real one; node:http itself is left to the app to load, see activity.ts.
    if (!response || typeof response.assignSocket !== 'function' || !socket || socket.destroyed) return
    if (response.headersSent) return socket.resetAndDestroy()
    response.req.resume()
    socket.end('HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  } catch {
    // A failure here must not keep the others from getting theirs.
  }
}

function writeToStderr (text: string) {
  let rest = Buffer.from(text)
  for (let tries = 0; rest.length > 0 && tries < 1000; tries++) {
    try {
      rest = rest.subarray(writeSync(2, rest))
    } catch (error) {
      // EAGAIN: the reader is slow. EPIPE: there is no reader.
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) return
    }
  }
}

/**
 * Makes the text that Node writes to stderr when an exception ends the process: the line where it was thrown, the error
 * with its stack and causes, and Node's version. The line is left out where the stack does not name it, as inside Node.
 */
function fatalText (error: Error, origin: string) {
  const shown = shownError(error)
  const version = `\n\nNode.js ${process.version}\n`
  return `${sourceExcerpt(error, origin)}${shown}${version}`
}

/** Follows lib/internal/process/execution.js and node_errors.cc. */
function shownError (error: Error) {
  try {
    const colors = process.stderr.isTTY === true && process.stderr.hasColors?.()
    return inspect(error, { colors, customInspect: false, depth: Math.max(inspect.defaultOptions.depth ?? 2, 5) })
  } catch {
    return String(error.stack)
  }
}

function sourceExcerpt (error: Error, origin: string) {
  try {
    const [, file, line, column] =
      /\n {4}at (?:.*? \()?((?:file:\/\/)?\/[^()\n]*):(\d+):(\d+)\)?(?:\n|$)/.exec(firstFrame(error)) ?? []
    if (file === undefined) return ''
    const path = file.startsWith('file:') ? fileURLToPath(file) : file
    if (statSync(path).size > MAX_FILE_BYTES) return ''
    const source = readFileSync(path, 'utf8').split(/\r?\n/)[Number(line) - 1]
    const made = source.slice(0, Number(column) - 1)
    // A statement `throw new Error()` is marked at its beginning; a rejection, where its error was made.
    const thrown = origin === 'unhandledRejection' ? null : /\bthrow\s+$/.exec(made)
    const mark = made.slice(0, thrown?.index ?? made.length).replace(/[^\t]/g, ' ')
    return `${file}:${line}\n${source}\n${mark}^\n\n`
  } catch {
    // The file may be gone or another one by now.
    return ''
  }
}

/** Finds the first line of the stack, after a message that may have several lines. */
function firstFrame (error: Error) {
  const stack = String(error.stack)
  const head = stack.indexOf(error.message) === -1 ? 0 : stack.indexOf(error.message) + error.message.length
  const start = stack.indexOf('\n    at ', head)
  return start === -1 ? '' : stack.slice(start).split('\n', 2).join('\n')
}
