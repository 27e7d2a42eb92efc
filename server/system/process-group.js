import { errorCode } from '../errors.js'

/** @param {number} leader @returns {boolean} whether anybody is left in its group */
export function isGroupAlive (leader) {
  try {
    return process.kill(-leader, 0)
  } catch {
    // ESRCH: nobody. EPERM: they are somebody else's by now.
    return false
  }
}

/** @param {number} leader @param {NodeJS.Signals} signal for all that are left in its group */
export function signalGroup (leader, signal) {
  try {
    process.kill(-leader, signal)
  } catch (error) {
    // ESRCH: nobody is left in it. EPERM: those who are have become somebody else's.
    if (!['ESRCH', 'EPERM'].includes(String(errorCode(error)))) throw error
  }
}
