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

const ASKED = {
  asked: COUNT.describe('how many members there are'),
  answered: COUNT.describe('how many of them have answered, this deck among them'),
  silent: z.array(MEMBER).describe('those that did not answer in time, or cannot be asked'),
  refused: z.array(z.strictObject({ member: MEMBER, problem: z.string() })).describe('those that answered by a refusal')
}

/** @typedef {z.infer<typeof GROUP>} FleetCrashGroup */
const GROUP = z.strictObject({
  fingerprint: NAME,
  state: z.enum(['open', 'resolved', 'muted', 'mixed']).describe('"mixed" where members differ'),
  kind: z.string(),
  cause: z.string(),
  errorName: z.string().nullable(),
  message: z.string().nullable().describe('of the newest crash'),
  culprit: z.string().nullable(),
  count: COUNT.describe('of all members together'),
  firstSeenAt: TIME,
  lastSeenAt: TIME,
  isNewInRelease: z.boolean().describe('on a member, the release that runs is the first with it'),
  hasReturned: z.boolean(),
  members: z.array(z.strictObject({
    member: MEMBER,
    id: NUMBER.describe('of the group there'),
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
      .describe('those that have more groups than the 100 that each is asked for, or groups that are not among the 1000 that have crashed last'),
    items: z.array(GROUP)
  })
  .meta({ id: 'FleetCrashes' })
/** @typedef {z.infer<typeof SETTLED>} SettledFleetCrash */
const SETTLED = z
  .strictObject({ fingerprint: NAME, ...ASKED, members: z.array(z.strictObject({ member: MEMBER, id: NUMBER })).describe('those that had the group') })
  .meta({ id: 'FleetCrashSettled' })

/** With what each does. @type {readonly [import('../crashes/crashes.js').CrashAction, string][]} */
const ACTIONS = Object.freeze([
  ['resolve', 'Marks a group as mended on all members'],
  ['mute', 'Tells nobody of a group any more, on all members'],
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
        summary: 'Groups of crashes of all members, folded by fingerprint, the last to crash first',
        description: 'Each member is given 3 seconds, and is asked for the 100 groups that crashed last. Also without NATS: then this deck alone answers.',
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
        description: 'Reaches those that answer; the others keep the group as it is.',
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
