import { DeckError } from '../errors.js'
import { CAUSES } from '../causes.js'
import { formatDuration } from '../../public/format.js'
import { historyGaps, NO_GAPS } from './history-gaps.js'
import { foldEvents, readWholeFolds, toSingleRows } from './event-folds.js'
import { HOST_TYPE_GROUPS, HOST_TYPES, SINGLE_TYPES, TYPE_GROUPS, givenFilters, marksOf, parseFilters, rangeLinks, toShownProblem, urlOf } from './history-filters.js'
import { pageLinks, parsePlace } from './page-trail.js'
import { toShownEvent } from './shown-event.js'
import { countTimeline } from './timeline.js'

/**
 * The history page.
 * @typedef {import('./history-filters.js').Filters} Filters
 * @typedef {Pick<import('../../db/history.js').History, 'page'>} History
 * @typedef {import('./history-gaps.js').Gaps} Gaps
 * @typedef {Pick<import('./pages.js').Asked, 'history' | 'params' | 'now' | 'render' | 'can'> & { deck: import('./history-filters.js').Started & Parameters<typeof historyGaps>[0]['deck'] & { settings?: Pick<import('../deck.js').Deck['settings'], 'list'> }, isOfHost?: boolean }} HistoryAsked
 *   `isOfHost`: it is the host's own, where there are no slots and workers
 */

const PAGE_SIZE = 50
/** A folded list fits more events. */
const FOLDED_PAGE_SIZE = 100
/** A list with one of these filters shows every event unfolded. @type {readonly (keyof Filters)[]} */
const UNFOLDING_FILTERS = Object.freeze(['q', 'type', 'cause', 'slot', 'worker', 'rollout'])

/** Filters that the page offers to remove if nothing matches, by label. @type {Readonly<Record<string, (keyof Filters)[]>>} */
const OPTIONAL = Object.freeze({
  'At any time': ['range', 'since', 'until', 'zone'],
  'With any message': ['q'],
  'Of any type': ['type'],
  'Of any cause': ['cause'],
  'In any slot': ['slot'],
  'Of any worker': ['worker'],
  'Of any release': ['release'],
  'Of any rollout': ['rollout']
})
/** The live graph is counted at most 1/50 of the time. */
const REST_PER_COUNT = 50
const MIN_REST_MS = 2000

/**
 * The model of the page with its graph.
 * @param {HistoryAsked} asked
 */
export async function historyPageModel (asked) {
  const model = historyModel(toParts(asked))
  return { ...model, timeline: await readTimeline(asked, model) }
}

/**
 * Renders the list each time. The graph is counted in several turns of the event loop, so a later rendering shows it.
 * @param {HistoryAsked} asked
 * @returns {() => import('./pages.js').Fragment[]}
 */
export function followHistory (asked) {
  const { render, can } = asked
  /** @type {import('./timeline.js').Timeline | null} */
  let timeline = null
  let nextCountAt = -Infinity
  return () => {
    const now = asked.now()
    const model = historyModel(toParts(asked))
    if (now >= nextCountAt && model.problem === null) {
      nextCountAt = Infinity
      // The list already shows an error, or the next rendering will.
      readTimeline(asked, model).catch(() => null).then((newest) => {
        timeline = newest ?? timeline
        nextCountAt = asked.now() + Math.max(MIN_REST_MS, REST_PER_COUNT * (asked.now() - now))
      })
    }
    return [
      { id: 'history-gaps', html: render('partials/history-gaps', { can, ...model }) },
      { id: 'events', html: render('partials/events', { can, ...model }) },
      ...(timeline ? [{ id: 'timeline-graph', html: render('partials/timeline-graph', { can, timeline }) }] : [])
    ]
  }
}

/** @param {HistoryAsked} asked */
function toParts ({ history, deck, params, now, isOfHost }) {
  return { history, params, now: now(), marks: marksOf({ history, deck }), isOfHost, keptMs: () => keptMs(deck), gapsIn: (/** @type {{ since?: string | number, until?: string | number }} */ shown) => historyGaps({ history, deck }, shown) }
}

/** @param {HistoryAsked['deck']} deck @returns {number} how long events are kept */
function keptMs ({ settings }) {
  return Number(settings?.list().find(({ name }) => name === 'history.maxAgeMs')?.value ?? Infinity)
}

/**
 * @param {Pick<HistoryAsked, 'history'>} asked
 * @param {ReturnType<typeof historyModel>} model
 * @returns {Promise<import('./timeline.js').Timeline | null>} null: the list shows why
 */
async function readTimeline ({ history }, { query, now }) {
  if (query === null) return null
  try {
    return await countTimeline(history, query, now)
  } catch (error) {
    if (error instanceof DeckError) return null
    throw error
  }
}

/**
 * @param {{ history: History, params: URLSearchParams, now: number, marks?: import('./history-filters.js').Marks, isOfHost?: boolean, keptMs?: () => number, gapsIn?: (shown: { since?: string | number, until?: string | number }) => Gaps }} parts
 * @returns the model of the page; `problem` holds what is wrong with the filters or the database, if anything
 */
