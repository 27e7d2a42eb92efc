import { Cron } from 'croner'

/** Minutes first, or seconds before them. */
const FIELDS = [5, 6]

/** @param {string} text @returns {boolean} whether it is a cron expression that a time to come fits */
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
    // A TypeError or RangeError that says what is wrong with it: the option says what is expected.
    return null
  }
}
