import { Cron } from 'croner'
import { attempt } from '../errors.ts'

/** Five fields begin with minutes, six with seconds. */
const FIELDS = [5, 6]

/** Tells whether it is a cron expression that fits some time in the future */
export function isCron (text: string): boolean {
  return FIELDS.includes(text.trim().split(/\s+/).length) && nextRun(text, new Date()) !== null
}

/**
 * `text`: a cron expression; `timeZone`: default: that of this process. Returns null: never, also where it is no such
 * expression.
 */
export function nextRun (text: string, after: Date, timeZone?: string): Date | null {
  // TypeError, RangeError: no such expression. The option says what is expected.
  return attempt(() => new Cron(text, { paused: true, timezone: timeZone }).nextRun(after))
}

/**
 * `env`: of the shell that an app is from. Returns its time zone; undefined: it is that of this process, or a
 * description in place of a name (tzset(3)).
 */
export function timeZoneOf ({ TZ: name }: Record<string, string | undefined>): string | undefined {
  return name && name !== process.env.TZ ? knownTimeZone(name) : undefined
}

export function isTimeZone (name: string): boolean {
  return knownTimeZone(name) !== undefined
}

/** @returns as it is called today */
function knownTimeZone (name: string): string | undefined {
  // RangeError: no such name.
  return attempt(() => new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone) ?? undefined
}