export function historyModel ({ history, params, now, marks, isOfHost = false, keptMs = () => Infinity, gapsIn = () => NO_GAPS }) {
  const choices = isOfHost ? { groups: HOST_TYPE_GROUPS, types: HOST_TYPES, causes: CAUSES } : { groups: TYPE_GROUPS, types: SINGLE_TYPES, causes: CAUSES }
  try {
    const { filters, query } = parseFilters(params, now, marks)
    const { cursor, trail } = parsePlace(params)
    const isFolded = UNFOLDING_FILTERS.every((name) => filters[name] === undefined)
    const { items, next, isShort } = isFolded ? readWholeFolds(history, { ...query, limit: FOLDED_PAGE_SIZE, cursor }) : readPage(history, { ...query, limit: PAGE_SIZE, cursor })
    const events = items.map(toShownEvent)
    const isNothing = items.length === 0 && next === null
    return {
      path: '/history',
      now,
      isOfHost,
      choices,
      filters,
      query,
      problem: null,
      gaps: gapsIn(query),
      isFirstPage: cursor === undefined,
      // It gets no new events.
      isPast: query.until !== undefined && new Date(query.until).getTime() <= now,
      isFiltered: Object.keys(filters).length > 0,
      rows: isFolded ? foldEvents(events).map(withLink) : toSingleRows(events),
      tooOld: isNothing ? tooOldText(query, now, keptMs()) : null,
      nearest: isNothing ? nearestTo(filters, { history, now, marks }) : [],
      // The search has a time limit, so a page that is not full may still have a next one.
      isCutShort: isShort,
      ranges: rangeLinks('/history', filters, isOfHost ? ['deploy'] : []),
      links: {
        ...pageLinks('/history', filters, { cursor, trail, next }),
        csv: urlOf('/history.csv', filters),
        clear: '/history',
        without: withoutLinks(filters)
      },
      canonicalUrl: urlOf('/history', filters, { cursor, trail: trail.join('.') || undefined })
    }
  } catch (error) {
    return { ...blankModel(params, now), isOfHost, choices, problem: toShownProblem(error) }
  }
}

/** @param {History} history @param {import('../../db/event-search.js').EventQuery & { limit: number }} query */
function readPage (history, query) {
  const { items, next } = history.page(query)
  return { items, next, isShort: next !== null && items.length < query.limit }
}

/** @param {import('./event-folds.js').Row} row @returns {import('./event-folds.js').Row & { url?: string }} `url`: of all events of a fold that lists only some */
function withLink (row) {
  if (row.id === null || row.count === row.events.length) return row
  const until = new Date(Date.parse(row.newestAt) + 1).toISOString()
  return { ...row, url: urlOf('/history', {}, { type: row.types.join(), since: row.oldestAt, until }) }
}

/** @param {{ until?: string | number }} query @param {number} now @param {number} keptMs @returns {string | null} null: what was there then would still be kept */
function tooOldText ({ until }, now, keptMs) {
  if (until === undefined || new Date(until).getTime() > now - keptMs) return null
  return `Events are kept for ${formatDuration(keptMs).replace(/^(\d+) d .*/, '$1 days')}; this time is longer ago.`
}

/**
 * The newest event without each of the filters.
 * @param {Filters} filters @param {{ history: History, now: number, marks?: import('./history-filters.js').Marks }} sources
 * @returns {{ label: string, url: string, at: string }[]}
 */
function nearestTo (filters, { history, now, marks }) {
  const given = Object.entries(OPTIONAL).filter(([, names]) => names.some((name) => filters[name] !== undefined))
  if (given.length < 2 && given[0]?.[0] !== 'At any time') return []
  return given.flatMap(([label, names]) => {
    const url = urlOf('/history', filters, Object.fromEntries(names.map((name) => [name, undefined])))
    const [newest] = history.page({ ...parseFilters(new URL(url, 'http://localhost').searchParams, now, marks).query, limit: 1 }).items
    return newest ? [{ label, url, at: newest.at }] : []
  })
}

/** @param {Pick<HistoryAsked, 'history' | 'deck' | 'params'> & { now: number }} parts @throws {DeckError} `invalid-query` */
export function exportQuery ({ history, deck, params, now }) {
  return parseFilters(params, now, marksOf({ history, deck })).query
}

/** Filters without a field in the form are shown as chips that can be removed. */
function withoutLinks (/** @type {Filters} */ filters) {
  /** @type {(keyof Filters)[]} */
  const chips = ['release', 'rollout']
  return chips.filter((name) => filters[name]).map((name) => ({ name, value: filters[name], url: urlOf('/history', filters, { [name]: undefined }) }))
}

/** @param {URLSearchParams} params @param {number} now */
function blankModel (params, now) {
  return {
    path: '/history',
    now,
    query: null,
    filters: givenFilters(params),
    gaps: NO_GAPS,
    isFirstPage: false,
    isPast: false,
    isFiltered: true,
    rows: [],
    tooOld: null,
    nearest: [],
    isCutShort: false,
    ranges: rangeLinks('/history', {}),
    links: { older: null, newer: null, newest: null, csv: null, clear: '/history', without: [] },
    canonicalUrl: '/history'
  }
}
