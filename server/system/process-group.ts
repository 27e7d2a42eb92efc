import { attempt, errorCode } from '../errors.ts'

/** Tells whether anybody is left in its group */
export function isGroupAlive (leader: number): boolean {
  // ESRCH: nobody. EPERM: they are somebody else's by now.
  return attempt(() => process.kill(-leader, 0), false)
}

/** `signal`: for all that are left in its group */
export function signalGroup (leader: number, signal: NodeJS.Signals) {
  try {
    process.kill(-leader, signal)
  } catch (error) {
    // ESRCH: nobody is left in it. EPERM: those who are have become somebody else's.
    if (!['ESRCH', 'EPERM'].includes(String(errorCode(error)))) throw error
  }
}
