import { readFileSync } from 'node:fs'
import { attempt } from '../../server/errors.ts'

/** `pid`: may end with a newline, as in the output of a program. Returns whether that process has ended. */
export function isGone (pid: number | string): boolean {
  return attempt(() => readFileSync(`/proc/${String(pid).trim()}/stat`, 'utf8').includes(') Z '), true)
}
