/** The range of time that the charts show, as in the URL of the page: one that ends now, or a fixed one. */
type LiveRange = { name: string, ms: number, step: string, marksStep: string }
type FixedRange = { sinceMs: number, untilMs: number }
export type ChosenRange = LiveRange | FixedRange

/** Ranges that end now, with the steps that GET /api/v1/vitals and /events/counts use for them. */
const RANGES: Readonly<Record<string, LiveRange>> = Object.freeze(
  Object.fromEntries(
    [{ name: '15m', ms: 15 * 60_000, step: '1s', marksStep: '5s' }, { name: '3h', ms: 3 * 3_600_000, step: '10s',
      marksStep: '1m' }, { name: '24h', ms: 24 * 3_600_000, step: '1m', marksStep: '5m' }, { name: '30d',
      ms: 30 * 24 * 3_600_000, step: '1m', marksStep: '3h' }].map((range) => [range.name, range])
  )
)
const DEFAULT = RANGES['15m']

/** A narrower range would show nothing. */
const MIN_MS = 30_000
const MAX_MS = RANGES['30d'].ms

export function isLive (range: ChosenRange): range is LiveRange {
  return 'name' in range
}

export function liveRange (name: string) {
  return Object.hasOwn(RANGES, name) ? RANGES[name] : DEFAULT
}

/** Widens a range that is too narrow to show anything, and ends it by now. */
export function fixedRange (sinceMs: number, untilMs: number, now: number): FixedRange {
  const lengthMs = Math.min(MAX_MS, Math.max(MIN_MS, untilMs - sinceMs))
  const until = Math.min(now, (sinceMs + untilMs + lengthMs) / 2)
  return { sinceMs: Math.round(until - lengthMs), untilMs: Math.round(until) }
}

/** `params`: of the page; `now`: ms since the epoch. Returns what cannot be read is the default. */
export function readRange (params: URLSearchParams, now: number): ChosenRange {
  const [sinceMs, untilMs] = ['since', 'until'].map((name) => Date.parse(params.get(name) ?? ''))
  return sinceMs < untilMs && sinceMs < now ? fixedRange(sinceMs, untilMs, now) : liveRange(params.get('range') ?? '')
}

/** `params`: of the page @returns with this range and whatever else they hold */
export function writeRange (params: URLSearchParams, range: ChosenRange): URLSearchParams {
  const written = new URLSearchParams(params)
  for (const name of ['range', 'since', 'until']) written.delete(name)
  if (!isLive(range)) {
    for (const [name, value] of Object.entries(spanParams(range))) written.set(name, value)
  } else if (range !== DEFAULT) {
    written.set('range', range.name)
  }
  return written
}

/** Parameters that the API, the history and the logs share. */
export function spanParams ({ sinceMs, untilMs }: FixedRange) {
  return { since: new Date(sinceMs).toISOString(), until: new Date(untilMs).toISOString() }
}
