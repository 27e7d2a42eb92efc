import { z } from 'zod'
import { operation, type Resource } from './endpoint.ts'
import { COUNT, TIME } from './fields.ts'
import { ASKED } from './fleet-crashes.ts'
import { fleetOf, NAME, type FleetDeck } from './fleet.ts'
import { integerParam, timeParam } from './input.ts'
import { checkAlone, lineFilters, SELECTION, STREAMS } from './log-lines.ts'
import type { Wanted } from '../fleet/logs.ts'
import type { Person } from '../fleet/rpc-client.ts'

/** Output of the workers of all members of the fleet, which are asked at the same time. */

const MAX_LINES = 200

export type FleetLogLine = z.infer<typeof LINE>
const LINE = z.strictObject({ member: z.string(), slot: COUNT.describe('0: a standby worker, or one that was'),
  stream: z.enum(STREAMS), text: z.string().describe('cut after 4000 characters'),
  arrivedAt: TIME.nullable().describe('about when it was written, by the clock of that host; null: not known'),
  place: z.string().describe('where it begins in the logs of that member') }).meta({ id: 'FleetLogLine' })

export type FleetLogLines = z.infer<typeof LIST>
const LIST = z.strictObject({ ...ASKED,
  cut: z.array(z.string()).describe('members that had no time to search all their files'), items: z.array(LINE),
  next: TIME.nullable().describe('the `until` of the page before this one; null: there is none') }).meta({
    id: 'FleetLogLines'
  })

export function fleetLogFilters (now: () => number) {
  const { q, level, since, until } = lineFilters(now)
  return { member: NAME.optional(), stream: SELECTION.stream, q, level, since, until, around: timeParam(now) }
}

export function fleetLogResources ({ deck, now }: { deck: FleetDeck, now: () => number }): Record<string, Resource> {
  return {
    '/fleet/logs': {
      GET: operation({ name: 'listFleetLogLines',
        summary: 'Returns the newest lines of the app\'s output on all members, or the matching ones, oldest first',
        description:
          'Each member has 6 seconds to search its own files, and its clock says when a line was written. With `around`, half of the lines ' +
          'are before that time and half after it. While NATS is away only this host answers.', role: 'viewer',
        cli: 'clusterdeck fleet logs',
        query: z.strictObject({ ...fleetLogFilters(now), lines: integerParam(1, MAX_LINES) }),
        problems: ['no-fleet', 'fleet-away', 'not-found'], answer: LIST,
        handle: async ({ query, auth }) => ({ body: await fleetLines(deck, query, auth) }) })
    }
  }
}

/** @throws {import('../errors.ts').DeckError} no-fleet, fleet-away, not-found, invalid-query */
export async function fleetLines (deck: FleetDeck, query: Wanted & Parameters<typeof checkAlone>[0], person: Person) {
  checkAlone(query)
  return await fleetOf(deck).logs(query, person)
}
