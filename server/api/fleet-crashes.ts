import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { FINGERPRINT } from './crashes.ts'
import { operation, type Resource } from './endpoint.ts'
import { COUNT, NUMBER, RELEASE_NAME, TIME } from './fields.ts'
import { crashFilters } from './filters.ts'
import { fleetOf } from './fleet.ts'
import type { CrashAction } from '../crashes/crashes.ts'
import type { Deck } from '../deck.ts'

/** Crashes of all members of the fleet, which are asked at the same time. */

const NAME = z.string().regex(FINGERPRINT).meta({ description: 'the fingerprint of a group of crashes',
  examples: ['v1:0123456789abcdef0123456789abcdef'] })
const STATE = z.enum(['open', 'resolved', 'muted'])
const MEMBER = z.string()

export const ASKED = { asked: COUNT.describe('how many members were asked'),
  answered: COUNT.describe('how many members answered, including this host'),
  silent: z.array(MEMBER).describe('members that did not answer in time or cannot be asked'),
  refused: z.array(z.strictObject({ member: MEMBER, problem: z.string() })).describe('members that refused') }

export type FleetCrashGroup = z.infer<typeof GROUP>
const GROUP = z.strictObject({ fingerprint: NAME,
  state: z.enum(['open', 'resolved', 'muted', 'mixed']).describe('"mixed": the members differ'), kind: z.string(),
  cause: z.string(), errorName: z.string().nullable(),
  message: z.string().nullable().describe('the message of the newest crash'), culprit: z.string().nullable(),
  count: COUNT.describe('crashes of all members together'), firstSeenAt: TIME, lastSeenAt: TIME,
  isNewInRelease: z.boolean().describe('on a member the running release is the first with this crash'),
  hasReturned: z.boolean(),
  members: z.array(
    z.strictObject({ member: MEMBER, id: NUMBER.describe('the id of the group on that member'), count: COUNT,
      state: STATE, lastSeenAt: TIME, lastRelease: RELEASE_NAME.nullable() })
  ) }).meta({ id: 'FleetCrashGroup' })

export type FleetCrashes = z.infer<typeof LIST>
const LIST = z.strictObject({ ...ASKED,
  cut: z.array(MEMBER).describe('members that have more groups than this answer shows'), items: z.array(GROUP) }).meta({
    id: 'FleetCrashes'
  })
export type SettledFleetCrash = z.infer<typeof SETTLED>
const SETTLED = z.strictObject({ fingerprint: NAME, ...ASKED,
  members: z.array(z.strictObject({ member: MEMBER, id: NUMBER })).describe('members that had the group') }).meta({
    id: 'FleetCrashSettled'
  })

/** Actions with their summaries. */
const ACTIONS: readonly [CrashAction, string][] = Object.freeze([['resolve',
  'Marks a group as resolved on all members'], ['mute', 'Mutes a group on all members: nobody is told of it any more'],
  ['reopen', 'Opens a group again on all members']])

export function fleetCrashResources ({ deck, now }: { deck: Deck, now: () => number }): Record<string, Resource> {
  const { state, q, since } = crashFilters(now)
  return {
    '/fleet/crashes': {
      GET: operation({ name: 'listFleetCrashes',
        summary: 'Lists the crash groups of the app on all members, joined by fingerprint, the last to crash first',
        description:
          'Each member has 3 seconds to send its 100 groups that crashed last. While NATS is away only this host answers.',
        role: 'viewer', cli: 'clusterdeck fleet crashes', query: z.strictObject({ state, q, since }),
        problems: ['no-fleet', 'fleet-away'], answer: LIST,
        handle: async ({ query, auth }) => ({ body: await fleetOf(deck).crashes(query, auth) }) })
    },
    ...Object.fromEntries(
      ACTIONS.map((
        [action, summary]
      ) => [`/fleet/crashes/:fingerprint/${action}`, {
        POST: operation({ name: `${action}FleetCrash`, summary,
          description: 'Only members that answer change the group.', role: 'operator',
          cli: `clusterdeck fleet ${action} v1:0123456789abcdef0123456789abcdef`, path: { fingerprint: NAME },
          problems: ['no-fleet', 'not-found'], answer: SETTLED, form: { next: refuseSome },
          handle: async ({ params, auth }) => ({
            body: await fleetOf(deck).settleCrash(parseFingerprint(params.fingerprint), action, auth)
          }) })
      }])
    )
  }
}

/** @throws {DeckError} not-possible: some members did not answer */
function refuseSome ({ silent, refused }: SettledFleetCrash) {
  const left = [...silent, ...refused.map(({ member }) => member)]
  if (left.length > 0)
    throw new DeckError('not-possible', `Done on the members that answered, but not on ${left.join(', ')}`)
  return null
}

/** @throws {DeckError} invalid-id */
function parseFingerprint (text: string) {
  if (FINGERPRINT.test(text)) return text
  throw new DeckError('invalid-id',
    `fingerprint: expected one such as v1:0123456789abcdef0123456789abcdef, received ${
      JSON.stringify(text.slice(0, 80))
    }`)
}
