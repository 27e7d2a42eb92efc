import { closeSync, openSync, writeSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { makeFolders } from './make-folders.ts'

/** As loggers of Node.js number them. */
const LEVELS = Object.freeze({ warn: 40, error: 50, fatal: 60 })
const MAX_CAUSES = 5

/** what is used of one */
export type Log = Record<'error' | 'warn', (fields: object, text: string) => void>

/**
 * The master's own log: what went wrong inside it, one JSON object a line. What happens to the workers is in the
 * history. Each line is written at once, as the last one before an end is the one that is needed, and what a full disk
 * does not take is dropped.
 */
export function createLog (file: string, now: () => number = Date.now) {
  let descriptor = openLog(file)
  /** The last line has only been written in part. */
  let isTorn = false

  return {
    /** `err`: an error */
    warn (fields: object, text: string) {
      write('warn', fields, text)
    },
    error (fields: object, text: string) {
      write('error', fields, text)
    },
    fatal (fields: object, text: string) {
      write('fatal', fields, text)
    },

    /** What comes later is dropped. */
    close () {
      if (descriptor !== null) closeSync(descriptor)
      descriptor = null
    }
  }

  function write (level: keyof typeof LEVELS, fields: object, text: string) {
    if (descriptor === null) return
    const line = Buffer.from(
      `${isTorn ? '\n' : ''}${lineOf({ level: LEVELS[level], time: now(), pid: process.pid, ...fields, msg: text })}\n`
    )
    try {
      isTorn = writeSync(descriptor, line) < line.length
    } catch {
      // ENOSPC, EDQUOT, EIO: the line is dropped.
    }
  }
}

/** Null: it cannot be opened, and no master needs its log */
function openLog (file: string): number | null {
  // ENOSPC, EROFS
  return attempt(() => {
    makeFolders(path.dirname(file))
    return openSync(file, 'a', 0o600)
  })
}

function lineOf ({ err, ...fields }: Record<string, unknown>) {
  const all = err === undefined ? fields : { ...fields, err: shownError(err) }
  // Somebody's error may hold a cycle or a BigInt.
  return attempt(() => JSON.stringify(all)) ?? JSON.stringify({ ...fields, err: String(err) })
}

/** `causes`: that may follow @returns with what JSON leaves out of an error */
function shownError (error: unknown, causes: number = MAX_CAUSES): unknown {
  if (!(error instanceof Error)) return error
  const { name: type, message, stack, cause } = error
  return { ...error, type, message, stack,
    ...(cause !== undefined && { cause: causes > 0 ? shownError(cause, causes - 1) : String(cause) }) }
}
