/**
 * The range of time that the charts show, as in the URL of the page: one that ends now, or a fixed one.
 * @typedef {{ name: string, ms: number, step: string, marksStep: string }} LiveRange
 * @typedef {{ sinceMs: number, untilMs: number }} FixedRange
 * @typedef {LiveRange | FixedRange} ChosenRange
 */

/** Ranges that end now, with the steps that GET /api/v1/vitals and /events/counts use for them. @type {Readonly<Record<string, LiveRange>>} */
const RANGES = Object.freeze(Object.fromEntries([
  { name: '15m', ms: 15 * 60_000, step: '1s', marksStep: '5s' },
  { name: '3h', ms: 3 * 3_600_000, step: '10s', marksStep: '1m' },
  { name: '24h', ms: 24 * 3_600_000, step: '1m', marksStep: '5m' },
  { name: '30d', ms: 30 * 24 * 3_600_000, step: '1m', marksStep: '3h' }
].map((range) => [range.name, range])))
const DEFAULT = RANGES['15m']

/** A narrower range would show nothing. */
const MIN_MS = 30_000
const MAX_MS = RANGES['30d'].ms

/** @param {ChosenRange} range @returns {range is LiveRange} */
export function isLive (range) {
  return 'name' in range
}

/** @param {string} name */
export function liveRange (name) {
  return Object.hasOwn(RANGES, name) ? RANGES[name] : DEFAULT
}

/**
 * Widens a range that is too narrow to show anything, and ends it by now.
 * @param {number} sinceMs
 * @param {number} untilMs
 * @param {number} now
 * @returns {FixedRange}
 */
export function fixedRange (sinceMs, untilMs, now) {
  const lengthMs = Math.min(MAX_MS, Math.max(MIN_MS, untilMs - sinceMs))
  const until = Math.min(now, (sinceMs + untilMs + lengthMs) / 2)
  return { sinceMs: Math.round(until - lengthMs), untilMs: Math.round(until) }
}

/** @param {URLSearchParams} params of the page @param {number} now ms since the epoch @returns {ChosenRange} what cannot be read is the default */
export function readRange (params, now) {
  const [sinceMs, untilMs] = ['since', 'until'].map((name) => Date.parse(params.get(name) ?? ''))
  return sinceMs < untilMs && sinceMs < now ? fixedRange(sinceMs, untilMs, now) : liveRange(params.get('range') ?? '')
}

/** @param {URLSearchParams} params of the page @param {ChosenRange} range @returns {URLSearchParams} with this range and whatever else they hold */
export function writeRange (params, range) {
  const written = new URLSearchParams(params)
  for (const name of ['range', 'since', 'until']) written.delete(name)
  if (!isLive(range)) {
    for (const [name, value] of Object.entries(spanParams(range))) written.set(name, value)
  } else if (range !== DEFAULT) {
    written.set('range', range.name)
  }
  return written
}

/** Parameters that the API, the history and the logs share. @param {FixedRange} range */
export function spanParams ({ sinceMs, untilMs }) {
  return { since: new Date(sinceMs).toISOString(), until: new Date(untilMs).toISOString() }
}
