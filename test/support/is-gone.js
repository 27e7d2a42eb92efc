import { readFileSync } from 'node:fs'

/** @param {number | string} pid  also as a program has written it, with a newline @returns {boolean} whether that process has ended */
export function isGone (pid) {
  try {
    return readFileSync(`/proc/${String(pid).trim()}/stat`, 'utf8').includes(') Z ')
  } catch {
    return true
  }
}
