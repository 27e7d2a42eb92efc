import { readFileSync } from 'node:fs'

/** `pid`: may end with a newline, as in the output of a program. Returns whether that process has ended. */
export function isGone (pid: number | string): boolean {
  try {
    return readFileSync(`/proc/${String(pid).trim()}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}
