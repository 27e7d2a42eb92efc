import { Cron } from 'croner'

/** Five fields begin with minutes, six with seconds. */
const FIELDS = [5, 6]

/** @param {string} text @returns {boolean} whether it is a cron expression that fits some time in the future */
export function isCron (text) {
  return FIELDS.includes(text.trim().split(/\s+/).length) && nextRun(text, new Date()) !== null
}

/**
 * @param {string} text a cron expression, in the time zone of this machine @param {Date} after
 * @returns {Date | null} null: never, also where it is no such expression
 */
export function nextRun (text, after) {
  try {
    return new Cron(text, { paused: true }).nextRun(after)
  } catch {
    // TypeError, RangeError: no such expression. The option says what is expected.
    return null
  }
}
