import { readFileSync, readlinkSync } from 'node:fs'
import { attempt, errorCode, unless } from '../errors.ts'
import { statOf } from './proc.ts'

/**
 * A process, so that it cannot be taken for a later one with the same number.
 * `startTime`: boot id and clock ticks since that boot; null where the system does not tell
 */
export type ProcessIdentity = { pid: number, startTime: string | null }

/** Fields of proc_pid_stat(5). */
const STATE_FIELD = 3
const START_TIME_FIELD = 22

export function identifyProcess (pid: number): ProcessIdentity {
  return { pid, startTime: lookUp(pid)?.startTime ?? null }
}

/** Tells whether this very process is there and has not ended */
export function isAlive ({ pid, startTime }: ProcessIdentity): boolean {
  if (process.platform !== 'linux') return canSignal(pid)
  const found = lookUp(pid)
  return found !== null && found.state !== 'Z' && found.state !== 'X' &&
    (startTime === null || found.startTime === startTime)
}

/** Signals this very process, and no other that has got its number since. */
export function signalProcess (identity: ProcessIdentity, signal: NodeJS.Signals) {
  if (!isAlive(identity)) return
  // It may have ended in between.
  unless('ESRCH', () => process.kill(identity.pid, signal))
}

function lookUp (pid: number): { state: string, startTime: string } | null {
  // ENOENT: the system does not tell when it booted.
  return attempt(() => {
    const fields = statOf(pid)
    return fields && { state: fields[STATE_FIELD], startTime: `${bootId()}:${fields[START_TIME_FIELD]}` }
  })
}

let knownBootId: string | undefined

function bootId () {
  knownBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return knownBootId
}

function canSignal (pid: number) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it lives under another user.
    return errorCode(error) === 'EPERM'
  }
}

/** @returns in which the numbers of processes hold here; null: the system does not tell */
export function pidNamespace (): string | null {
  // ENOENT: another system.
  return attempt(() => readlinkSync('/proc/self/ns/pid'))
}
