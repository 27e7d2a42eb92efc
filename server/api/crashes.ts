import { z } from 'zod'
import { crashIssue } from '../crash-issue.ts'
import { operation, type Operation, type Resource } from './endpoint.ts'
import { ACTOR, COUNT, ID_PARAMETER, NUMBER, pageOf, RELEASE_NAME, TIME } from './fields.ts'
import { CRASH_SORT, crashFilters, pagingFields } from './filters.ts'
import { parseId, textParam } from './input.ts'
import { checkMatch, doerOf, IF_MATCH, newestOf, tagOf, type Past } from './preconditions.ts'
import { CRASH_GROUP, CRASH_RECORD, FRAME, OCCURRENCE } from './shapes.ts'
import { SAMPLE } from './vitals.ts'
import type { Deck } from '../deck.ts'
import type { CrashAction } from '../crashes/crashes.ts'

export const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/

export type { CrashGroup } from './shapes.ts'
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

const NOTE = z.strictObject({ id: NUMBER, at: TIME, actor: ACTOR, text: z.string() }).meta({ id: 'CrashNote' })

export type CrashGroupInFull = z.infer<typeof CRASH_GROUP_IN_FULL>
const CRASH_GROUP_IN_FULL = KNOWN_CRASH_GROUP.extend({ notes: z.array(NOTE).describe('oldest first'),
  occurrences: z.array(OCCURRENCE), latest: CRASH.nullable() }).meta({ id: 'CrashGroupInFull' })

/** Fields of forms, here and in the dashboard. */
export const NOTE_TEXT = z.string().trim().min(1).max(2000).meta({ description: 'a text of 1 to 2000 characters',
  examples: ['the cart is empty after a timeout'] })
export const ASSIGNEE = z.string().trim().min(1).max(100).meta({ description: 'a name of 1 to 100 characters',
  examples: ['ada'] })

const ACTIONS = Object.freeze({ resolve: 'Marks a crash group as resolved; it opens again if it crashes again',
  mute: 'Mutes a crash group: nobody is told of it any more', reopen: 'Opens a crash group again' })

export function crashResources (
  { deck, history, now }: { deck: Pick<Deck, 'crashes' | 'snapshot'>, history: Past, now: () => number }
): Record<string, Resource> {
  const listQuery = z.strictObject({ ...crashFilters(now),
    fingerprint: textParam('the fingerprint of a group', FINGERPRINT), sort: CRASH_SORT, ...pagingFields(100) })

  return {
    '/crashes': {
      GET: operation({ name: 'listCrashes',
        summary: 'Lists the crash groups, the last to crash first unless `sort` says otherwise', role: 'viewer',
        cli: 'clusterdeck crashes', query: listQuery, answer: pageOf(CRASH_GROUP),
        handle: ({ query }) => ({ body: deck.crashes.page(query) }) })
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
    '/crashes/:id/issue': {
      GET: operation({ name: 'getCrashIssue',
        summary: 'Returns a crash group with its newest crash as the text of an issue, in Markdown', role: 'viewer',
        cli: 'clusterdeck crashes 7 --issue', problems: ['not-found'],
        answer: z.strictObject({ title: z.string(), body: z.string().describe('Markdown') }),
        handle: ({ id }) => ({ body: crashIssue(deck.crashes, id, deck.snapshot().app.name) }) })
    },
    '/crashes/:id/assignee': {
      GET: operation({ name: 'getCrashAssignee', summary: 'Returns who takes care of a crash group', role: 'viewer',
        hasTag: true, problems: ['not-found'], answer: z.strictObject({ assignee: KNOWN_CRASH_GROUP.shape.assignee }),
        handle ({ id }) {
          const { assignee } = deck.crashes.group(id)
          return { headers: { ETag: tagOf(assigneeTag(assignee)) }, body: { assignee } }
        } }),
      PUT: operation({ name: 'assignCrash', summary: 'Assigns a crash group to a person, or to nobody',
        role: 'operator', headers: { 'If-Match': IF_MATCH.optional() },
        problems: ['not-found', 'history-unavailable', 'precondition-failed'],
        body: z.strictObject({ assignee: ASSIGNEE.nullable().describe('a name of 1 to 100 characters, or null') }),
        answer: KNOWN_CRASH_GROUP, handle ({ seen, id, body, auth }) {
        const { assignee } = deck.crashes.group(id)
        checkMatch(seen, assigneeTag(assignee), { isRequired: false, change: () =>
          changeOfAssignee(history, id, assignee) })
        return { body: deck.crashes.assign(id, body.assignee, auth.actor) }
      } })
    },
    '/crashes/:id/notes': {
      POST: operation({ name: 'addCrashNote', summary: 'Adds a note to a crash group', role: 'operator', status: 201,
        problems: ['not-found', 'not-possible', 'history-unavailable'], body: z.strictObject({ text: NOTE_TEXT }),
        answer: NOTE, handle: ({ id, body, auth }) => ({ body: deck.crashes.addNote(id, body.text, auth.actor) }) })
    },
    '/crashes/:id/notes/:n': {
      DELETE: operation({ name: 'removeCrashNote', summary: 'Removes a note from a crash group', role: 'operator',
        path: { n: ID_PARAMETER.describe('the id of a note') }, problems: ['not-found', 'history-unavailable'],
        answer: NOTE,
        handle: ({ id, params, auth }) => ({ body: deck.crashes.removeNote(id, parseId(params.n), auth.actor) }) })
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
    return operation({ name: `${name}Crash`, summary: ACTIONS[name], role: 'operator',
      problems: ['not-found', 'history-unavailable'], answer: KNOWN_CRASH_GROUP,
      handle: ({ id, auth }) => ({ body: deck.crashes.act(id, name, auth.actor) }) })
  }
}

/** A name may have characters that an ETag may not. */
function assigneeTag (assignee: string | null) {
  return encodeURIComponent(assignee ?? '')
}

export function changeOfAssignee (history: Past, id: number, now: string | null) {
  const event = newestOf(history, ['crash.group-assigned'], ({ detail }) => detail?.crashGroup === id)
  return `${doerOf(event)} has ${now === null ? 'unassigned it' : `assigned it to ${now}`} since you opened this`
}
