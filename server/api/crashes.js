import { z } from 'zod'
import { CAUSES } from '../events/kinds.js'
import { operation } from './endpoint.js'
import { ACTOR, COUNT, NUMBER, pageOf, RELEASE_NAME, TIME } from './fields.js'
import { crashFilters, paging } from './filters.js'
import { parseId } from './input.js'
import { SAMPLE } from './vitals.js'

const KIND = z.enum(['exception', 'unhandled-rejection', 'exit-code', 'signal', 'heap-out-of-memory', 'kernel-out-of-memory', 'hung', 'boot-failure'])

/** Crashes that are one and the same fault. */
const CRASH_GROUP = z.strictObject({
  id: NUMBER,
  fingerprint: z.string(),
  state: z.enum(['open', 'resolved', 'muted']),
  kind: KIND,
  cause: z.enum(CAUSES).describe('of its newest crash, as in the history'),
  errorName: z.string().nullable(),
  message: z.string().nullable().describe('of its newest crash'),
  culprit: z.string().nullable().describe('the topmost function of the app'),
  firstSeenAt: TIME,
  lastSeenAt: TIME,
  count: COUNT.describe('of all, also of those of which no sample is kept'),
  firstRelease: RELEASE_NAME.nullable(),
  lastRelease: RELEASE_NAME.nullable(),
  lastCrash: COUNT.describe('the id of its newest crash'),
  stateChangedAt: TIME.nullable(),
  stateChangedBy: ACTOR.nullable(),
  returnedAt: TIME.nullable().describe('when it came back after it was resolved'),
  isNewInRelease: z.boolean().describe('the release that runs is the first with it'),
  hasReturned: z.boolean()
}).meta({ id: 'CrashGroup' })

const GROUP_RELEASE = z.strictObject({ release: RELEASE_NAME, count: COUNT, firstSeenAt: TIME, lastSeenAt: TIME })

const OCCURRENCE = z.strictObject({
  id: NUMBER,
  at: TIME,
  cause: z.enum(CAUSES),
  code: z.int().nullable(),
  signal: z.string().nullable(),
  slot: NUMBER.nullable(),
  worker: NUMBER.nullable(),
  pid: NUMBER.nullable(),
  release: RELEASE_NAME.nullable(),
  rollout: NUMBER.nullable(),
  uptimeMs: z.number().nullable(),
  errorName: z.string().nullable(),
  errorMessage: z.string().nullable()
}).meta({ id: 'CrashOccurrence' })

const FRAME = z.strictObject({
  function: z.string().nullable(),
  file: z.string().nullable(),
  line: z.int().nullable(),
  column: z.int().nullable(),
  isInApp: z.boolean().describe('neither of Node, nor of node_modules, nor of clusterdeck')
})

const CRASH = OCCURRENCE.extend({
  kind: KIND,
  nodeVersion: z.string(),
  stack: z.string().nullable().describe('as the process had it'),
  frames: z.array(FRAME).describe('of that stack, innermost first, with source maps applied'),
  causes: z.array(z.strictObject({ depth: COUNT, errorName: z.string(), errorMessage: z.string(), stack: z.string().nullable() })),
  requests: z.array(z.strictObject({ method: z.string(), path: z.string(), ageMs: z.number() })).describe('that were not answered yet'),
  memory: z.record(z.string(), z.number()).nullable().describe('in bytes, at its end'),
  stderr: z.array(z.string()).describe('its last lines'),
  vitals: z.array(SAMPLE).describe('of its last minute'),
  isCut: z.boolean().describe('it was too large to be kept whole').optional()
}).meta({ id: 'Crash' })

/** With the releases in which it came. */
const KNOWN_CRASH_GROUP = CRASH_GROUP.extend({ releases: z.array(GROUP_RELEASE) }).meta({ id: 'KnownCrashGroup' })

const CRASH_GROUP_IN_FULL = KNOWN_CRASH_GROUP.extend({ occurrences: z.array(OCCURRENCE), latest: CRASH.nullable() }).meta({ id: 'CrashGroupInFull' })

const ACTIONS = /** @type {const} */ ({ resolve: 'Marks a group as mended; it opens again if it comes back', mute: 'Tells nobody of a group any more', reopen: 'Opens a group again' })

/**
 * @param {object} parts
 * @param {Pick<import('../deck.js').Deck, 'crashes'>} parts.deck
 * @param {() => number} parts.now
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function crashResources ({ deck, now }) {
  const listQuery = z.strictObject({ ...crashFilters(now), ...paging(100) })

  return {
    '/crashes': {
      GET: operation({
        name: 'listCrashes',
        summary: 'Groups of crashes, the last to crash first',
        role: 'viewer',
        cli: 'clusterdeck crashes',
        query: listQuery,
        answer: pageOf(CRASH_GROUP),
        handle: ({ query }) => ({ body: deck.crashes.page(query) })
      })
    },
    '/crashes/:id': {
      GET: operation({
        name: 'getCrash',
        summary: 'One group, with its newest crash and what is kept of the others',
        role: 'viewer',
        cli: 'clusterdeck crashes 7',
        problems: ['not-found'],
        answer: CRASH_GROUP_IN_FULL,
        handle: ({ id }) => ({ body: deck.crashes.find(id) })
      })
    },
    '/crashes/:id/occurrences/:n': {
      GET: operation({
        name: 'getCrashOccurrence',
        summary: 'One crash in full',
        role: 'viewer',
        path: { n: NUMBER.describe('the id of a crash') },
        problems: ['not-found'],
        answer: CRASH,
        handle: ({ id, req }) => ({ body: deck.crashes.occurrence(id, parseId(req.params.n)) })
      })
    },
    '/crashes/:id/resolve': { POST: action('resolve') },
    '/crashes/:id/mute': { POST: action('mute') },
    '/crashes/:id/reopen': { POST: action('reopen') }
  }

  /** @param {import('../crashes/crashes.js').CrashAction} name @returns {import('./endpoint.js').Operation} */
  function action (name) {
    return operation({
      name: `${name}Crash`,
      summary: ACTIONS[name],
      role: 'operator',
      problems: ['not-found', 'history-unavailable'],
      answer: KNOWN_CRASH_GROUP,
      handle: ({ id, auth }) => ({ body: deck.crashes.act(id, name, auth.actor) })
    })
  }
}
