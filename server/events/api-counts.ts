import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { CAUSES } from '../causes.ts'
import { EVENT_TYPES } from './kinds.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { NUMBER, TIME, toIso } from '../api/fields.ts'
import { CURSOR, eventFilters } from '../api/filters.ts'
import { NO_COUNTS, readPieces } from '../api/full-page.ts'
import type { CountWithEnds as Count } from '../../db/event-counts.ts'
import type { History } from '../../db/history.ts'
import type { EventQuery } from '../../db/event-search.ts'

/** Counts events over time, for charts. The answer has one item a step, however many events there are. */
export type EventCount = z.infer<typeof EVENT_COUNT>
export type EventCounts = z.infer<typeof EVENT_COUNTS>

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The steps of a chart, the shortest first. */
const STEPS = Object.freeze([{ name: '1s', stepMs: SECOND_MS }, { name: '5s', stepMs: 5 * SECOND_MS }, { name: '15s',
  stepMs: 15 * SECOND_MS }, { name: '1m', stepMs: MINUTE_MS }, { name: '5m', stepMs: 5 * MINUTE_MS }, { name: '15m',
  stepMs: 15 * MINUTE_MS }, { name: '1h', stepMs: HOUR_MS }, { name: '3h', stepMs: 3 * HOUR_MS }, { name: '1d',
  stepMs: 24 * HOUR_MS }])
const STEP_NAMES = STEPS.map(({ name }) => name)
const MAX_STEPS = 500
const DEFAULT_RANGE_MS = 24 * HOUR_MS
// The database reads for a few milliseconds in each turn; after these turns the answer has a cursor.
const MAX_TURNS = 100

const EVENT_COUNT = z.strictObject({ at: TIME.describe('the start of the step'), type: z.enum(EVENT_TYPES),
  cause: z.enum(CAUSES).nullable(), count: NUMBER, firstAt: TIME, lastAt: TIME,
  lastId: NUMBER.describe('the id of the newest of them') }).meta({ id: 'EventCount' })

const EVENT_COUNTS = z.strictObject({ stepMs: NUMBER, since: TIME, until: TIME,
  items: z.array(EVENT_COUNT).describe('oldest step first'),
  next: z.string().nullable().describe(
    'a cursor if there were too many for one answer; add the counts of the next answer to the same steps'
  ) })

export function eventCountResources (
  { history, now }: { history: Pick<History, 'countWithEnds'>, now: () => number }
): Record<string, Resource> {
  return {
    '/events/counts': {
      GET: operation({ name: 'countEvents', summary: 'Counts events by step of time, type and cause',
        description:
          `Steps begin at multiples of their length; steps without an event are left out. At most ${MAX_STEPS} steps.`,
        role: 'viewer', problems: ['history-unavailable'],
        query: z.strictObject({ ...eventFilters(now),
          step: z.enum(STEP_NAMES).optional().describe(
            `one of ${STEP_NAMES.join(', ')}; default: the shortest that suits the range`
          ), cursor: CURSOR }), answer: EVENT_COUNTS,
        handle: async ({ query }) => ({ body: await countEvents(query) }) })
    }
  }

  async function countEvents (
    { until = now(), since = until - DEFAULT_RANGE_MS, step, cursor, ...filters }: EventQuery & { since?: number,
      until?: number, step?: string }
  ) {
    const stepMs = stepOf({ since, until, step })
    const { items, next } = await countAll({ ...filters, since, until, cursor }, stepMs)
    return { stepMs, since: toIso(since), until: toIso(until),
      items: items.sort((a, b) => a.step - b.step || a.lastId - b.lastId).map((each) => toShown(each, stepMs)), next }
  }

  async function countAll (query: EventQuery, stepMs: number): Promise<{ items: Count[], next: string | null }> {
    const counts: Map<string, Count> = new Map()
    const { next } = await readPieces((cursor = query.cursor) => history.countWithEnds({ ...query, stepMs, cursor }),
      NO_COUNTS, { maxTurns: MAX_TURNS, take: (piece) => piece.counts.forEach((count) => addTo(counts, count)) })
    return { items: [...counts.values()], next }
  }
}

function addTo (counts: Map<string, Count>, more: Count) {
  const key = `${more.step} ${more.type} ${more.cause}`
  const known = counts.get(key)
  counts.set(key,
    known
      ? { ...known, count: known.count + more.count, firstMs: Math.min(known.firstMs, more.firstMs),
        lastMs: Math.max(known.lastMs, more.lastMs), lastId: Math.max(known.lastId, more.lastId) }
      : more)
}

/** @throws {DeckError} `invalid-query` */
function stepOf ({ since, until, step }: { since: number, until: number, step?: string }) {
  const counts = STEPS.filter(({ name }) => step === undefined || name === step).map(({ stepMs }) => ({ stepMs,
    count: (until - since) / stepMs })
  )
  const chosen = counts.find(({ count }) => count <= MAX_STEPS)
  if (chosen) return chosen.stepMs
  throw new DeckError('invalid-query',
    `${step ? 'step' : 'since'}: expected at most ${MAX_STEPS} steps from since to until, received ${
      Math.ceil(counts[counts.length - 1].count)
    }`)
}

function toShown ({ step, type, cause, count, firstMs, lastMs, lastId }: Count, stepMs: number) {
  return { at: toIso(step * stepMs), type, cause, count, firstAt: toIso(firstMs), lastAt: toIso(lastMs), lastId }
}
