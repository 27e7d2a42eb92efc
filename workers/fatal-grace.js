import { writeSync } from 'node:fs'
import { setInterval, setTimeout } from 'node:timers'
import { types } from 'node:util'
import { fatalText } from './fatal-text.js'

const POLL_MS = 10
/** Answers get this long to leave before the process ends. */
const FLUSH_MS = 50
/** Node's exit code for an uncaught exception. */
const EXIT_CODE = 1

/**
 * What becomes of the requests in flight when an exception is about to end this worker: it accepts nothing new, the
 * others get a moment to be answered, and what is left then gets a 500. The end itself is as Node would have it.
 *
 * Only where Node would end the process, and only while there is somebody to answer: in every other case nothing here
 * happens at all. For that an 'uncaughtException' listener is there for the one turn in which it is called.
 * @param {object} parts
 * @param {() => number} parts.graceMs 0: never
 * @param {import('./requests.js').Requests} parts.requests
 * @param {{ start: (limits: { idleGraceMs: number }) => void }} parts.drain
 * @param {import('./channel.js').Channel} parts.channel
 */
export function createFatalGrace ({ graceMs, requests, drain, channel }) {
  // The app may replace them.
  const { exit } = process
  /** @type {(() => void) | null} ends the process; null: it lives */
  let end = null
  let isEnding = false

  return {
    isDying: () => end !== null,

    /** After a second exception nothing is waited for. */
    endNow () {
      process.once('uncaughtException', () => end?.())
    },

    /** @param {unknown} error @param {string} origin @param {import('./crash-note.js').CrashNote | null} note */
    begin (error, origin, note) {
      if (graceMs() === 0 || isHandled() || requests.inFlight().length === 0) return
      const text = laterText(error, origin)
      if (text === null) return answerRest()
      process.once('uncaughtException', () => lingerThenEnd(text, note))
    }
  }

  /** @param {string} text @param {import('./crash-note.js').CrashNote | null} note */
  function lingerThenEnd (text, note) {
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
    drain.start({ idleGraceMs: ms })
    const until = performance.now() + ms
    setInterval(() => {
      if (requests.inFlight().length === 0 || performance.now() >= until) end?.()
    }, POLL_MS)
  }

  function answerRest () {
    for (const { response } of requests.inFlight()) answer500(response)
  }
}

/** Whether the app handles such errors itself. */
function isHandled () {
  return process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()
}

/**
 * Node shows the line where something was thrown. Of an error that can be told later; of anything else, as a string or
 * an error that cannot be read, only now. In the mode "strict" Node would say more than once that a rejection was not handled.
 * @param {unknown} error @param {string} origin
 * @returns {string | null} what Node would write now; null: it has to do so itself
 */
function laterText (error, origin) {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
  try {
    if (!types.isNativeError(error) || /unhandled-rejections[= ]strict/.test(flags)) return null
    const { name, message, stack } = error
    const code = 'code' in error ? error.code : undefined
    const isOrdinary = [name, message, stack].every((text) => typeof text === 'string') && code !== 'ERR_UNHANDLED_REJECTION'
    return isOrdinary ? fatalText(error, origin) : null
  } catch {
    // Any of its getters may throw.
    return null
  }
}

/**
 * Written at once: the socket's buffer takes it even where the process ends in this turn. What the app has put around
 * its answers does not run. An answer that has begun is cut in a way that its client can tell from its end.
 * @param {import('./requests.js').InFlight['response']} response  null: of HTTP/2
 */
function answer500 (response) {
  try {
    const socket = response?.socket
    // A real one; node:http itself is left to the app to load, see activity.js.
    if (!response || typeof response.assignSocket !== 'function' || !socket || socket.destroyed) return
    if (response.headersSent) return socket.resetAndDestroy()
    response.req.resume()
    socket.end('HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  } catch {
    // A failure here must not keep the others from getting theirs.
  }
}

/** @param {string} text */
function writeToStderr (text) {
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
