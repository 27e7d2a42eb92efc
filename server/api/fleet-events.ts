import { z } from 'zod'
import { MEMBER_NAME } from '../config/member-name.ts'
import { DeckError } from '../errors.ts'
import { operation, type Resource } from './endpoint.ts'
import { COUNT, NUMBER, pageOf, TIME } from './fields.ts'
import { eventFilters, pagingFields } from './filters.ts'
import { fleetOf, type FleetDeck } from './fleet.ts'
import { textParam } from './input.ts'

/** The history of all members of the fleet. */

const MAX_LIMIT = 200
const DEFAULT_LIMIT = 50
const PLACE = /^\d{1,15}$/

const EVENT = z.object({ id: NUMBER, at: TIME, type: z.string(), message: z.string().nullable() }).loose().describe(
  'the event as in the history of its deck'
)
const ITEM = z.strictObject({ seq: COUNT.describe('a number that ascends over the whole fleet'),
  at: TIME.describe('when it arrived, by the clock of NATS'), member: z.string(), app: z.string(), host: z.string(),
  event: EVENT }).meta({ id: 'FleetEvent' })

export function fleetEventResources ({ deck, now }: { deck: FleetDeck, now: () => number }): Record<string, Resource> {
  return {
    '/fleet/events': {
      GET: operation({ name: 'listFleetEvents', summary: 'Lists the events of the app on all members, newest first',
        description:
          'Events of members that are gone are included. `since` and `until` count when an event arrived. A page may have fewer items than `limit` and still a `next`.',
        role: 'viewer', cli: 'clusterdeck fleet history',
        query: z.strictObject({ ...fleetEventFilters(now), ...pagingFields(MAX_LIMIT) }),
        problems: ['no-fleet', 'fleet-away', 'not-found'], answer: pageOf(ITEM),
        handle: async ({ query }) => ({ body: await fleetEvents(deck, query) }) })
    }
  }
}

export function fleetEventFilters (now: () => number) {
  const { q, type, cause, since, until } = eventFilters(now)
  return { member: textParam('the name of a member', MEMBER_NAME), q, type, cause, since, until }
}

/** @throws {DeckError} no-fleet, fleet-away, not-found, invalid-query */
export async function fleetEvents (deck: FleetDeck,
  { type, limit = DEFAULT_LIMIT, cursor, ...filters }: { member?: string, type?: string[], q?: string, cause?: string,
    since?: number, until?: number, limit?: number, cursor?: string })
{
  const fleet = fleetOf(deck)
  if (cursor !== undefined && !PLACE.test(cursor)) {
    throw new DeckError('invalid-query',
      `cursor: expected the "next" of an earlier page, received ${JSON.stringify(cursor)}`)
  }
  const { items, next } = await fleet.history({ ...filters, types: type, limit,
    before: cursor === undefined ? null : Number(cursor) })
  return { items, next: next === null ? null : String(next) }
}
