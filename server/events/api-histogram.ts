import { z } from 'zod'
import { PROBLEMS } from './kinds.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { COUNT, TIME, toIso } from '../api/fields.ts'
import { eventFilters } from '../api/filters.ts'
import { NO_COUNTS, readPieces } from '../api/full-page.ts'
import { integerParam } from '../api/input.ts'
import type { EventQuery } from '../../db/event-search.ts'

/** Counts events over time, problems separately. */
export type History = Pick<import('../../db/history.ts').History, 'count' | 'times'>
export type Query = Omit<EventQuery, 'limit' | 'cursor'>
export type Histogram = z.infer<typeof HISTOGRAM>

const [SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS] = [1000, 60_000, 3_600_000, 86_400_000]
/** Round lengths, so that most steps begin at a round time. */
const STEPS_MS = Object.freeze([...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS), ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 7, 14, 28].map((days) => days * DAY_MS)])
const DEFAULT_STEPS = 60
const MAX_STEPS = 200
// Turns of the event loop, a few milliseconds each; after them the answer says how far the count came.
const MAX_TURNS = 250
const BAD = new Set(PROBLEMS)

export const HISTOGRAM = z.strictObject({ from: TIME.describe('the start of the first step'),
  to: TIME.describe('the end of the last step'), stepMs: z.int().min(1),
  countedSince: TIME.nullable().describe('the search took too long and counted no older events; null: all are counted'),
  items: z.array(
    z.strictObject({ at: TIME.describe('the start of the step'), count: COUNT,
      problems: COUNT.describe('how many of them match the filter "problems"') })
  ).describe('one item for each step, oldest first') }).meta({ id: 'EventHistogram' })

export function histogramResources (
  { history, now }: { history: History, now: () => number }
): Record<string, Resource> {
  const query = z.strictObject({ ...eventFilters(now), steps: integerParam(1, MAX_STEPS) })

  return {
    '/events/histogram': {
      GET: operation({ name: 'getEventHistogram', summary: 'Counts events over time',
        description:
          'Takes the filters of the history. Without `since` it begins with the oldest event that is kept, without `until` it ends now. ' +
          'There are at most `steps` (60) steps, of a round length.', role: 'viewer', query, answer: HISTOGRAM,
        async handle ({ query: { steps, ...filters } }) {
          return { body: await countOverTime(history, filters, { now: now(), steps }) }
        } })
    }
  }
}

/**
 * Counts a part in each turn of the event loop.
 * @throws {import('../errors.ts').DeckError} `invalid-query`, `history-unavailable`
 */
export async function countOverTime (history: History, query: Query,
  { now, steps = DEFAULT_STEPS, maxTurns = MAX_TURNS }: { now: number, steps?: number, maxTurns?: number }
): Promise<Histogram> {
  const { stepMs, first, length } = axisOf(history, query, { now, steps })
  const items = Array.from({ length }, (_, index) => ({ at: toIso((first + index) * stepMs), count: 0, problems: 0 }))
  const { reachedMs } = await readPieces((cursor) => history.count({ ...query, stepMs, cursor }), NO_COUNTS, { maxTurns,
    take: ({ counts }) => counts.forEach(add) })
  return { from: toIso(first * stepMs), to: toIso((first + length) * stepMs), stepMs,
    countedSince: reachedMs === null ? null : toIso(reachedMs + 1), items }

  function add ({ step, type, cause, count }: ReturnType<History['count']>['counts'][number]) {
    const item = items[step - first]
    // The clock of an event may be ahead of this one.
    if (!item) return
    item.count += count
    if (BAD.has(type) || BAD.has(`${type}:${cause}`)) item.problems += count
  }
}

/** The range begins with the oldest event that is kept. */
function axisOf (history: History, { since, until }: Query, { now, steps }: { now: number, steps: number }) {
  const kept = history.times()
  const to = Math.max(1, toMs(until) ?? Math.max(now, kept?.newestMs ?? now) + 1)
  const from = Math.min(Math.max(toMs(since) ?? 0, kept?.oldestMs ?? now - HOUR_MS, 0), to - 1)
  const lengthOf = (stepMs: number) => Math.ceil(to / stepMs) - Math.floor(from / stepMs)
  const longest = STEPS_MS[STEPS_MS.length - 1]
  const stepMs = STEPS_MS.find((ms) => lengthOf(ms) <= steps) ??
    Math.ceil((to - from) / Math.max(1, steps - 1) / longest) * longest
  return { stepMs, first: Math.floor(from / stepMs), length: lengthOf(stepMs) }
}

function toMs (time: string | number | undefined): number | undefined {
  return typeof time === 'string' ? Date.parse(time) : time
}
