import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { onlyOf } from '../api/ask.ts'
import { COUNT, TIME } from '../api/fields.ts'
import { fleetOf, type FleetDeck } from './api.ts'
import type { eventFilters } from '../api/filters.ts'
import type { Item } from './feed.ts'
import type { DeckEvent } from '../events/stream.ts'

/** Events of several hosts, as they have reported them to the fleet, also hosts that are gone. */
export type FleetEvent = DeckEvent & { member: string, host: string, seq: number, arrivedAt: string }
export type EventFilters = z.infer<z.ZodObject<ReturnType<typeof eventFilters>>>

const MAX_LIMIT = 200
const DEFAULT_LIMIT = 50
const PLACE = /^\d{1,15}$/

/** What an event of several hosts has besides. */
export const ON_HOSTS = {
  member: z.string().optional().describe('whose it is, of several; `id` is that of its history'),
  host: z.string().optional(),
  seq: COUNT.optional().describe('a number that ascends over the whole fleet'),
  arrivedAt: TIME.optional().describe('when it came to the fleet, by the clock of NATS')
}

/** @throws {DeckError} no-fleet, fleet-away, not-found, invalid-query */
export async function fleetEvents (deck: FleetDeck,
  { member, type, limit = DEFAULT_LIMIT, cursor, ...filters }: EventFilters & { member: string, limit?: number,
    cursor?: string }): Promise<{ items: FleetEvent[], next: string | null }>
{
  const fleet = fleetOf(deck)
  if (cursor !== undefined && !PLACE.test(cursor)) {
    throw new DeckError('invalid-query',
      `cursor: expected the "next" of an earlier page, received ${JSON.stringify(cursor)}`)
  }
  const { items, next } = await fleet.history({ ...filters, member: onlyOf(member), types: type,
    limit: Math.min(limit, MAX_LIMIT), before: cursor === undefined ? null : Number(cursor) })
  return { items: items.map(toFleetEvent), next: next === null ? null : String(next) }
}

export function toFleetEvent ({ seq, at, member, host, event }: Item): FleetEvent {
  return { ...event, member, host, seq, arrivedAt: at }
}
