import { z } from 'zod'
import { CAUSES } from '../causes.ts'
import { checkEventPattern } from '../config/event-pattern.ts'
import { RELEASE_ID } from '../config/release-id.ts'
import { PROBLEMS } from '../events/kinds.ts'
import { integerParam, textParam, timeParam } from './input.ts'

/** Filters and paging of lists, shared by the API and the pages. */

const ANY_NUMBER = Number.MAX_SAFE_INTEGER
const TYPES = /^[a-z]+(\.(\*|[a-z-]+(:[a-z-]+)?))?(,[a-z]+(\.(\*|[a-z-]+(:[a-z-]+)?))?){0,31}$/
/** Stands for all events that an operator checks first. */
const ALL_PROBLEMS = 'problems'

const TYPES_EXPECTED =
  'event types such as worker.exited, worker.exited:crash (with that cause), worker.* or problems, separated by commas'

const q = z.string().min(1).max(100).optional()

/** One of a host has a place in the history of each app. */
export const CURSOR = textParam('the "next" of an earlier page', /^[\w-]{1,6000}$/)

export function pagingFields (maxItems: number) {
  return { limit: integerParam(1, maxItems), cursor: CURSOR }
}

/** The query of a list without filters. */
export const PAGE_QUERY = z.strictObject(pagingFields(100))

/** The id of a release. */
export const RELEASE = textParam('a release such as r12', RELEASE_ID)

export function eventFilters (now: () => number) {
  return { q: q.describe('1 to 100 characters of a message'),
    type: z.string().max(1000).regex(TYPES).superRefine(checkTypes).transform(toTypes).optional().describe(
      TYPES_EXPECTED
    ), cause: z.enum(CAUSES).optional().describe('a cause such as out-of-memory'), slot: integerParam(1, ANY_NUMBER),
    worker: integerParam(1, ANY_NUMBER), release: RELEASE, rollout: integerParam(1, ANY_NUMBER), since: timeParam(now),
    until: timeParam(now) }
}

export const CRASH_SORT = z.enum(['last', 'count', 'first']).optional().describe(
  '"last" (seen, the default), "count" or "first" (seen), the highest first'
)

export function crashFilters (now: () => number) {
  return { state: z.enum(['open', 'resolved', 'muted']).optional().describe('"open", "resolved" or "muted"'),
    q: q.describe('1 to 100 characters of a message or a stack'), release: RELEASE, since: timeParam(now) }
}

function checkTypes (text: string, context: z.RefinementCtx) {
  text.split(',').every((name) => name === ALL_PROBLEMS || checkEventPattern(name, context, TYPES_EXPECTED))
}

function toTypes (text: string) {
  return text.split(',').flatMap((name) => name === ALL_PROBLEMS ? PROBLEMS : [name])
}
