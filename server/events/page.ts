import { onRefusal } from '../errors.ts'
import { CAUSES } from '../causes.ts'
import { formatDuration } from '../../public/format.ts'
import { historyGaps, NO_GAPS, type Gaps } from './page-gaps.ts'
import { foldEvents, readWholeFolds, toSingleRows, type Row } from './page-folds.ts'
import { HOST_TYPE_GROUPS, SINGLE_TYPES, TYPE_GROUPS, givenFilters, marksOf, parseFilters, rangeLinks, toShownProblem,
  urlOf } from './page-filters.ts'
import { pageLinks, parsePlace } from '../dashboard/page-trail.ts'
import { toShownEvent } from './page-shown-event.ts'
import { countTimeline, type Timeline } from '../rollouts/page-timeline.ts'
import type { Filters, Marks, Started } from './page-filters.ts'
import type { Asked } from '../dashboard/pages.ts'
import type { Deck } from '../deck.ts'
import type { EventQuery } from '../../db/event-search.ts'

/** The history page. */
type History = Pick<import('../../db/history.ts').History, 'page'>
/** `isOfHost`: it is that of all apps of a host, which number their slots and workers by themselves */
export type HistoryAsked = Pick<Asked, 'history' | 'params' | 'now'> & {
  deck: Started & Parameters<typeof historyGaps>[0]['deck'] & { settings?: Pick<Deck['settings'], 'list'> },
  isOfHost?: boolean
}

const PATH = '/history'
export const PAGE_SIZE = 50
/** A folded list fits more events. */
export const FOLDED_PAGE_SIZE = 100
/** A list with one of these filters shows every event unfolded. */
const UNFOLDING_FILTERS: readonly (keyof Filters)[] = Object.freeze(['q', 'type', 'cause', 'slot', 'worker', 'rollout'])

