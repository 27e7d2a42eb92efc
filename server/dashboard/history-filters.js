import { z } from 'zod'
import { eventFilters } from '../api/filters.js'
import { parseFields } from '../api/input.js'
import { DeckError } from '../errors.js'
import { EVENT_TYPES } from '../events/kinds.js'

/**
 * The filters of the history page as they stand in its URL.
 * @typedef {Partial<Record<'q' | 'type' | 'cause' | 'slot' | 'worker' | 'release' | 'rollout' | 'range' | 'since' | 'until', string>>} Filters
 */

const MINUTE_MS = 60_000

/** How far back, for people who think in minutes and days. */
export const RANGES = Object.freeze({
  '15m': { label: 'Last 15 minutes', ms: 15 * MINUTE_MS },
  '1h': { label: 'Last hour', ms: 60 * MINUTE_MS },
  '24h': { label: 'Last 24 hours', ms: 24 * 60 * MINUTE_MS },
  '7d': { label: 'Last 7 days', ms: 7 * 24 * 60 * MINUTE_MS }
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

const RANGE = z.enum(/** @type {(keyof typeof RANGES)[]} */ (Object.keys(RANGES))).optional().describe(`one of ${Object.keys(RANGES).join(', ')}`)

/**
 * @param {URLSearchParams} params  empty ones and ones that are no filter are left out
 * @param {number} now ms since the epoch
 * @returns {{ filters: Filters, query: import('../../db/event-pages.js').EventQuery }} `filters`: as they stand in the URL
 * @throws {DeckError} `invalid-query`
 */
export function parseFilters (params, now) {
  const { texts, values: { range, ...query } } = parseFields(z.object({ ...eventFilters(() => now), range: RANGE }), params)
  return { filters: texts, query: range === undefined ? query : { since: now - RANGES[range].ms, ...query } }
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
  const text = String(params).replaceAll('%3A', ':')
  return text ? `${path}?${text}` : path
}

/** @param {unknown} error @returns {{ status: number, title: string, message: string }} what a page says in place of its list */
export function toShownProblem (error) {
  if (error instanceof DeckError) return { status: error.status, title: error.title, message: error.message }
  const { status, title } = new DeckError('history-unavailable', '')
  return { status, title, message: 'The cluster keeps running; this page returns once the database works.' }
}
