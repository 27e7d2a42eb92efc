import { readFileSync, readlinkSync } from 'node:fs'
import { errorCode } from '../errors.js'
import { statOf } from './proc.js'

/**
 * A process, so that it cannot be taken for a later one with the same number.
 * @typedef {{ pid: number, startTime: string | null }} ProcessIdentity
 *   `startTime`: boot id and clock ticks since that boot; null where the system does not tell
 */

/** Fields of proc_pid_stat(5). */
const STATE_FIELD = 3
const START_TIME_FIELD = 22

/** @param {number} pid @returns {ProcessIdentity} */
export function identifyProcess (pid) {
  return { pid, startTime: lookUp(pid)?.startTime ?? null }
}

/** @param {ProcessIdentity} identity @returns {boolean} whether this very process is there and has not ended */
export function isAlive ({ pid, startTime }) {
  if (process.platform !== 'linux') return canSignal(pid)
  const found = lookUp(pid)
  return found !== null && found.state !== 'Z' && found.state !== 'X' && (startTime === null || found.startTime === startTime)
}

/**
 * Signals this very process, and no other that has got its number since.
 * @param {ProcessIdentity} identity @param {NodeJS.Signals} signal
 */
export function signalProcess (identity, signal) {
  if (!isAlive(identity)) return
  try {
    process.kill(identity.pid, signal)
  } catch (error) {
    // It has ended in between.
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

/** @param {number} pid @returns {{ state: string, startTime: string } | null} */
function lookUp (pid) {
  try {
    const fields = statOf(pid)
    return fields && { state: fields[STATE_FIELD], startTime: `${bootId()}:${fields[START_TIME_FIELD]}` }
  } catch {
    // ENOENT: the system does not tell when it booted.
    return null
  }
}

/** @type {string | undefined} */
let knownBootId

function bootId () {
  knownBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return knownBootId
}

/** @param {number} pid */
function canSignal (pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it lives under another user.
    return errorCode(error) === 'EPERM'
  }
}

/** @returns {string | null} in which the numbers of processes hold here; null: the system does not tell */
export function pidNamespace () {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    // ENOENT: another system.
    return null
  }
}
