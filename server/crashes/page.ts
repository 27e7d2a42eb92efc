import { z } from 'zod'
import { OF_MEMBER } from '../api/ask.ts'
import { CRASH_SORT, CURSOR, crashFilters } from '../api/filters.ts'
import { parseFields } from '../api/input.ts'
import { frequencyOf } from './page-frequency.ts'
import { GROUP_STATES, crashLabels, headlineOf } from './page-kinds.ts'
import { givenFilters, toShownProblem, urlOf } from '../events/page-filters.ts'
import { historyGaps, NO_GAPS } from '../events/page-gaps.ts'
import { firstLine, readable } from '../dashboard/readable-text.ts'
import type { Deck } from '../deck.ts'
import type { History } from '../../db/history.ts'
import type { GroupQuery } from '../../db/crash-groups.ts'

// The list of crash groups.

/** By default `state` is open, and `sort` is last. */
type Filters = Partial<Record<'state' | 'q' | 'release' | 'sort' | 'member', string>>
type Crashes = Deck['crashes']

const PAGE_SIZE = 50
const MAX_MESSAGE_CHARS = 300
// Without a state the page shows open groups; the API shows all.
const STATE = z.enum(['open', 'resolved', 'muted', 'all']).default('open').describe('open, resolved, muted or all')
/** Columns that the list can be sorted by. */
const SORTS = Object.freeze({ count: 'Count', last: 'Last seen', first: 'First seen' })

/** @returns the model of the page; `problem` holds what is wrong with the filters or the database, if anything */
export function crashesModel (
  { deck, history, params, now: clock }: { deck: Pick<Deck, 'crashes' | 'snapshot'>, history: Pick<History, 'page'>,
    params: URLSearchParams, now: () => number }
) {
  const now = clock()
  const { crashes } = deck
  try {
    const asked = parseCrashFilters(params, now)
    const { items, next } = crashes.page({ ...asked.query, limit: PAGE_SIZE })
    const counts = crashes.counts()
    const shown = listModel(asked, { now, counts, next })
    return { ...shown, gaps: historyGaps({ history, deck }, { isOfCrashes: true }),
      total: counts.open + counts.resolved + counts.muted,
      groups: items.map((group) => ({ ...toRow(group, asked.filters),
        frequency: frequencyOf(crashes, group.id, { now, span: 'day' }) })
      ) }
  } catch (error) {
    return { ...blankModel(params, now), problem: toShownProblem(error) }
  }
}

export function listModel ({ filters, query }: ReturnType<typeof parseCrashFilters>,
  { now, counts = null, next = null }: { now: number, counts?: Record<string, number> | null, next?: string | null })
{
  const { cursor } = query
  return { now, filters, problem: null, tabs: tabsOf(filters, counts), isFirstPage: cursor === undefined,
    isNarrowed: filters.q !== undefined || filters.release !== undefined, sorts: sortsOf(filters),
    links: { more: next === null ? null : linkTo(filters, { cursor: next }),
      newest: cursor === undefined ? null : linkTo(filters),
      clear: linkTo(filters, { q: undefined, release: undefined }), everywhere: linkTo(filters, { state: 'all' }),
      open: linkTo(filters, { state: undefined }) }, canonicalUrl: linkTo(filters, { cursor }) }
}

/** @throws {import('../errors.ts').DeckError} `invalid-query` */
export function parseCrashFilters (params: URLSearchParams,
  now: number): { filters: Filters, query: { cursor?: string, member?: string } & Omit<GroupQuery, 'since'> }
{
  const { q, release } = crashFilters(() => now)
  const { texts: { cursor, ...filters }, values: { state, ...query } } = parseFields(
    z.object({ state: STATE, q, release, sort: CRASH_SORT, cursor: CURSOR, member: OF_MEMBER }),
    params
  )
  if (state === 'open') delete filters.state
  if (filters.sort === 'last') delete filters.sort
  return { filters, query: { ...query, ...(state === 'all' ? {} : { state }) } }
}

function linkTo (filters: Filters, changes?: Record<string, string | undefined>) {
  return urlOf('/crashes', { member: undefined, state: undefined, q: undefined, release: undefined, sort: undefined,
    ...filters }, changes)
}

function tabsOf (filters: Filters, counts: Record<string, number> | null) {
  const current = filters.state ?? 'open'
  return [
    ...Object.entries(GROUP_STATES).map(([state, { label }]) => ({ state, label, count: counts?.[state] || null })),
    { state: 'all', label: 'All', count: null }
  ].map((tab) => ({ ...tab, isCurrent: tab.state === current,
    url: linkTo(filters, { state: tab.state === 'open' ? undefined : tab.state }) })
  )
}

function sortsOf (filters: Filters) {
  return Object.entries(SORTS).map(([sort, label]) => ({ label,
    url: linkTo(filters, { sort: sort === 'last' ? undefined : sort }),
    ariaSort: sort === (filters.sort ?? 'last') ? 'descending' : null })
  )
}

function toRow (group: ReturnType<Crashes['page']>['items'][number], { state = 'open' }: Filters) {
  return { ...group, ...crashTexts(group), releases: releasesOf(group),
    badge: state === 'all' && group.state !== 'open' ? GROUP_STATES[group.state] : null }
}

export function crashTexts (group: Parameters<typeof headlineOf>[0] & { cause: string, culprit: string | null }) {
  const { name, message } = headlineOf(group)
  return { name: name === null ? null : firstLine(name, 80), message: firstLine(message, MAX_MESSAGE_CHARS),
    culprit: group.culprit === null ? null : readable(group.culprit), labels: crashLabels(group) }
}

function releasesOf ({ firstRelease, lastRelease }: { firstRelease: string | null, lastRelease: string | null }) {
  if (firstRelease === lastRelease || firstRelease === null) return lastRelease ?? '–'
  return `${firstRelease} … ${lastRelease ?? '?'}`
}

export function blankModel (params: URLSearchParams, now: number) {
  const { member } = givenFilters(params)
  return { ...listModel({ filters: { member }, query: {} }, { now }), gaps: NO_GAPS, filters: givenFilters(params),
    total: 0, isFirstPage: false, isNarrowed: true, groups: [] }
}
