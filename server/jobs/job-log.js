import { closeSync, constants, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import path from 'node:path'
import { errorCode } from '../errors.js'

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

/** @typedef {ReturnType<typeof createJobLogs>} JobLogs */
/** @typedef {ReturnType<JobLogs['open']>} JobLog */

/**
 * Keeps all that the runs of a job write, one after the other: in `nightly.log`, and what is older in `nightly.log.1`, `nightly.log.2`, …
 * The number comes last, as another job may be called `nightly.1`.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {() => { maxBytes: number, maxFiles: number }} parts.limits
 * @param {(reason: string) => void} [parts.onError]  something could not be written, as on a full disk, and is lost
 */
export function createJobLogs ({ folder, limits, onError = () => {} }) {
  return {
    /**
     * @param {string} name of the job @param {string | null} heading  of this run; null: it has one, by the master before
     */
    open (name, heading) {
      const file = path.join(folder, `${name}.log`)
      let fd = attempt(() => openFile(file)) ?? null
      let bytes = fd === null ? 0 : fstatSync(fd).size
      let endsLine = true
      if (heading !== null) writeText(`${heading}\n`)

      return {
        write: writeText,

        close () {
          if (!endsLine) append('\n')
          closeFile()
        },

        /** Another master goes on with it. */
        leave: closeFile
      }

      function closeFile () {
        if (fd !== null) closeSync(fd)
        fd = null
      }

      /** @param {string} text */
      function writeText (text) {
        if (bytes >= limits().maxBytes) attempt(rotate)
        append(text)
      }

      /** @param {string} text */
      function append (text) {
        if (fd === null || text === '') return
        const open = fd
        bytes += attempt(() => writeSync(open, text)) ?? 0
        endsLine = text.endsWith('\n')
      }

      function rotate () {
        const older = (/** @type {number} */ n) => n === 0 ? file : `${file}.${n}`
        for (let n = limits().maxFiles - 2; n >= 0; n--) rename(older(n), older(n + 1))
        closeFile()
        fd = openFile(file, limits().maxFiles === 1 ? constants.O_TRUNC : 0)
        bytes = fstatSync(fd).size
      }
    }
  }

  /** @param {string} file @param {number} [more] flags */
  function openFile (file, more = 0) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return openSync(file, FLAGS | more, 0o600)
  }

  /** @template T @param {() => T} work @returns {T | undefined} undefined: it has failed */
  function attempt (work) {
    try {
      return work()
    } catch (/** @type {any} */ error) {
      onError(`the output of a job could not be kept: ${error.message}`)
      return undefined
    }
  }
}

/** @param {string} from @param {string} to */
function rename (from, to) {
  try {
    renameSync(from, to)
  } catch (error) {
    // ENOENT: there are not as many yet.
    if (errorCode(error) !== 'ENOENT') throw error
  }
}
