import { closeSync, openSync, readSync, statSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'

const HEAD_BYTES = 256
const MAX_WORDS = 50
/** Its first line is for the kernel or a shell, and ends as on Windows. */
const IS_CRLF = /^#![^\n]*\r\n/
const NOT_THERE = 'No such file or directory'
const WRONG_FORMAT = 'Exec format error'

/**
 * The system says the same of a program that is not there and of one whose interpreter is not.
 * @param reason as the system has it
 */
export function whyNotExecuted (file: string, reason: string) {
  const head = headOf(file)
  if (head === null) return reason
  if (reason === WRONG_FORMAT) return 'it is no program of this machine, and no script that begins with #!'
  if (reason !== NOT_THERE) return reason
  if (IS_CRLF.test(head)) return 'its interpreter is not there, as the name has a CR at its end'
  const interpreter = /^#!\s*(\S+)/.exec(head)?.[1]
  return interpreter
    ? `its interpreter ${interpreter} is not there`
    : 'what loads it is not there: it was built for another system'
}

/**
 * What may help where a command has failed that runs a script of a shell with the line ends of Windows. `words`: of the
 * command, or texts for a shell. Returns null: there is none.
 */
export function crlfHint (words: readonly string[], cwd: string): string | null {
  const names = words.flatMap((word) => word.split(/[\s;&|()<>'"`]+/)).filter(Boolean).slice(0, MAX_WORDS)
  const found = names.find((name, at) => {
    const head = headOf(path.resolve(cwd, name)) ?? ''
    // Other languages than shells read such lines, but for the first one, which the kernel reads.
    return IS_CRLF.test(head)
      ? at === 0 || /^#!.*sh\b/.test(head)
      : /\.(ba|da|z)?sh$/.test(name) && /^[^\n]*\r\n/.test(head)
  })
  return found === undefined
    ? null
    : `the lines of ${found} end in CRLF, as on Windows, and the CR counts as part of what is called: have them end in LF (dos2unix)`
}

/** Null: it is no file, is not there, or may not be read */
function headOf (file: string): string | null {
  return attempt(() => {
    // A pipe would be waited for, and to open a device may do something.
    if (!statSync(file).isFile()) return null
    const descriptor = openSync(file, 'r')
    try {
      const head = Buffer.alloc(HEAD_BYTES)
      return head.toString('utf8', 0, readSync(descriptor, head))
    } finally {
      closeSync(descriptor)
    }
  })
}
