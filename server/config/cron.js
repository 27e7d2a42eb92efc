import { Cron } from 'croner'

/** Five fields begin with minutes, six with seconds. */
const FIELDS = [5, 6]

/** @param {string} text @returns {boolean} whether it is a cron expression that fits some time in the future */
export function isCron (text) {
  return FIELDS.includes(text.trim().split(/\s+/).length) && nextRun(text, new Date()) !== null
}

/**
 * @param {string} text a cron expression @param {Date} after
 * @param {string} [timeZone]  default: that of this process
 * @returns {Date | null} null: never, also where it is no such expression
 */
export function nextRun (text, after, timeZone) {
  try {
    return new Cron(text, { paused: true, timezone: timeZone }).nextRun(after)
  } catch {
    // TypeError, RangeError: no such expression. The option says what is expected.
    return null
  }
}

/**
 * @param {Record<string, string | undefined>} env of the shell that an app is from
 * @returns {string | undefined} its time zone; undefined: it is that of this process, or a description in place of a name (tzset(3))
 */
export function timeZoneOf ({ TZ: name }) {
  return name && name !== process.env.TZ ? knownTimeZone(name) : undefined
}

/** @param {string} name @returns {boolean} */
export function isTimeZone (name) {
  return knownTimeZone(name) !== undefined
}

/** @param {string} name @returns {string | undefined} as it is called today */
function knownTimeZone (name) {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    // RangeError: no such name.
    return undefined
  }
}
