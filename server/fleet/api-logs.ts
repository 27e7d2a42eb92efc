import { z } from 'zod'
import { PLACE } from '../config/line-place.ts'
import { askHost, lenient, onlyOf } from '../api/ask.ts'
import { COUNT, pageOf } from '../api/fields.ts'
import { fleetOf, type FleetDeck } from './api.ts'
import { joinLines, MAX_JOINED_LINES, type JoinedLines, type Wanted } from '../logs/api-joined.ts'
import { LOG_LINE, type Query } from '../logs/api-lines.ts'
import type { Person } from './rpc-client.ts'

/** Output of the workers of several hosts. */
const WITHIN_MS = 6000

const SAID = lenient(pageOf(LOG_LINE.extend({ slot: COUNT.max(999), place: z.string().regex(PLACE) })),
  MAX_JOINED_LINES)

/** @throws {DeckError} no-fleet, fleet-away, not-found, invalid-query */
export async function fleetLines (deck: FleetDeck, { member, ...query }: Query & { member: string },
  person: Person): Promise<JoinedLines<'member'>>
{
  const fleet = fleetOf(deck)
  const members = await fleet.members(onlyOf(member))
  return await joinLines('member', members.map((each) => each.member), query,
    (name, wanted) =>
      askHost(fleet, name, { path: `/logs?${queryOf(wanted)}`, answer: SAID, withinMs: WITHIN_MS }, person))
}

function queryOf ({ level, since, until, around, ...given }: Wanted) {
  const times = mapped({ since, until, around }, (ms) => new Date(ms).toISOString())
  return new URLSearchParams(mapped({ ...given, level: level?.join(), ...times }, String))
}

/** Maps the values, and leaves out what is undefined. */
function mapped<T, U> (values: Record<string, T | undefined>, toValue: (value: T) => U): Record<string, U> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => value === undefined ? [] : [[name, toValue(value)]])
  )
}
