import { writeFileSync } from 'node:fs'
import { inspect } from 'node:util'

const MAX_CHARS = 16_384

/**
 * Leaves the error that ends this process in a file for the master. Written synchronously: what a dying process sends
 * over IPC can be lost with it. The 'uncaughtExceptionMonitor' changes nothing of Node's own handling; an app with a
 * handler of its own may live on, so the record says when it was written.
 * @param {string} file
 */
export function recordCrashes (file) {
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    try {
      writeFileSync(file, JSON.stringify({ at: Date.now(), origin, ...describe(error) }), { mode: 0o600 })
    } catch {
      // ENOSPC, EACCES: the error itself still reaches stderr, and the exit code the master.
    }
  })
}

/** @param {unknown} error anything may be thrown, and its getters may throw again */
function describe (error) {
  try {
    if (error instanceof Error) {
      return { errorName: clip(error.name), errorMessage: clip(error.message), stack: clip(error.stack) }
    }
    return { errorName: typeof error, errorMessage: clip(inspect(error, { depth: 2 })), stack: null }
  } catch {
    return { errorName: 'unknown', errorMessage: 'the thrown value could not be read', stack: null }
  }
}

/** @param {unknown} text */
function clip (text) {
  return String(text).slice(0, MAX_CHARS)
}
