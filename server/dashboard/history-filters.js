import { DeckError } from '../errors.js'
import { EVENT_TYPES, PROBLEM_TYPES } from '../events/kinds.js'

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
  { value: 'problems', label: 'Problems', types: [...PROBLEM_TYPES] },
  { value: 'worker.exited', label: 'Exits', types: 'worker.exited' },
  { value: 'worker.*', label: 'Everything about workers', types: 'worker.*' },
  { value: 'rollout.*', label: 'Rollouts', types: 'rollout.*' },
  { value: 'scale.*', label: 'Scaling', types: 'scale.*' },
  { value: 'release.*', label: 'Releases', types: 'release.*' },
  { value: 'master.*', label: 'Master', types: 'master.*' },
  { value: 'history.*', label: 'History database', types: 'history.*' }
])

/** Single types that are no group of their own. */
export const SINGLE_TYPES = EVENT_TYPES.filter((type) => TYPE_GROUPS.every(({ value }) => value !== type))

const WHOLE_NUMBER = /^[1-9]\d{0,14}$/
const NAME = /^[\w.*-]{1,64}$/

/** @type {Readonly<Record<keyof Filters, { expected: string, accepts: (text: string) => boolean }>>} */
const RULES = Object.freeze({
  q: { expected: 'at most 100 characters', accepts: (text) => text.length <= 100 },
  type: { expected: 'an event type, a family such as worker.*, or problems', accepts: (text) => NAME.test(text) },
  cause: { expected: 'a cause such as crash', accepts: (text) => NAME.test(text) },
  slot: { expected: 'a whole number from 1', accepts: (text) => WHOLE_NUMBER.test(text) },
  worker: { expected: 'a whole number from 1', accepts: (text) => WHOLE_NUMBER.test(text) },
  release: { expected: 'a release such as r1', accepts: (text) => NAME.test(text) },
  rollout: { expected: 'a whole number from 1', accepts: (text) => WHOLE_NUMBER.test(text) },
  range: { expected: Object.keys(RANGES).join(', '), accepts: (text) => Object.hasOwn(RANGES, text) },
  since: { expected: 'a time in ISO 8601', accepts: (text) => !Number.isNaN(Date.parse(text)) },
  until: { expected: 'a time in ISO 8601', accepts: (text) => !Number.isNaN(Date.parse(text)) }
})

const NAMES = /** @type {(keyof Filters)[]} */ (Object.keys(RULES))

/**
 * @param {URLSearchParams} params  empty ones and ones that are no filter are left out
 * @returns {Filters} in a fixed order, so that equal filters have equal URLs
 * @throws {DeckError} `invalid-query`
 */
export function parseFilters (params) {
  /** @type {Filters} */
  const filters = {}
  for (const name of NAMES) {
    const text = (params.get(name) ?? '').trim()
    if (text === '') continue
    if (!RULES[name].accepts(text)) {
      throw new DeckError('invalid-query', `${name}: expected ${RULES[name].expected}, received ${JSON.stringify(text.slice(0, 60))}`)
    }
    filters[name] = text
  }
  return filters
}

/**
 * @param {Filters} filters
 * @param {number} now ms since the epoch
 * @returns {import('../../db/event-pages.js').EventQuery}
 */
export function toEventQuery ({ q, type, cause, slot, worker, release, rollout, range, since, until }, now) {
  const number = (/** @type {string | undefined} */ text) => text === undefined ? undefined : Number(text)
  const types = TYPE_GROUPS.find(({ value }) => value === type)?.types ?? type
  const rangeStart = range && new Date(now - RANGES[/** @type {keyof typeof RANGES} */ (range)].ms).toISOString()
  const query = { q, type: types, cause, slot: number(slot), worker: number(worker), release, rollout: number(rollout), since: since ?? rangeStart, until }
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined && value !== ''))
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
  const text = String(params).replaceAll('%3A', ':').replaceAll('*', '*')
  return text ? `${path}?${text}` : path
}

/** @param {unknown} error @returns {{ status: number, title: string, message: string }} what a page says in place of its list */
export function toShownProblem (error) {
  if (error instanceof DeckError) return { status: error.status, title: error.title, message: error.message }
  const { status, title } = new DeckError('history-unavailable', '')
  return { status, title, message: 'The cluster goes on; this page works again once the database does.' }
}
