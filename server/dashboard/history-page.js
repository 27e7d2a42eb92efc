import { ID } from '../config/id.js'
import { DeckError } from '../errors.js'
import { CAUSES } from '../events/kinds.js'
import { RANGES, SINGLE_TYPES, TYPE_GROUPS, parseFilters, toShownProblem, urlOf } from './history-filters.js'
import { toShownEvent } from './shown-event.js'

/**
 * What the history pages show.
 * @typedef {import('./history-filters.js').Filters} Filters
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {Pick<import('../../db/history.js').History, 'page' | 'event'>} History
 */

const PAGE_SIZE = 50
const MAX_TRAIL = 40
const TRAIL = /^[\w-]{0,40}(\.[\w-]{1,40})*$/

/** The elements of the page that change, by id; each is the partial of the same name. */
export const HISTORY_FRAGMENTS = Object.freeze(['events'])

/**
 * @param {{ history: History, params: URLSearchParams, now: number }} parts
 * @returns the model of the page; `problem` holds what is wrong with the filters or the database, if anything
 */
export function historyModel ({ history, params, now }) {
  const choices = { groups: TYPE_GROUPS, types: SINGLE_TYPES, causes: CAUSES, ranges: Object.entries(RANGES).map(([value, { label }]) => ({ value, label })) }
  try {
    const { filters, query } = parseFilters(params, now)
    const { cursor, trail } = parsePlace(params)
    const { items, next } = history.page({ ...query, limit: PAGE_SIZE, cursor })
    return {
      now,
      choices,
      filters,
      problem: null,
      isFirstPage: cursor === undefined,
      isFiltered: Object.keys(filters).length > 0,
      events: items.map(toShownEvent),
      // The search had a time limit: there may be more, though this page is not full.
      isCutShort: next !== null && items.length < PAGE_SIZE,
      links: { ...pageLinks(filters, { cursor, trail, next }), csv: urlOf('/history.csv', filters), clear: '/history', without: withoutLinks(filters) },
      canonicalUrl: urlOf('/history', filters, { cursor, trail: trail.join('.') || undefined })
    }
  } catch (error) {
    return { ...blankModel(params, now), choices, problem: toShownProblem(error) }
  }
}

/** @param {{ params: URLSearchParams, now: number }} parts @throws {DeckError} `invalid-query` */
export function exportQuery ({ params, now }) {
  return parseFilters(params, now).query
}

/** @param {{ history: History, id: string, now: number }} parts @throws {DeckError} `not-found`, or the database's */
export function eventModel ({ history, id, now }) {
  const event = ID.test(id) ? history.event(Number(id)) : null
  if (!event) throw new DeckError('not-found', `Event ${JSON.stringify(id.slice(0, 40))} does not exist or is no longer kept`)
  const { errorName, stack, ...rest } = event.detail ?? {}
  const neighbour = (/** @type {number} */ step) => history.event(event.id + step) ? `/history/${event.id + step}` : null
  return {
    now,
    event: toShownEvent(event),
    errorName: errorName === undefined ? null : String(errorName),
    stack: stack === undefined ? null : String(stack),
    detail: Object.keys(rest).length === 0 ? null : JSON.stringify(rest, null, 2),
    links: { newer: neighbour(1), older: neighbour(-1) }
  }
}

/**
 * The history is read in one direction only, so a page remembers the cursors of those before it.
 * @param {URLSearchParams} params
 * @returns {{ cursor: string | undefined, trail: string[] }}
 */
function parsePlace (params) {
  const cursor = params.get('cursor') || undefined
  const trail = params.get('trail') ?? ''
  if (!TRAIL.test(trail)) throw new DeckError('invalid-query', 'trail: expected the cursors of earlier pages')
  return { cursor, trail: trail === '' ? [] : trail.split('.').slice(-MAX_TRAIL) }
}

/** @param {Filters} filters @param {{ cursor: string | undefined, trail: string[], next: string | null }} place */
function pageLinks (filters, { cursor, trail, next }) {
  const link = (/** @type {string | undefined} */ to, /** @type {string[]} */ via) => urlOf('/history', filters, { cursor: to, trail: via.slice(-MAX_TRAIL).join('.') })
  return {
    older: next === null ? null : link(next, cursor === undefined ? trail : [...trail, cursor]),
    newer: cursor === undefined ? null : link(trail.at(-1), trail.slice(0, -1)),
    newest: cursor === undefined ? null : urlOf('/history', filters)
  }
}

/** Filters that have no field of their own are shown as chips that can be taken away. */
function withoutLinks (/** @type {Filters} */ filters) {
  const chips = /** @type {const} */ (['release', 'rollout', 'since', 'until'])
  return chips.filter((name) => filters[name]).map((name) => ({ name, value: filters[name], url: urlOf('/history', filters, { [name]: undefined }) }))
}

/** @param {URLSearchParams} params @param {number} now */
function blankModel (params, now) {
  return {
    now,
    filters: /** @type {Filters} */ (Object.fromEntries([...params].map(([name, value]) => [name, value.slice(0, 100)]))),
    isFirstPage: false,
    isFiltered: true,
    events: /** @type {import('./shown-event.js').ShownEvent[]} */ ([]),
    isCutShort: false,
    links: { older: null, newer: null, newest: null, csv: null, clear: '/history', without: [] },
    canonicalUrl: '/history'
  }
}
