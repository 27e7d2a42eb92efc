import { z, type ZodObject, type ZodRawShape } from 'zod'
import { eventFilters } from '../api/filters.ts'
import { parseFields } from '../api/input.ts'
import { attempt, DeckError } from '../errors.ts'
import { EVENT_TYPES, kindOf } from './kinds.ts'
import type { EventQuery } from '../../db/event-search.ts'
import type { History } from '../../db/history.ts'

/** The filters of the history page, as in its URL. */
export type Filters = Partial<
  Record<
    'q' | 'type' | 'cause' | 'slot' | 'worker' | 'release' | 'rollout' | 'range' | 'since' | 'until' | 'zone'
      | 'member',
    string
  >
>
/** when the last deploy and this master began, ms since the epoch */
export type Marks = { deployed: () => number, started: () => number }

const MAX_ZONES = 50
/** kept, as a formatter is expensive to make */
const formats: Map<string, Intl.DateTimeFormat> = new Map()

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** How many rollouts are searched for the last deploy. */
const MAX_ROLLOUTS = 50
const MAX_GIVEN_CHARS = 100

/** Named ranges of time. `isDaily`: depends on the time zone; `isRare`: shown only while it is chosen. */
export const RANGES: Readonly<
  Record<string,
    { label: string, isRare?: boolean, isDaily?: boolean,
      times: (at: { now: number, zone: string, marks: Marks }) => { since: number, until?: number } }>
> = Object.freeze({
  '15m': { label: 'Last 15 minutes', isRare: true, times: ({ now }) => ({ since: now - 15 * MINUTE_MS }) },
  '1h': { label: 'Last hour', times: ({ now }) => ({ since: now - HOUR_MS }) },
  '24h': { label: 'Last 24 hours', isRare: true, times: ({ now }) => ({ since: now - DAY_MS }) },
  today: { label: 'Today', isDaily: true, times: ({ now, zone }) => ({ since: hourOfDay(now, zone, 0) }) },
  night: { label: 'Last night', isDaily: true,
    times: ({ now, zone }) => ({ since: hourOfDay(now, zone, -2), until: hourOfDay(now, zone, 8) }) },
  yesterday: { label: 'Yesterday', isDaily: true,
    times: ({ now, zone }) => ({ since: hourOfDay(now, zone, -24), until: hourOfDay(now, zone, 0) }) },
  '7d': { label: 'Last 7 days', times: ({ now }) => ({ since: now - 7 * DAY_MS }) },
  deploy: { label: 'Since the last deploy', times: ({ marks }) => ({ since: marks.deployed() }) },
  master: { label: 'Since the master started', times: ({ marks }) => ({ since: marks.started() }) }
})

/** Groups of event types, by their value in the URL. */
export const TYPE_GROUPS = Object.freeze([{ value: 'problems', label: 'Problems' }, { value: 'worker.exited',
  label: 'Exits' }, { value: 'worker.*', label: 'Everything about workers' }, { value: 'rollout.*', label: 'Rollouts' },
  { value: 'scale.*', label: 'Scaling' }, { value: 'release.*', label: 'Releases' }, { value: 'master.*',
  label: 'Master' }, { value: 'fleet.*', label: 'Fleet' }, { value: 'history.*', label: 'History database' }])

/** Event types that are not already listed as a group, with what each is called. */
export const SINGLE_TYPES = EVENT_TYPES.filter((type) => TYPE_GROUPS.every(({ value }) => value !== type)).map((type) =>
  [type, kindOf({ type, cause: null }).label] as const
)

/** What the history of a host can be filtered by. */
export const HOST_TYPE_GROUPS = Object.freeze([...TYPE_GROUPS, { value: 'app.*', label: 'Apps' }, { value: 'access.*',
  label: 'Access' }, { value: 'token.*', label: 'Tokens' }])

const RANGE = z.enum(Object.keys(RANGES)).optional().describe(`one of ${Object.keys(RANGES).join(', ')}`)
const ZONE = z.string().regex(/^[A-Za-z0-9_+/-]{1,64}$/).refine((zone) => attempt(() => formatIn(zone)) !== null)
  .optional().describe('a time zone such as Europe/Berlin')
/** Ranges that begin with a deploy or a start of one deck, and so make no sense for several. */
export const RANGES_OF_DECK = Object.freeze(['deploy', 'master'])
/** Marks for callers without a cluster. */
const NO_MARKS: Marks = Object.freeze({ deployed: () => 0, started: () => 0 })

/**
 * `params`: empty and unknown ones are ignored; `now`: ms since the epoch. Returns `filters`: as in the URL.
 * @throws {DeckError} `invalid-query`
 */
