import { z } from 'zod'
import { eventFilters } from '../api/filters.js'
import { parseFields } from '../api/input.js'
import { DeckError } from '../errors.js'
import { EVENT_TYPES } from '../events/kinds.js'
import { instantOf, isZone, wallClock } from './zoned-time.js'

/**
 * The filters of the history page, as in its URL.
 * @typedef {Partial<Record<'q' | 'type' | 'cause' | 'slot' | 'worker' | 'release' | 'rollout' | 'range' | 'since' | 'until' | 'zone', string>>} Filters
 * @typedef {{ deployed: () => number, started: () => number }} Marks  when the last deploy and this master began, ms since the epoch
 */

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** How many rollouts are searched for the last deploy. */
const MAX_ROLLOUTS = 50
const MAX_GIVEN_CHARS = 100

/**
 * Named ranges of time. `isDaily`: depends on the time zone; `isRare`: shown only while it is chosen.
 * @type {Readonly<Record<string, {
 *   label: string,
 *   isRare?: boolean,
 *   isDaily?: boolean,
 *   times: (at: { now: number, zone: string, marks: Marks }) => { since: number, until?: number }
 * }>>}
 */
export const RANGES = Object.freeze({
  '15m': { label: 'Last 15 minutes', isRare: true, times: ({ now }) => ({ since: now - 15 * MINUTE_MS }) },
  '1h': { label: 'Last hour', times: ({ now }) => ({ since: now - HOUR_MS }) },
  '24h': { label: 'Last 24 hours', isRare: true, times: ({ now }) => ({ since: now - DAY_MS }) },
  today: { label: 'Today', isDaily: true, times: ({ now, zone }) => ({ since: hourOfDay(now, zone, 0) }) },
  night: { label: 'Last night', isDaily: true, times: ({ now, zone }) => ({ since: hourOfDay(now, zone, -2), until: hourOfDay(now, zone, 8) }) },
  yesterday: { label: 'Yesterday', isDaily: true, times: ({ now, zone }) => ({ since: hourOfDay(now, zone, -24), until: hourOfDay(now, zone, 0) }) },
  '7d': { label: 'Last 7 days', times: ({ now }) => ({ since: now - 7 * DAY_MS }) },
  deploy: { label: 'Since the last deploy', times: ({ marks }) => ({ since: marks.deployed() }) },
  master: { label: 'Since the master started', times: ({ marks }) => ({ since: marks.started() }) }
})

/** Groups of event types, by their value in the URL. */
export const TYPE_GROUPS = Object.freeze([
  { value: 'problems', label: 'Problems' },
  { value: 'worker.exited', label: 'Exits' },
  { value: 'worker.*', label: 'Everything about workers' },
  { value: 'rollout.*', label: 'Rollouts' },
  { value: 'scale.*', label: 'Scaling' },
  { value: 'release.*', label: 'Releases' },
  { value: 'master.*', label: 'Master' },
  { value: 'fleet.*', label: 'Fleet' },
  { value: 'history.*', label: 'History database' }
])

/** Event types that are not already listed as a group. */
export const SINGLE_TYPES = EVENT_TYPES.filter((type) => TYPE_GROUPS.every(({ value }) => value !== type))

/** What the history of a host can be filtered by. */
export const HOST_TYPE_GROUPS = Object.freeze([
  { value: 'problems', label: 'Problems' },
  { value: 'app.*', label: 'Apps' },
  { value: 'master.*', label: 'Master' },
  { value: 'fleet.*', label: 'Fleet' },
  { value: 'access.*', label: 'Access' },
  { value: 'token.*', label: 'Tokens' },
  { value: 'history.*', label: 'History database' }
])

const OF_HOST = /^(?:master|keeper|app|fleet|access|token|history)\./
export const HOST_TYPES = EVENT_TYPES.filter((type) => OF_HOST.test(type))

const RANGE = z.enum(Object.keys(RANGES)).optional().describe(`one of ${Object.keys(RANGES).join(', ')}`)
const ZONE = z.string().regex(/^[A-Za-z0-9_+/-]{1,64}$/).refine(isZone).optional().describe('a time zone such as Europe/Berlin')
/** Ranges that begin with a deploy or a start of one deck, and so make no sense for several. */
export const RANGES_OF_DECK = Object.freeze(['deploy', 'master'])
/** Marks for callers without a cluster. @type {Marks} */
const NO_MARKS = Object.freeze({ deployed: () => 0, started: () => 0 })

