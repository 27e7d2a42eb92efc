import { timeZone } from './times.ts'

/**
 * A field for a date and a time of day, such as `2026-12-31 23:59:30`, in the time zone of the page, which it names. It
 * is a text: browsers show their own fields for a time with AM and PM where their language does.
 */

const SHAPE = /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?$/

/** `at`: ms since the epoch; undefined: none */
export function showTime (field: HTMLInputElement, at: number | undefined) {
  field.value = at === undefined ? '' : writtenTime(at)
  field.setCustomValidity('')
  const zone = field.parentElement?.querySelector('[data-time-zone]')
  if (zone) zone.textContent = timeZone() ?? Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** @returns ISO 8601; empty: there is none; null: it is no time, which the field says */
export function timeIn (field: HTMLInputElement): string | null {
  const text = field.value.trim()
  const read = text.replace(' ', 'T') + (timeZone() === 'UTC' ? 'Z' : '')
  const isTime = text === '' || (SHAPE.test(text) && !Number.isNaN(Date.parse(read)))
  field.setCustomValidity(isTime ? '' : `Expected a time of 24 hours such as ${writtenTime(Date.now())}`)
  if (!field.reportValidity()) return null
  return text === '' ? '' : new Date(read).toISOString()
}

function writtenTime (at: number): string {
  const offsetMs = timeZone() === 'UTC' ? 0 : new Date(at).getTimezoneOffset() * 60_000
  return new Date(at - offsetMs).toISOString().slice(0, 19).replace('T', ' ')
}
