import { z } from 'zod'
import { fleetEventFilters, fleetEvents } from '../api/fleet-events.js'
import { parseFields } from '../api/input.js'
import { givenFilters, TYPE_GROUPS, toShownProblem, urlOf } from './history-filters.js'
import { pageLinks, parsePlace } from './page-trail.js'
import { toShownEvent } from './shown-event.js'

/**
 * The history of all members of the fleet, as they reported it.
 * @typedef {import('../fleet/feed.js').Item} Item
 * @typedef {Pick<import('../deck.js').Deck, 'fleet'>} Deck
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {Partial<Record<'member' | 'type', string>>} Filters  as they stand in the URL
 */

const PATH = '/fleet/history'
const PAGE_SIZE = 50
/** How often NATS is asked while the page is open. */
const REFRESH_EVERY_MS = 2000

/**
 * @param {{ deck: Deck, params: URLSearchParams, now: () => number }} asked
 * @returns the model of the page; `problem` holds what is wrong with the filters, NATS or the fleet, if anything
 */
export async function fleetHistoryModel ({ deck, params, now }) {
  const members = deck.fleet?.status().members ?? []
  const around = { now: now(), choices: { members: members.map(({ member }) => member), types: TYPE_GROUPS } }
  try {
    const { texts: filters, values } = parseFields(z.object(fleetEventFilters(now)), params)
    const place = parsePlace(params)
    const { items, next } = await fleetEvents(deck, { ...values, limit: PAGE_SIZE, cursor: place.cursor })
    return {
      ...around,
      filters,
      problem: null,
      rows: items.map((item) => toRow(item, members.find(({ member }) => member === item.member))),
      isFirstPage: place.cursor === undefined,
      isFiltered: Object.keys(filters).length > 0,
      isCutShort: next !== null && items.length < PAGE_SIZE,
      links: { ...pageLinks(PATH, filters, { ...place, next }), clear: PATH },
      canonicalUrl: urlOf(PATH, filters, { cursor: place.cursor, trail: place.trail.join('.') || undefined })
    }
  } catch (error) {
    return {
      ...around,
      filters: givenFilters(params),
      problem: toShownProblem(error),
      rows: [],
      isFirstPage: false,
      isFiltered: true,
      isCutShort: false,
      links: { older: null, newer: null, newest: null, clear: PATH },
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
    return newest ? [{ id: 'fleet-events', html: render('partials/fleet-events', { can, ...newest }) }] : []
  }
}

/** @param {Item} item @param {Pick<import('../fleet/presence.js').Member, 'isOwn' | 'url'>} [member] its current state */
function toRow ({ seq, member: name, app, host, event }, member) {
  const { kind, sentence } = toShown(event)
  const place = `/history/${event.id}`
  const elsewhere = member?.url ? member.url.replace(/\/$/, '') + place : null
  return {
    seq,
    at: event.at,
    member: name,
    app,
    host,
    kind,
    sentence,
    type: event.type,
    cause: event.cause,
    slot: event.slot,
    worker: event.worker,
    actor: event.actor,
    url: member?.isOwn ? place : elsewhere
  }
}

/** The detail comes from another member and may hold anything. @param {DeckEvent} event */
function toShown (event) {
  try {
    return toShownEvent(event)
  } catch {
    return toShownEvent({ ...event, detail: null })
  }
}