/**
 * @param {URLSearchParams} params  empty and unknown ones are ignored
 * @param {number} now ms since the epoch
 * @param {Marks} [marks]
 * @returns {{ filters: Filters, query: import('../../db/event-search.js').EventQuery }} `filters`: as in the URL
 * @throws {DeckError} `invalid-query`
 */
export function parseFilters (params, now, marks = NO_MARKS) {
  return parseWithRange(eventFilters(() => now), params, { now, marks })
}

/**
 * @template {import('zod').ZodRawShape} F @param {F} fields @param {URLSearchParams} params @param {{ now: number, marks?: Marks }} at
 * @returns {{ filters: Filters & Record<string, string>, query: import('zod').infer<import('zod').ZodObject<F>> & { since?: number, until?: number } }} `filters`: as in the URL
 * @throws {DeckError} `invalid-query`
 */
export function parseWithRange (fields, params, { now, marks = NO_MARKS }) {
  const { texts: given, values } = parseFields(z.object({ ...fields, range: RANGE, zone: ZONE }), params)
  const texts = /** @type {Filters & Record<string, string>} */ (given)
  const { range, zone = 'UTC', ...query } = /** @type {{ range?: string, zone?: string }} */ (values)
  // A zone only matters for a range of days.
  if (range === undefined || !RANGES[range].isDaily) delete texts.zone
  return { filters: texts, query: /** @type {any} */ (range === undefined ? query : { ...RANGES[range].times({ now, zone, marks }), ...query }) }
}

/** @param {string} path @param {Filters} filters @param {readonly string[]} [without]  names of ranges @returns {{ value: string, label: string, url: string, isCurrent: boolean, isDaily: boolean }[]} */
export function rangeLinks (path, filters, without = []) {
  const isAny = !filters.range && !filters.since && !filters.until
  const rangeUrl = (/** @type {string | undefined} */ range) => urlOf(path, filters, {
    range,
    since: undefined,
    until: undefined,
    zone: range && RANGES[range].isDaily ? filters.zone : undefined
  })
  const shown = Object.entries(RANGES).filter(([value, { isRare }]) => (!isRare || filters.range === value) && !without.includes(value))
  return [
    { value: '', label: 'Any time', url: rangeUrl(undefined), isCurrent: isAny, isDaily: false },
    ...shown.map(([value, { label, isDaily = false }]) => ({ value, label, url: rangeUrl(value), isCurrent: filters.range === value, isDaily }))
  ]
}

/** @typedef {{ snapshot: () => { master: { startedAt: string } } }} Started  a deck, or a host */

/**
 * @param {{ history: Pick<import('../../db/history.js').History, 'rollouts'>, deck: Started }} sources
 * @returns {Marks}
 */
export function marksOf ({ history, deck }) {
  return {
    deployed () {
      const last = history.rollouts({ limit: MAX_ROLLOUTS }).items.find(({ kind }) => kind === 'deploy')
      return Date.parse(last?.startedAt ?? deck.snapshot().master.startedAt)
    },
    started: () => Date.parse(deck.snapshot().master.startedAt)
  }
}

/** @param {number} now @param {string} zone @param {number} hour after the midnight before now */
function hourOfDay (now, zone, hour) {
  return instantOf(Math.floor(wallClock(now, zone) / DAY_MS) * DAY_MS + hour * HOUR_MS, zone)
}

/**
 * @param {string} path
 * @param {Filters & Record<string, string | undefined>} filters
 * @param {Record<string, string | undefined>} [changes] undefined removes a filter
 */
export function urlOf (path, filters, changes = {}) {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...filters, ...changes })) {
    if (value) params.set(name, value)
  }
  const text = String(params).replaceAll('%3A', ':').replaceAll('%2F', '/')
  return text ? `${path}?${text}` : path
}

/** Keeps filters as they are given, though they are wrong, so that the fields show them. @param {URLSearchParams} params @returns {Record<string, string>} */
export function givenFilters (params) {
  return Object.fromEntries(Array.from(params, ([name, text]) => [name, text.slice(0, MAX_GIVEN_CHARS)]).filter(([, text]) => text !== ''))
}

/** @param {unknown} error @returns {{ status: number, title: string, message: string }} what a page shows in place of its list */
export function toShownProblem (error) {
  if (error instanceof DeckError) return { status: error.status, title: error.title, message: error.message }
  const { status, title } = new DeckError('history-unavailable', '')
  return { status, title, message: 'The cluster keeps running; this page returns once the database works.' }
}
