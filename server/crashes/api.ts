import { z } from 'zod'
import { HOSTS, OF_MEMBER } from '../api/ask.ts'
import { operation, type Operation, type Resource } from '../api/endpoint.ts'
import { COUNT, ID_PARAMETER, NUMBER, pageOf, RELEASE_NAME, TIME } from '../api/fields.ts'
import { FINGERPRINT } from '../config/fingerprint.ts'
import { CRASH_GROUP_OF_HOSTS, fleetCrashes } from '../fleet/api-crashes.ts'
import { CRASH_SORT, crashFilters, pagingFields } from '../api/filters.ts'
import { parseId, textParam } from '../api/input.ts'
import { CRASH_GROUP, CRASH_RECORD, FRAME, OCCURRENCE } from '../api/shapes.ts'
import { SAMPLE } from '../vitals/api.ts'
import type { Deck } from '../deck.ts'
import type { FleetDeck } from '../fleet/api.ts'
import type { CrashAction } from './crashes.ts'

export type { CrashGroup } from '../api/shapes.ts'
const GROUP_RELEASE = z.strictObject({ release: RELEASE_NAME, count: COUNT, firstSeenAt: TIME, lastSeenAt: TIME })

/** Lines of a file of the release. */
export const SOURCE = z.array(z.strictObject({ number: NUMBER, text: z.string() })).nullable()

const SHOWN_FRAME = FRAME.extend({
  source: SOURCE.describe(
    'the lines around it, of a frame of the app; null: its release has them no longer, or the file has changed since'
  ).optional()
})

const CRASH = CRASH_RECORD.extend({
  frames: z.array(SHOWN_FRAME).describe('frames of that stack, innermost first, with source maps applied'),
  vitals: z.array(SAMPLE).describe('vitals of its last minute'),
  isCut: z.boolean().describe('the record was too large and is shortened').optional()
}).meta({ id: 'Crash' })

/** A group also lists the releases that it occurred in. */
const KNOWN_CRASH_GROUP = CRASH_GROUP.extend({ releases: z.array(GROUP_RELEASE) }).meta({ id: 'KnownCrashGroup' })

export type CrashGroupInFull = z.infer<typeof CRASH_GROUP_IN_FULL>
const CRASH_GROUP_IN_FULL = KNOWN_CRASH_GROUP.extend({ occurrences: z.array(OCCURRENCE), latest: CRASH.nullable() })
  .meta({ id: 'CrashGroupInFull' })

const ACTIONS = Object.freeze({ resolve: 'Marks a crash group as resolved; it opens again if it crashes again',
  mute: 'Mutes a crash group: nobody is told of it any more', reopen: 'Opens a crash group again' })

export function crashResources (
  { deck, now }: { deck: Pick<Deck, 'crashes'> & FleetDeck, now: () => number }
): Record<string, Resource> {
  const listQuery = z.strictObject({ ...crashFilters(now),
    fingerprint: textParam('the fingerprint of a group', FINGERPRINT), sort: CRASH_SORT, member: OF_MEMBER,
    ...pagingFields(100) })

  return {
    '/crashes': {
      GET: operation({ name: 'listCrashes',
        summary: 'Lists the crash groups, the last to crash first unless `sort` says otherwise', role: 'viewer',
        description:
          'Of several members it has their groups by fingerprint, without pages: each has 3 seconds to send its ' +
          '100 groups that crashed last. While NATS is away only this host answers.', cli: 'clusterdeck crashes',
        query: listQuery, problems: ['no-fleet', 'fleet-away', 'not-found'],
        answer: pageOf(CRASH_GROUP_OF_HOSTS).extend({ hosts: HOSTS.optional() }),
        handle: async ({ query: { member, cursor, ...query }, auth }) => ({ body: member === undefined
          ? deck.crashes.page({ ...query, cursor })
          : await fleetCrashes(deck, { ...query, member }, auth) }) })
    },
    '/crashes/:id': {
      GET: operation({ name: 'getCrash',
        summary: 'Returns one crash group with its newest crash and a summary of the others that are kept',
        role: 'viewer', cli: 'clusterdeck crashes 7', problems: ['not-found'], answer: CRASH_GROUP_IN_FULL,
        handle ({ id }) {
          const { latest, ...group } = deck.crashes.find(id)
          return { body: { ...group, latest: latest && withSource(latest) } }
        } })
    },
    '/crashes/:id/occurrences/:n': {
      GET: operation({ name: 'getCrashOccurrence', summary: 'Returns one crash with all details', role: 'viewer',
        path: { n: ID_PARAMETER.describe('the id of a crash') }, problems: ['not-found'], answer: CRASH,
        handle: ({ id, params }) => ({ body: withSource(deck.crashes.occurrence(id, parseId(params.n))) }) })
    },
    '/crashes/:id/resolve': { POST: stateOperation('resolve') },
    '/crashes/:id/mute': { POST: stateOperation('mute') },
    '/crashes/:id/reopen': { POST: stateOperation('reopen') }
  }

  function withSource<T extends Parameters<typeof deck.crashes.sourceLines>[0]> (crash: T) {
    const lines = deck.crashes.sourceLines(crash)
    return { ...crash, frames: crash.frames.map((frame, index) => ({ ...frame, source: lines[index] })) }
  }

  function stateOperation (name: CrashAction): Operation {
    return operation({ name: `${name}Crash`, form: {}, summary: ACTIONS[name], role: 'operator',
      problems: ['not-found', 'history-unavailable'], answer: KNOWN_CRASH_GROUP,
      handle: ({ id, auth }) => ({ body: deck.crashes.act(id, name, auth.actor) }) })
  }
}
