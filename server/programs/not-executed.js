import { closeSync, openSync, readSync } from 'node:fs'

const HEAD_BYTES = 256
const NOT_THERE = 'No such file or directory'
const WRONG_FORMAT = 'Exec format error'

/**
 * The system says the same of a program that is not there and of one whose interpreter is not.
 * @param {string} file @param {string} reason  as the system has it
 */
export function whyNotExecuted (file, reason) {
  const head = headOf(file)
  if (head === null) return reason
  if (reason === WRONG_FORMAT) return 'it is no program of this machine, and no script that begins with #!'
  if (reason !== NOT_THERE) return reason
  const interpreter = /^#!\s*(\S+)/.exec(head)?.[1]
  return interpreter ? `its interpreter ${interpreter} is not there` : 'what loads it is not there: it was built for another system'
}

/** @param {string} file @returns {string | null} null: it is not there, or may not be read */
function headOf (file) {
  try {
    const descriptor = openSync(file, 'r')
    try {
      const head = Buffer.alloc(HEAD_BYTES)
      return head.toString('utf8', 0, readSync(descriptor, head))
    } finally {
      closeSync(descriptor)
    }
  } catch {
    return null
  }
}