export function parseFilters (params: URLSearchParams, now: number,
  marks: Marks = NO_MARKS): { filters: Filters, query: EventQuery }
{
  return parseWithRange(eventFilters(() => now), params, { now, marks })
}

/** Returns `filters`: as in the URL @throws {DeckError} `invalid-query` */
export function parseWithRange<F extends ZodRawShape> (fields: F, params: URLSearchParams,
  { now, marks = NO_MARKS }: { now: number, marks?: Marks }
): { filters: Filters & Record<string, string>, query: z.infer<ZodObject<F>> & { since?: number, until?: number } } {
  const { texts: given, values } = parseFields(z.object({ ...fields, range: RANGE, zone: ZONE }), params)
  const texts = given as Filters & Record<string, string>
  const { range, zone = 'UTC', ...query } = values as { range?: string, zone?: string }
  // A zone only matters for a range of days.
  if (range === undefined || !RANGES[range].isDaily) delete texts.zone
  return { filters: texts,
    query: (range === undefined ? query : { ...RANGES[range].times({ now, zone, marks }), ...query }) as z.infer<
      ZodObject<F>
    > & { since?: number, until?: number } }
}

/** `without`: names of ranges */
export function rangeLinks (path: string, filters: Filters,
  without: readonly string[] = []
): { value: string, label: string, url: string, isCurrent: boolean, isDaily: boolean }[] {
  const isAny = !filters.range && !filters.since && !filters.until
  const rangeUrl = (range: string | undefined) =>
    urlOf(path, filters, { range, since: undefined, until: undefined,
      zone: range && RANGES[range].isDaily ? filters.zone : undefined })
  const shown = Object.entries(RANGES).filter(([value, { isRare }]) =>
    (!isRare || filters.range === value) && !without.includes(value)
  )
  return [{ value: '', label: 'Any time', url: rangeUrl(undefined), isCurrent: isAny, isDaily: false },
    ...shown.map(([value, { label, isDaily = false }]) => ({ value, label, url: rangeUrl(value),
      isCurrent: filters.range === value, isDaily })
    )]
}

/** a deck, or a host */
export type Started = { snapshot: () => { master: { startedAt: string } } }

export function marksOf ({ history, deck }: { history: Pick<History, 'rollouts'>, deck: Started }): Marks {
  return { deployed () {
    const last = history.rollouts({ limit: MAX_ROLLOUTS }).items.find(({ kind }) => kind === 'deploy')
    return Date.parse(last?.startedAt ?? deck.snapshot().master.startedAt)
  }, started: () => Date.parse(deck.snapshot().master.startedAt) }
}

/** `hour`: after the midnight before now */
function hourOfDay (now: number, zone: string, hour: number) {
  return instantOf(Math.floor(wallClock(now, zone) / DAY_MS) * DAY_MS + hour * HOUR_MS, zone)
}

/** `changes`: undefined removes a filter */
export function urlOf (path: string, filters: Filters & Record<string, string | undefined>,
  changes: Record<string, string | undefined> = {})
{
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...filters, ...changes })) {
    if (value) params.set(name, value)
  }
  const text = String(params).replaceAll('%3A', ':').replaceAll('%2F', '/')
  return text ? `${path}?${text}` : path
}

/** Keeps filters as they are given, though they are wrong, so that the fields show them. */
export function givenFilters (params: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    Array.from(params, ([name, text]) => [name, text.slice(0, MAX_GIVEN_CHARS)]).filter(([, text]) => text !== '')
  )
}

export function toShownProblem (error: unknown): { status: number, title: string, message: string } {
  if (error instanceof DeckError) return { status: error.status, title: error.title, message: error.message }
  const { status, title } = new DeckError('history-unavailable', '')
  return { status, title, message: 'The cluster keeps running; this page returns once the database works.' }
}

/** The wall clock of a zone, as the ms since the epoch at which the clock of UTC shows the same. */
function wallClock (ms: number, zone: string) {
  const part = Object.fromEntries(formatIn(zone).formatToParts(ms).map(({ type, value }) => [type, Number(value)]))
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second)
}

/** When the wall clock of a zone shows this time. `wallMs`: as wallClock has it. */
function instantOf (wallMs: number, zone: string) {
  // The second step corrects for a change of the clocks between the two times.
  const about = wallMs - offsetAt(wallMs, zone)
  return wallMs - offsetAt(about, zone)
}

function offsetAt (ms: number, zone: string) {
  return wallClock(ms, zone) - Math.floor(ms / 1000) * 1000
}

/** @throws {RangeError} unknown zone */
function formatIn (zone: string) {
  const known = formats.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-US', { timeZone: zone, year: 'numeric', month: 'numeric', day: 'numeric',
    hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' })
  if (formats.size >= MAX_ZONES) formats.clear()
  formats.set(zone, made)
  return made
}
