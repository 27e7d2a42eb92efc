import { closeSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { makeFolders } from './make-folders.js'

/** As loggers of Node.js number them. */
const LEVELS = Object.freeze({ warn: 40, error: 50, fatal: 60 })
const MAX_CAUSES = 5

/** @typedef {Record<'error' | 'warn', (fields: object, text: string) => void>} Log  what is used of one */

/**
 * The master's own log: what went wrong inside it, one JSON object a line. What happens to the workers is in the history.
 * Each line is written at once, as the last one before an end is the one that is needed, and what a full disk does not take is dropped.
 * @param {string} file
 * @param {() => number} [now]
 */
export function createLog (file, now = Date.now) {
  let descriptor = openLog(file)
  /** The last line has only been written in part. */
  let isTorn = false

  return {
    /** @param {object} fields `err`: an error @param {string} text */
    warn (fields, text) { write('warn', fields, text) },
    /** @param {object} fields @param {string} text */
    error (fields, text) { write('error', fields, text) },
    /** @param {object} fields @param {string} text */
    fatal (fields, text) { write('fatal', fields, text) },

    /** What comes later is dropped. */
    close () {
      if (descriptor !== null) closeSync(descriptor)
      descriptor = null
    }
  }

  /** @param {keyof typeof LEVELS} level @param {object} fields @param {string} text */
  function write (level, fields, text) {
    if (descriptor === null) return
    const line = Buffer.from(`${isTorn ? '\n' : ''}${lineOf({ level: LEVELS[level], time: now(), pid: process.pid, ...fields, msg: text })}\n`)
    try {
      isTorn = writeSync(descriptor, line) < line.length
    } catch {
      // ENOSPC, EDQUOT, EIO: the line is dropped.
    }
  }
}

/** @param {string} file @returns {number | null} null: it cannot be opened, and no master needs its log */
function openLog (file) {
  try {
    makeFolders(path.dirname(file))
    return openSync(file, 'a', 0o600)
  } catch {
    // ENOSPC, EROFS
    return null
  }
}

/** @param {Record<string, unknown>} fields */
function lineOf ({ err, ...fields }) {
  const all = err === undefined ? fields : { ...fields, err: shownError(err) }
  try {
    return JSON.stringify(all)
  } catch {
    // Somebody's error holds a cycle or a BigInt.
    return JSON.stringify({ ...fields, err: String(err) })
  }
}

/** @param {unknown} error @param {number} [causes] that may follow @returns {unknown} with what JSON leaves out of an error */
function shownError (error, causes = MAX_CAUSES) {
  if (!(error instanceof Error)) return error
  const { name: type, message, stack, cause } = error
  return { ...error, type, message, stack, ...(cause !== undefined && { cause: causes > 0 ? shownError(cause, causes - 1) : String(cause) }) }
}
