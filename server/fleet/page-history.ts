import { attempt } from '../errors.ts'
import { CAUSES } from '../causes.ts'
import { OF_MEMBER, onlyOf } from '../api/ask.ts'
import { eventFilters } from '../api/filters.ts'
import { fleetEvents, type FleetEvent } from './api-events.ts'
import { fleetOf } from './api.ts'
import { foldEvents, toSingleRows, type Row } from '../events/page-folds.ts'
import { followAnswers } from '../dashboard/follow-answers.ts'
import { fleetGaps } from './page-gaps.ts'
import { hostChoices, urlOn } from './page-members.ts'
import { parseWithRange, rangeLinks, RANGES_OF_DECK, SINGLE_TYPES, TYPE_GROUPS,
  toShownProblem } from '../events/page-filters.ts'
import { blankModel, FOLDED_PAGE_SIZE, isFoldedBy, listModel, PAGE_SIZE } from '../events/page.ts'
import { parsePlace } from '../dashboard/page-trail.ts'
import { toShownEvent } from '../events/page-shown-event.ts'
import type { Asked } from '../dashboard/pages.ts'
import type { Member } from './presence.ts'

/** The page of the history for several hosts, as they reported it. */
type Deck = Pick<import('../deck.ts').Deck, 'fleet'>
type ShownEvent = ReturnType<typeof toShown>

const PATH = '/history'
/** How often NATS is asked while the page is open. */
const REFRESH_EVERY_MS = 2000
/** A host that was cut off sends its events later. */
const LATE_MS = 60_000

/** @returns the model of the page; `problem` holds what is wrong with the filters, NATS or the fleet, if anything */
export async function fleetHistoryModel (
  { deck, params, now }: { deck: Deck, params: URLSearchParams, now: () => number }
) {
  const members = deck.fleet?.status().members ?? []
  const around = { isOfHosts: true, timeline: null,
    choices: { ...hostChoices(deck), groups: TYPE_GROUPS, types: SINGLE_TYPES, causes: CAUSES } }
  try {
    const { filters, query } = parseWithRange({ member: OF_MEMBER, ...eventFilters(now) }, params, { now: now() })
    const { member = '*', ...wanted } = query
    const place = parsePlace(params)
    const isFolded = isFoldedBy(filters)
    const limit = isFolded ? FOLDED_PAGE_SIZE : PAGE_SIZE
    const { items, next } = await fleetEvents(deck, { ...wanted, member, limit, cursor: place.cursor })
    const gaps = await fleetGaps(fleetOf(deck), { ...wanted, only: onlyOf(member), now: now() })
    const events = items.map((item) => toShown(item, members.find((each) => each.member === item.member)))
    return { ...around,
      ...listModel({ filters, query, place, next, now: now(), isShort: next !== null && items.length < limit }), gaps,
      rows: (isFolded ? foldEvents(events) : toSingleRows(events)).map(withMembers),
      ranges: rangeLinks(PATH, filters, RANGES_OF_DECK) }
  } catch (error) {
    return { ...blankModel(params, now()), ...around, problem: toShownProblem(error) }
  }
}

export function followFleetHistory (asked: Asked) {
  return followAnswers(asked, { model: fleetHistoryModel, everyMs: REFRESH_EVERY_MS })
}

/** `member`: its current state */
function toShown ({ arrivedAt, ...event }: FleetEvent, member?: Pick<Member, 'isOwn' | 'url'>) {
  return {
    ...withTexts(event),
    // Hosts number their events by themselves.
    id: event.seq,
    key: String(event.seq),
    app: undefined,
    member: event.member,
    host: event.host,
    arrivedAt: Date.parse(arrivedAt) - Date.parse(event.at) > LATE_MS ? arrivedAt : null,
    url: urlOn(member, `/history/${event.id}`),
    // Only that host knows them.
    crashUrl: null,
    logsUrl: null,
    workerUrl: null
  }
}

/** `row`: a fold says which members it is about */
function withMembers (row: Row<ShownEvent>) {
  return row.id === null ? row : { ...row, members: [...new Set(row.events.map(({ member }) => member))].sort() }
}

/** The detail comes from another member and may hold anything. */
function withTexts (event: Omit<FleetEvent, 'arrivedAt'>) {
  return attempt(() => toShownEvent(event)) ?? toShownEvent({ ...event, detail: null })
}
