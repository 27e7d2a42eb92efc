import { readFileSync } from 'node:fs'

/** @param {number | string} pid  may end with a newline, as in the output of a program @returns {boolean} whether that process has ended */
export function isGone (pid) {
  try {
    return readFileSync(`/proc/${String(pid).trim()}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}
