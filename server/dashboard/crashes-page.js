import { z } from 'zod'
import { CRASH_SORT, CURSOR, crashFilters } from '../api/filters.js'
import { parseFields } from '../api/input.js'
import { frequencyOf } from './crash-frequency.js'
import { GROUP_STATES, crashLabels, headlineOf } from './crash-kinds.js'
import { givenFilters, toShownProblem, urlOf } from './history-filters.js'
import { NO_GAPS } from './history-gaps.js'
import { firstLine, readable } from './readable-text.js'

/**
 * The list of crash groups.
 * @typedef {Partial<Record<'state' | 'q' | 'release' | 'sort', string>>} Filters  defaults: `state` open, `sort` last
 * @typedef {import('../deck.js').Deck['crashes']} Crashes
 */

const PAGE_SIZE = 50
const MAX_MESSAGE_CHARS = 300
// Without a state the page shows open groups; the API shows all.
const STATE = z.enum(['open', 'resolved', 'muted', 'all']).default('open').describe('open, resolved, muted or all')
/** Columns that the list can be sorted by. */
const SORTS = Object.freeze(['count', 'last', 'first'])
/** The elements of the page that change, by id; each is the partial of the same name. */
export const CRASHES_FRAGMENTS = Object.freeze(['history-gaps', 'crash-tabs', 'crash-groups'])

/**
 * @param {{ crashes: Crashes, params: URLSearchParams, now: number, gaps?: import('./history-gaps.js').Gaps }} parts
 * @returns the model of the page; `problem` holds what is wrong with the filters or the database, if anything
 */
export function crashesModel ({ crashes, params, now, gaps = NO_GAPS }) {
  try {
    const { filters, query } = parseCrashFilters(params, now)
    const { cursor } = query
    const { items, next } = crashes.page({ ...query, limit: PAGE_SIZE })
    const counts = crashes.counts()
    return {
      now,
      gaps,
      filters,
      problem: null,
      tabs: tabsOf(filters, { counts, linkTo }),
      total: counts.open + counts.resolved + counts.muted,
      isFirstPage: cursor === undefined,
      isNarrowed: filters.q !== undefined || filters.release !== undefined,
      sort: query.sort ?? 'last',
      sorts: sortsOf(filters),
      groups: items.map((group) => ({ ...toRow(group, filters), frequency: frequencyOf(crashes, group.id, { now, span: 'day' }) })),
      links: {
        more: next === null ? null : linkTo(filters, { cursor: next }),
        newest: cursor === undefined ? null : linkTo(filters),
        clear: linkTo(filters, { q: undefined, release: undefined }),
        everywhere: linkTo(filters, { state: 'all' })
      },
      canonicalUrl: linkTo(filters, { cursor })
    }
  } catch (error) {
    return { ...blankModel(params, now), problem: toShownProblem(error) }
  }
}

/**
 * @param {URLSearchParams} params @param {number} now
 * @returns {{ filters: Filters, query: { cursor?: string } & import('../../db/crash-groups.js').GroupQuery }}
 * @throws {import('../errors.js').DeckError} `invalid-query`
 */
function parseCrashFilters (params, now) {
  const { q, release } = crashFilters(() => now)
  const { texts: { cursor, ...filters }, values: { state, ...query } } = parseFields(z.object({
    state: STATE,
    q,
    release,
    sort: CRASH_SORT,
    cursor: CURSOR
  }), params)
  if (state === 'open') delete filters.state
  if (filters.sort === 'last') delete filters.sort
  return { filters, query: { ...query, ...(state === 'all' ? {} : { state }) } }
}

/** @param {Filters} filters @param {Record<string, string | undefined>} [changes] */
function linkTo (filters, changes) {
  return urlOf('/crashes', { state: undefined, q: undefined, release: undefined, sort: undefined, ...filters }, changes)
}

/**
 * @template {{ state?: string }} F
 * @param {F} filters @param {{ counts: Record<string, number> | null, linkTo: (filters: F, changes: { state: string | undefined }) => string }} parts
 */
export function tabsOf (filters, { counts, linkTo }) {
  const current = filters.state ?? 'open'
  return [
    ...Object.entries(GROUP_STATES).map(([state, { label }]) => ({ state, label, count: counts?.[state] ?? null })),
    { state: 'all', label: 'All', count: null }
  ].map((tab) => ({ ...tab, isCurrent: tab.state === current, url: linkTo(filters, { state: tab.state === 'open' ? undefined : tab.state }) }))
}

/** @param {Filters} filters @returns {Record<string, string>} links by sort column */
function sortsOf (filters) {
  return Object.fromEntries(SORTS.map((sort) => [sort, linkTo(filters, { sort: sort === 'last' ? undefined : sort })]))
}

/** @param {ReturnType<Crashes['page']>['items'][number]} group @param {Filters} filters */
function toRow (group, { state = 'open' }) {
  return {
    ...group,
    ...textsOf(group),
    releases: releasesOf(group),
    badge: state === 'all' && group.state !== 'open' ? GROUP_STATES[group.state] : null
  }
}

/** @param {Parameters<typeof headlineOf>[0] & { cause: string, culprit: string | null }} group @returns what a row says of a crash */
export function textsOf (group) {
  const { name, message } = headlineOf(group)
  return {
    name: name === null ? null : firstLine(name, 80),
    message: firstLine(message, MAX_MESSAGE_CHARS),
    culprit: group.culprit === null ? null : readable(group.culprit),
    labels: crashLabels(group)
  }
}

/** @param {{ firstRelease: string | null, lastRelease: string | null }} group */
function releasesOf ({ firstRelease, lastRelease }) {
  if (firstRelease === lastRelease || firstRelease === null) return lastRelease ?? '–'
  return `${firstRelease} … ${lastRelease ?? '?'}`
}

/** @param {URLSearchParams} params @param {number} now */
function blankModel (params, now) {
  return {
    now,
    gaps: NO_GAPS,
    filters: givenFilters(params),
    tabs: tabsOf({}, { counts: null, linkTo }),
    total: 0,
    isFirstPage: false,
    isNarrowed: true,
    sort: 'last',
    sorts: sortsOf({}),
    groups: [],
    links: { more: null, newest: null, clear: '/crashes', everywhere: '/crashes?state=all' },
    canonicalUrl: '/crashes'
  }
}
