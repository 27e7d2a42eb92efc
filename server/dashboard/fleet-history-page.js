import { CAUSES } from '../causes.js'
import { fleetEventFilters, fleetEvents } from '../api/fleet-events.js'
import { fleetOf } from '../api/fleet.js'
import { foldEvents, toSingleRows } from './event-folds.js'
import { fleetGaps, NO_FLEET_GAPS } from './fleet-gaps.js'
import { urlOn } from './fleet-members.js'
import { givenFilters, parseWithRange, rangeLinks, RANGES_OF_DECK, SINGLE_TYPES, TYPE_GROUPS, toShownProblem, urlOf } from './history-filters.js'
import { pageLinks, parsePlace } from './page-trail.js'
import { toShownEvent } from './shown-event.js'

/**
 * The history of all members of the fleet, as they reported it.
 * @typedef {import('../fleet/feed.js').Item} Item
 * @typedef {Pick<import('../deck.js').Deck, 'fleet'>} Deck
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {ReturnType<typeof toFleetEvent>} FleetEvent
 */

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

/**
 * @param {{ deck: Deck, params: URLSearchParams, now: () => number }} asked
 * @returns the model of the page; `problem` holds what is wrong with the filters, NATS or the fleet, if anything
 */
export async function fleetHistoryModel ({ deck, params, now }) {
  const members = deck.fleet?.status().members ?? []
  const around = { path: PATH, now: now(), choices: { members: members.map(({ member }) => member), groups: TYPE_GROUPS, types: SINGLE_TYPES, causes: CAUSES } }
  try {
    const { filters, query } = parseWithRange(fleetEventFilters(now), params, { now: now() })
    const place = parsePlace(params)
    const isFolded = UNFOLDING_FILTERS.every((name) => filters[name] === undefined)
    const limit = isFolded ? FOLDED_PAGE_SIZE : PAGE_SIZE
    const { items, next } = await fleetEvents(deck, { ...query, limit, cursor: place.cursor })
    const events = items.map((item) => toFleetEvent(item, members.find(({ member }) => member === item.member)))
    return {
      ...around,
      filters,
      problem: null,
      gaps: await fleetGaps(fleetOf(deck), { ...query, now: now() }),
      rows: (isFolded ? foldEvents(events) : toSingleRows(events)).map(withMembers),
      isFirstPage: place.cursor === undefined,
      isFiltered: Object.keys(filters).length > 0,
      isCutShort: next !== null && items.length < limit,
      ranges: rangeLinks(PATH, filters, RANGES_OF_DECK),
      links: { ...pageLinks(PATH, filters, { ...place, next }), clear: PATH, without: [] },
      canonicalUrl: urlOf(PATH, filters, { cursor: place.cursor, trail: place.trail.join('.') || undefined })
    }
  } catch (error) {
    return {
      ...around,
      filters: givenFilters(params),
      problem: toShownProblem(error),
      gaps: NO_FLEET_GAPS,
      rows: [],
      isFirstPage: false,
      isFiltered: true,
      isCutShort: false,
      ranges: rangeLinks(PATH, {}, RANGES_OF_DECK),
      links: { older: null, newer: null, newest: null, clear: PATH, without: [] },
      canonicalUrl: PATH
    }
  }
}

/**
 * NATS answers in its own time, so its answer is shown by a later rendering.
 * @param {import('./pages.js').Asked} asked
 * @returns {() => import('./pages.js').Fragment[]}
 */
export function followFleetHistory (asked) {
  const { render, can, now } = asked
  /** @type {Awaited<ReturnType<typeof fleetHistoryModel>> | null} */
  let newest = null
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
    return newest ? ['fleet-gaps', 'fleet-events'].map((id) => ({ id, html: render(`partials/${id}`, { can, ...newest }) })) : []
  }
}

/** @param {Item} item @param {Pick<import('../fleet/presence.js').Member, 'isOwn' | 'url'>} [member] its current state */
function toFleetEvent ({ seq, at, member: name, app, host, event }, member) {
  return {
    ...toShown(event),
    // Hosts number their events by themselves.
    id: seq,
    member: name,
    app,
    host,
    arrivedAt: Date.parse(at) - Date.parse(event.at) > LATE_MS ? at : null,
    url: urlOn(member, `/history/${event.id}`)
  }
}

/** @param {import('./event-folds.js').Row<FleetEvent>} row  a fold says which members it is about */
function withMembers (row) {
  return row.id === null ? row : { ...row, members: [...new Set(row.events.map(({ member }) => member))].sort() }
}

/** The detail comes from another member and may hold anything. @param {DeckEvent} event */
function toShown (event) {
  try {
    return toShownEvent(event)
  } catch {
    return toShownEvent({ ...event, detail: null })
  }
}
