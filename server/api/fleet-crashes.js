import { z } from 'zod'
import { DeckError } from '../errors.js'
import { FINGERPRINT } from './crashes.js'
import { operation } from './endpoint.js'
import { COUNT, NUMBER, RELEASE_NAME, TIME } from './fields.js'
import { crashFilters } from './filters.js'
import { fleetOf } from './fleet.js'

/** Crashes of all members of the fleet, which are asked at the same time. */

const NAME = z.string().regex(FINGERPRINT).meta({ description: 'the fingerprint of a group of crashes', examples: ['v1:0123456789abcdef0123456789abcdef'] })
const STATE = z.enum(['open', 'resolved', 'muted'])
const MEMBER = z.string()

export const ASKED = {
  asked: COUNT.describe('how many members were asked'),
  answered: COUNT.describe('how many members answered, including this host'),
  silent: z.array(MEMBER).describe('members that did not answer in time or cannot be asked'),
  refused: z.array(z.strictObject({ member: MEMBER, problem: z.string() })).describe('members that refused')
}

/** @typedef {z.infer<typeof GROUP>} FleetCrashGroup */
const GROUP = z.strictObject({
  fingerprint: NAME,
  state: z.enum(['open', 'resolved', 'muted', 'mixed']).describe('"mixed": the members differ'),
  kind: z.string(),
  cause: z.string(),
  errorName: z.string().nullable(),
  message: z.string().nullable().describe('the message of the newest crash'),
  culprit: z.string().nullable(),
  count: COUNT.describe('crashes of all members together'),
  firstSeenAt: TIME,
  lastSeenAt: TIME,
  isNewInRelease: z.boolean().describe('on a member the running release is the first with this crash'),
  hasReturned: z.boolean(),
  members: z.array(z.strictObject({
    member: MEMBER,
    id: NUMBER.describe('the id of the group on that member'),
    count: COUNT,
    state: STATE,
    lastSeenAt: TIME,
    lastRelease: RELEASE_NAME.nullable()
  }))
}).meta({ id: 'FleetCrashGroup' })

/** @typedef {z.infer<typeof LIST>} FleetCrashes */
const LIST = z
  .strictObject({
    ...ASKED,
    cut: z
      .array(MEMBER)
      .describe('members that have more groups than this answer shows'),
    items: z.array(GROUP)
  })
  .meta({ id: 'FleetCrashes' })
/** @typedef {z.infer<typeof SETTLED>} SettledFleetCrash */
const SETTLED = z
  .strictObject({ fingerprint: NAME, ...ASKED, members: z.array(z.strictObject({ member: MEMBER, id: NUMBER })).describe('members that had the group') })
  .meta({ id: 'FleetCrashSettled' })

/** Actions with their summaries. @type {readonly [import('../crashes/crashes.js').CrashAction, string][]} */
const ACTIONS = Object.freeze([
  ['resolve', 'Marks a group as resolved on all members'],
  ['mute', 'Mutes a group on all members: nobody is told of it any more'],
  ['reopen', 'Opens a group again on all members']
])

/**
 * @param {{ deck: import('../deck.js').Deck, now: () => number }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function fleetCrashResources ({ deck, now }) {
  const { state, q, since } = crashFilters(now)
  return {
    '/fleet/crashes': {
      GET: operation({
        name: 'listFleetCrashes',
        summary: 'Lists the crash groups of the app on all members, joined by fingerprint, the last to crash first',
        description: 'Each member has 3 seconds to send its 100 groups that crashed last. While NATS is away only this host answers.',
        role: 'viewer',
        cli: 'clusterdeck fleet crashes',
        query: z.strictObject({ state, q, since }),
        problems: ['no-fleet', 'fleet-away'],
        answer: LIST,
        handle: async ({ query, auth }) => ({ body: await fleetOf(deck).crashes(query, auth) })
      })
    },
    ...Object.fromEntries(ACTIONS.map(([action, summary]) => [`/fleet/crashes/:fingerprint/${action}`, {
      POST: operation({
        name: `${action}FleetCrash`,
        summary,
        description: 'Only members that answer change the group.',
        role: 'operator',
        cli: `clusterdeck fleet ${action} v1:0123456789abcdef0123456789abcdef`,
        path: { fingerprint: NAME },
        problems: ['no-fleet', 'not-found'],
        answer: SETTLED,
        handle: async ({ req, auth }) => ({ body: await fleetOf(deck).settleCrash(parseFingerprint(String(req.params.fingerprint)), action, auth) })
      })
    }]))
  }
}

/** @param {string} text @throws {DeckError} invalid-id */
function parseFingerprint (text) {
  if (FINGERPRINT.test(text)) return text
  throw new DeckError('invalid-id', `fingerprint: expected one such as v1:0123456789abcdef0123456789abcdef, received ${JSON.stringify(text.slice(0, 80))}`)
}
