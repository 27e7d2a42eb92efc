import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { COLUMN_NAMES, COLUMNS, type ColumnName } from './columns.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { NUMBER, TIME, toIso } from '../api/fields.ts'
import { integerParam, timeParam } from '../api/input.ts'
import type { Deck } from '../deck.ts'

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** The steps that are kept, for how long, and the longest range that each is shown for. */
const STEPS = Object.freeze([{ name: '1s', stepMs: SECOND_MS, keptMs: 15 * MINUTE_MS, rangeMs: 15 * MINUTE_MS }, {
  name: '10s',
  stepMs: 10 * SECOND_MS,
  keptMs: 24 * HOUR_MS,
  rangeMs: 4 * HOUR_MS
}, { name: '1m', stepMs: MINUTE_MS, keptMs: Infinity, rangeMs: Infinity }])
const FIGURES = Object.fromEntries(COLUMNS.map(({ name }) => [name, z.number().nullable()])) as Record<ColumnName,
  z.ZodNullable<z.ZodNumber>>
/** Vitals of a worker in one second; null: unknown. */
export const SAMPLE = z.strictObject({ at: TIME, ...FIGURES }).meta({ id: 'Sample' })

const VALUES = z.record(z.string(), z.array(z.number().nullable())).describe(
  'values by the name of the column; null: not known'
)

const SLOTS = z.string().regex(/^(?:all|none|[1-9]\d{0,2})$/).transform((text) =>
  text === 'all' || text === 'none' ? text : Number(text)
).optional().meta({ description: 'all, none or the number of a slot',
  as: { type: 'string', pattern: '^(all|none|[1-9][0-9]{0,2})$' } })

const SPREAD = { mean: VALUES, low: VALUES, high: VALUES }
const POINTS = z.strictObject({ pointMs: NUMBER,
  time: z.array(z.int()).describe('the first step of each that was measured'), cluster: z.strictObject(SPREAD),
  slots: z.array(z.strictObject({ slot: NUMBER, ...SPREAD })) }).describe(
    'with `pointMs`: the steps before `time`, joined; values have four digits'
  )

export type Series = z.infer<typeof SERIES>
const SERIES = z.strictObject({ step: z.enum(['1s', '10s', '1m']), stepMs: NUMBER, since: TIME, until: TIME,
  time: z.array(z.int()).describe('the start of each step, in seconds since the epoch'), cluster: VALUES,
  slots: z.array(z.strictObject({ slot: NUMBER, columns: VALUES })), points: POINTS.optional(),
  next: TIME.nullable().describe(
    'the `since` of the next request if the range was too long for one answer; null: it was not'
  ) }).meta({ id: 'Series' })

const COLUMN_LIST = { type: 'string', maxLength: 1000,
  pattern: `^(${COLUMN_NAMES.join('|')})(,(${COLUMN_NAMES.join('|')}))*$`, examples: ['rssBytes,requests'] }
const DAY_MS = 24 * HOUR_MS
const DEFAULT_RANGE_MS = 15 * MINUTE_MS
// Time passes between a request for the last 15 minutes and this check.
const TOLERANCE_MS = 2 * SECOND_MS

export function vitalsResources (
  { deck, now }: { deck: Pick<Deck, 'vitals'>, now: () => number }
): Record<string, Resource> {
  return {
    '/vitals': {
      GET: operation({ name: 'getVitals', summary: 'Returns the vitals of the workers over time, as columns',
        role: 'viewer', problems: ['history-unavailable'], answer: SERIES,
        query: z.strictObject({ since: timeParam(now), until: timeParam(now),
          columns: z.string().max(1000).regex(/^[A-Za-z0-9]+(,[A-Za-z0-9]+)*$/).transform((text) => text.split(','))
            .optional().meta({ description: 'names of columns such as rssBytes, separated by commas',
              as: COLUMN_LIST }), slots: SLOTS, step: z.enum(['1s', '10s', '1m']).optional().describe('1s, 10s or 1m'),
          pointMs: integerParam(SECOND_MS, DAY_MS) }),
        handle: ({ query }) => ({ body: readVitals(deck.vitals, query, now()) }) })
    }
  }
}

/** The upper one of the two in the middle. Null: none is known */
export function median (values: readonly (number | null)[]): number | null {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? null
}

/** @returns with three digits, as more are noise */
export function shortNumber (value: number | null): number | null {
  return value === null ? null : Number(value.toPrecision(3))
}

/**
 * Reads them in the finest steps that suit the range.
 * @throws {DeckError} invalid-query, or what the database says
 */
export function readVitals (vitals: Deck['vitals'],
  { since, until, step, columns, slots, pointMs }: { since?: number, until?: number, step?: string, columns?: string[],
    slots?: 'all' | 'none' | number, pointMs?: number }, now: number)
{
  const untilMs = until ?? now
  const sinceMs = since ?? untilMs - DEFAULT_RANGE_MS
  if (sinceMs >= untilMs) {
    throw new DeckError('invalid-query',
      `since: expected a time before until (${toIso(untilMs)}), received ${toIso(sinceMs)}`)
  }
  const { name, stepMs } =
    STEPS.find((each) => step === undefined ? suitsRange(each, { sinceMs, untilMs, now }) : each.name === step) ??
      STEPS[2]
  const { nextMs, ...series } = vitals.series({ sinceMs, untilMs, stepMs, columns, slots, pointMs })
  return { step: name, since: toIso(sinceMs), until: toIso(untilMs), ...series,
    next: nextMs === null ? null : toIso(nextMs) }
}

function suitsRange ({ keptMs, rangeMs }: typeof STEPS[number],
  { sinceMs, untilMs, now }: { sinceMs: number, untilMs: number, now: number })
{
  return untilMs - sinceMs <= rangeMs + TOLERANCE_MS && now - sinceMs <= keptMs + TOLERANCE_MS
}
