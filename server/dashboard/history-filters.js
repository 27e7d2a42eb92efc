import { z } from 'zod'
import { eventFilters } from '../api/filters.js'
import { parseFields } from '../api/input.js'
import { DeckError } from '../errors.js'
import { EVENT_TYPES } from '../events/kinds.js'
import { instantOf, isZone, wallClock } from './zoned-time.js'

/**
 * The filters of the history page as they stand in its URL.
 * @typedef {Partial<Record<'q' | 'type' | 'cause' | 'slot' | 'worker' | 'release' | 'rollout' | 'range' | 'since' | 'until' | 'zone', string>>} Filters
 * @typedef {{ deployed: () => number, started: () => number }} Marks  when, in ms since the epoch, the last deploy and this master began
 */

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Among which the last deploy is looked for. */
const MAX_ROLLOUTS = 50

/**
 * Times by the names that people have for them. `isDaily`: by the days of a time zone.
 * @type {Readonly<Record<string, { label: string, isRare?: boolean, isDaily?: boolean, times: (at: { now: number, zone: string, marks: Marks }) => { since: number, until?: number } }>>}
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

/** Types that belong together, by the name that the URL has for them. */
export const TYPE_GROUPS = Object.freeze([
  { value: 'problems', label: 'Problems' },
  { value: 'worker.exited', label: 'Exits' },
  { value: 'worker.*', label: 'Everything about workers' },
  { value: 'rollout.*', label: 'Rollouts' },
  { value: 'scale.*', label: 'Scaling' },
  { value: 'release.*', label: 'Releases' },
  { value: 'master.*', label: 'Master' },
  { value: 'history.*', label: 'History database' }
])

/** Single types that are no group of their own. */
export const SINGLE_TYPES = EVENT_TYPES.filter((type) => TYPE_GROUPS.every(({ value }) => value !== type))

const RANGE = z.enum(Object.keys(RANGES)).optional().describe(`one of ${Object.keys(RANGES).join(', ')}`)
const ZONE = z.string().regex(/^[A-Za-z0-9_+/-]{1,64}$/).refine(isZone).optional().describe('a time zone such as Europe/Berlin')
/** Of a cluster that nobody has asked. @type {Marks} */
const NO_MARKS = Object.freeze({ deployed: () => 0, started: () => 0 })

/**
 * @param {URLSearchParams} params  empty ones and ones that are no filter are left out
 * @param {number} now ms since the epoch
 * @param {Marks} [marks]
 * @returns {{ filters: Filters, query: import('../../db/event-search.js').EventQuery }} `filters`: as they stand in the URL
 * @throws {DeckError} `invalid-query`
 */
export function parseFilters (params, now, marks = NO_MARKS) {
  const { texts, values: { range, zone = 'UTC', ...query } } = parseFields(z.object({ ...eventFilters(() => now), range: RANGE, zone: ZONE }), params)
  // A zone says what a day is, and nothing by itself.
  if (range === undefined || !RANGES[range].isDaily) delete texts.zone
  return { filters: texts, query: range === undefined ? query : { ...RANGES[range].times({ now, zone, marks }), ...query } }
}

/**
 * @param {{ history: Pick<import('../../db/history.js').History, 'rollouts'>, deck: Pick<import('../deck.js').Deck, 'snapshot'> }} sources
 * @returns {Marks}
 */
export function marksOf ({ history, deck }) {
  return {
    deployed: () => Date.parse(history.rollouts({ limit: MAX_ROLLOUTS }).items.find(({ kind }) => kind === 'deploy')?.startedAt ?? deck.snapshot().master.startedAt),
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
 * @param {Record<string, string | undefined>} [changes] undefined takes a filter away
 */
export function urlOf (path, filters, changes = {}) {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...filters, ...changes })) {
    if (value) params.set(name, value)
  }
  const text = String(params).replaceAll('%3A', ':').replaceAll('%2F', '/')
  return text ? `${path}?${text}` : path
}

/** @param {unknown} error @returns {{ status: number, title: string, message: string }} what a page says in place of its list */
export function toShownProblem (error) {
  if (error instanceof DeckError) return { status: error.status, title: error.title, message: error.message }
  const { status, title } = new DeckError('history-unavailable', '')
  return { status, title, message: 'The cluster keeps running; this page returns once the database works.' }
}
