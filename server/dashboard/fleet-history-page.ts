import { CAUSES } from '../causes.ts'
import { fleetEventFilters, fleetEvents } from '../api/fleet-events.ts'
import { fleetOf } from '../api/fleet.ts'
import { foldEvents, toSingleRows, type Row } from './event-folds.ts'
import { fleetGaps, NO_FLEET_GAPS } from './fleet-gaps.ts'
import { urlOn } from './fleet-members.ts'
import { givenFilters, parseWithRange, rangeLinks, RANGES_OF_DECK, SINGLE_TYPES, TYPE_GROUPS, toShownProblem,
  urlOf } from './history-filters.ts'
import { pageLinks, parsePlace } from './page-trail.ts'
import { toShownEvent } from './shown-event.ts'
import type { Item } from '../fleet/feed.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Asked } from './pages.ts'
import type { Member } from '../fleet/presence.ts'

/** The history of all members of the fleet, as they reported it. */
type Deck = Pick<import('../deck.ts').Deck, 'fleet'>
type FleetEvent = ReturnType<typeof toFleetEvent>

const PATH = '/fleet/history'
const PAGE_SIZE = 50
/** A folded list fits more events. */
const FOLDED_PAGE_SIZE = 100
/** A list with one of these filters shows every event unfolded. */
const UNFOLDING_FILTERS = Object.freeze(['q', 'type', 'cause'])
/** How often NATS is asked while the page is open. */
const REFRESH_EVERY_MS = 2000
/** A host that was cut off sends its events later. */
const LATE_MS = 60_000

/** @returns the model of the page; `problem` holds what is wrong with the filters, NATS or the fleet, if anything */
export async function fleetHistoryModel (
  { deck, params, now }: { deck: Deck, params: URLSearchParams, now: () => number }
) {
  const members = deck.fleet?.status().members ?? []
  const around = { path: PATH, now: now(),
    choices: { members: members.map(({ member }) => member), groups: TYPE_GROUPS, types: SINGLE_TYPES,
      causes: CAUSES } }
  try {
    const { filters, query } = parseWithRange(fleetEventFilters(now), params, { now: now() })
    const place = parsePlace(params)
    const isFolded = UNFOLDING_FILTERS.every((name) => filters[name] === undefined)
    const limit = isFolded ? FOLDED_PAGE_SIZE : PAGE_SIZE
    const { items, next } = await fleetEvents(deck, { ...query, limit, cursor: place.cursor })
    const events = items.map((item) => toFleetEvent(item, members.find(({ member }) => member === item.member)))
    return { ...around, filters, problem: null, gaps: await fleetGaps(fleetOf(deck), { ...query, now: now() }),
      rows: (isFolded ? foldEvents(events) : toSingleRows(events)).map(withMembers),
      isFirstPage: place.cursor === undefined, isFiltered: Object.keys(filters).length > 0,
      isCutShort: next !== null && items.length < limit, ranges: rangeLinks(PATH, filters, RANGES_OF_DECK),
      links: { ...pageLinks(PATH, filters, { ...place, next }), clear: PATH, without: [] },
      canonicalUrl: urlOf(PATH, filters, { cursor: place.cursor, trail: place.trail.join('.') || undefined }) }
  } catch (error) {
    return { ...around, filters: givenFilters(params), problem: toShownProblem(error), gaps: NO_FLEET_GAPS, rows: [],
      isFirstPage: false, isFiltered: true, isCutShort: false, ranges: rangeLinks(PATH, {}, RANGES_OF_DECK),
      links: { older: null, newer: null, newest: null, clear: PATH, without: [] }, canonicalUrl: PATH }
  }
}

/** NATS answers in its own time, so its answer is shown by a later rendering. */
export function followFleetHistory (asked: Asked) {
  const { now } = asked
  let newest: Awaited<ReturnType<typeof fleetHistoryModel>> | null = null
  let nextRefreshAt = -Infinity
  return () => {
    if (now() >= nextRefreshAt) {
      nextRefreshAt = Infinity
      // The page already shows an error, or the next request will.
      fleetHistoryModel(asked).catch(() => null).then((model) => {
        newest = model ?? newest
        nextRefreshAt = now() + REFRESH_EVERY_MS
      })
    }
    return newest
  }
}

/** `member`: its current state */
function toFleetEvent ({ seq, at, member: name, app, host, event }: Item, member?: Pick<Member, 'isOwn' | 'url'>) {
  return {
    ...toShown(event),
    // Hosts number their events by themselves.
    id: seq,
    key: String(seq),
    member: name,
    app,
    host,
    arrivedAt: Date.parse(at) - Date.parse(event.at) > LATE_MS ? at : null,
    url: urlOn(member, `/history/${event.id}`)
  }
}

/** `row`: a fold says which members it is about */
function withMembers (row: Row<FleetEvent>) {
  return row.id === null ? row : { ...row, members: [...new Set(row.events.map(({ member }) => member))].sort() }
}

/** The detail comes from another member and may hold anything. */
function toShown (event: DeckEvent) {
  try {
    return toShownEvent(event)
  } catch {
    return toShownEvent({ ...event, detail: null })
  }
}