/** Filters that the page offers to remove if nothing matches, by label. */
const OPTIONAL: Readonly<Record<string, (keyof Filters)[]>> = Object.freeze({
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

export async function historyPageModel (asked: HistoryAsked) {
  const model = historyModel(toParts(asked))
  return { ...model, timeline: await readTimeline(asked, model) }
}

/** Reads the list each time. The graph is counted in several turns of the event loop, so a later rendering shows it. */
export function followHistory (asked: HistoryAsked) {
  let timeline: Timeline | null = null
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
    return { ...model, timeline, fragments: ['history-gaps', 'events', ...(timeline ? ['timeline-graph'] : [])] }
  }
}

function toParts ({ history, deck, params, now, isOfHost }: HistoryAsked) {
  return { history, params, now: now(), marks: marksOf({ history, deck }), isOfHost, keptMs: () => keptMs(deck),
    gapsIn: (shown: { since?: string | number, until?: string | number }) => historyGaps({ history, deck }, shown) }
}

function keptMs ({ settings }: HistoryAsked['deck']): number {
  return Number(settings?.list().find(({ name }) => name === 'history.maxAgeMs')?.value ?? Infinity)
}

/** Null: the list shows why */
async function readTimeline ({ history }: Pick<HistoryAsked, 'history'>,
  { query, now }: ReturnType<typeof historyModel>): Promise<Timeline | null>
{
  if (query === null) return null
  return await countTimeline(history, query, now).catch(onRefusal(() => null))
}

/** @returns the model of the page; `problem` holds what is wrong with the filters or the database, if anything */
export function historyModel (
  { history, params, now, marks, isOfHost = false, keptMs = () => Infinity, gapsIn = () => NO_GAPS }: {
    history: History,
    params: URLSearchParams,
    now: number,
    marks?: Marks,
    isOfHost?: boolean,
    keptMs?: () => number,
    gapsIn?: (shown: { since?: string | number, until?: string | number }) => Gaps
  }
) {
  const choices = isOfHost
    ? { groups: HOST_TYPE_GROUPS, types: SINGLE_TYPES, causes: CAUSES }
    : { groups: TYPE_GROUPS, types: SINGLE_TYPES, causes: CAUSES }
  try {
    const { filters, query } = parseFilters(params, now, marks)
    const place = parsePlace(params)
    const isFolded = isFoldedBy(filters)
    const { items, next, isShort } = isFolded
      ? readWholeFolds(history, { ...query, limit: FOLDED_PAGE_SIZE, cursor: place.cursor })
      : readPage(history, { ...query, limit: PAGE_SIZE, cursor: place.cursor })
    const events = items.map(toShownEvent)
    const isNothing = items.length === 0 && next === null
    const shown = listModel({ filters, query, place, next, now, isShort })
    return { ...shown, isOfHost, choices, gaps: gapsIn(query),
      rows: isFolded ? foldEvents(events).map(withLink) : toSingleRows(events),
      tooOld: isNothing ? tooOldText(query, now, keptMs()) : null,
      nearest: isNothing ? nearestTo(filters, { history, now, marks }) : [],
      ranges: rangeLinks(PATH, filters, isOfHost ? ['deploy'] : []),
      links: { ...shown.links, csv: urlOf('/history.csv', filters) } }
  } catch (error) {
    return { ...blankModel(params, now), isOfHost, choices, problem: toShownProblem(error) }
  }
}

export function listModel (
  { filters, query, place, next, now, isShort }: { filters: Filters, query: EventQuery | null,
    place: ReturnType<typeof parsePlace>, next: string | null, now: number, isShort: boolean }
) {
  const { cursor, trail } = place
  const { member, ...narrowing } = filters
  return {
    path: PATH,
    now,
    filters,
    query,
    problem: null,
    isFirstPage: cursor === undefined,
    // It gets no new events.
    isPast: query?.until !== undefined && new Date(query.until).getTime() <= now,
    isFiltered: Object.keys(narrowing).length > 0,
    tooOld: null,
    nearest: [],
    // The search has a time limit, so a page that is not full may still have a next one.
    isCutShort: isShort,
    links: { ...pageLinks(PATH, filters, { ...place, next }), csv: null, clear: urlOf(PATH, { member }),
      without: withoutLinks(filters) },
    canonicalUrl: urlOf(PATH, filters, { cursor, trail: trail.join('.') || undefined })
  }
}

/** Whether routine events are one row: where something is searched for, each shows. */
export function isFoldedBy (filters: Filters): boolean {
  return UNFOLDING_FILTERS.every((name) => filters[name] === undefined)
}

function readPage (history: History, query: EventQuery & { limit: number }) {
  const { items, next } = history.page(query)
  return { items, next, isShort: next !== null && items.length < query.limit }
}

/** @returns `url`: of all events of a fold that lists only some */
function withLink (row: Row): Row & { url?: string } {
  if (row.id === null || row.count === row.events.length) return row
  const until = new Date(Date.parse(row.newestAt) + 1).toISOString()
  return { ...row, url: urlOf(PATH, {}, { type: row.types.join(), since: row.oldestAt, until }) }
}

/** Null: what was there then would still be kept */
function tooOldText ({ until }: { until?: string | number }, now: number, keptMs: number): string | null {
  if (until === undefined || new Date(until).getTime() > now - keptMs) return null
  return `Events are kept for ${formatDuration(keptMs).replace(/^(\d+) d.*/, '$1 days')}; this time is longer ago.`
}

/** The newest event without each of the filters. */
function nearestTo (filters: Filters,
  { history, now, marks }: { history: History, now: number, marks?: Marks }
): { label: string, url: string, at: string }[] {
  const given = Object.entries(OPTIONAL).filter(([, names]) => names.some((name) => filters[name] !== undefined))
  if (given.length < 2 && given[0]?.[0] !== 'At any time') return []
  return given.flatMap(([label, names]) => {
    const url = urlOf(PATH, filters, Object.fromEntries(names.map((name) => [name, undefined])))
    const [newest] =
      history.page({ ...parseFilters(new URL(url, 'http://localhost').searchParams, now, marks).query, limit: 1 }).items
    return newest ? [{ label, url, at: newest.at }] : []
  })
}

/** @throws {DeckError} `invalid-query` */
export function exportQuery (
  { history, deck, params, now }: Pick<HistoryAsked, 'history' | 'deck' | 'params'> & { now: number }
) {
  return parseFilters(params, now, marksOf({ history, deck })).query
}

/** Filters without a field in the form are shown as chips that can be removed. */
function withoutLinks (filters: Filters) {
  const chips: (keyof Filters)[] = ['release', 'rollout']
  return chips.filter((name) => filters[name]).map((name) => ({ name, value: filters[name],
    url: urlOf(PATH, filters, { [name]: undefined }) })
  )
}

export function blankModel (params: URLSearchParams, now: number) {
  const { member } = givenFilters(params)
  const shown = listModel({ filters: { member }, query: null, place: { cursor: undefined, trail: [] }, next: null, now,
    isShort: false })
  return { ...shown, filters: givenFilters(params), gaps: NO_GAPS, isFirstPage: false, isFiltered: true, rows: [],
    ranges: rangeLinks(PATH, { member }) }
}
