import { closeSync, constants, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import path from 'node:path'
import { errorText, unless } from '../errors.ts'

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

type JobLogs = ReturnType<typeof createJobLogs>
export type JobLog = ReturnType<JobLogs['open']>

/**
 * Keeps all that the runs of a job write, one after the other: in `nightly.log`, and what is older in `nightly.log.1`,
 * `nightly.log.2`, … The number comes last, as another job may be called `nightly.1`.
 */
export function createJobLogs ({ folder, limits, onError = () => {} }: {
  folder: string,
  limits: () => { maxBytes: number, maxFiles: number },
  /** something could not be written, as on a full disk, and is lost */
  onError?: (reason: string) => void
}) {
  return {
    /** `name`: of the job; `heading`: of this run; null: it has one, by the master before */
    open (name: string, heading: string | null) {
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

      function writeText (text: string) {
        if (bytes >= limits().maxBytes) attempt(rotate)
        append(text)
      }

      function append (text: string) {
        if (fd === null || text === '') return
        const open = fd
        bytes += attempt(() => writeSync(open, text)) ?? 0
        endsLine = text.endsWith('\n')
      }

      function rotate () {
        const older = (n: number) => n === 0 ? file : `${file}.${n}`
        for (let n = limits().maxFiles - 2; n >= 0; n--)
          // There may not be as many yet.
          unless('ENOENT', () => renameSync(older(n), older(n + 1)))
        closeFile()
        fd = openFile(file, limits().maxFiles === 1 ? constants.O_TRUNC : 0)
        bytes = fstatSync(fd).size
      }
    }
  }

  /** `more`: flags */
  function openFile (file: string, more: number = 0) {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return openSync(file, FLAGS | more, 0o600)
  }

  /** Undefined: it has failed */
  function attempt<T> (work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      onError(`the output of a job could not be kept: ${errorText(error)}`)
      return undefined
    }
  }
}
