import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { COUNT, ID_PARAMETER, NUMBER, RELEASE_NAME, TIME, toIso } from '../api/fields.ts'
import { RELEASE } from '../api/filters.ts'
import { timeParam } from '../api/input.ts'
import type { Deck } from '../deck.ts'
import type { Vitals } from './vitals.ts'

/** The vitals keep the routes of each minute for this time. */
const KEPT_MS = 3_600_000
/** A p99 of fewer requests says little. */
export const LEAST_REQUESTS = 20
/** Time passes between a request for the last hour and this check. */
const TOLERANCE_MS = 2000

const MS = z.number().min(0)
const FIGURES = { requests: NUMBER.describe('that were answered'), errors: COUNT.describe('answers with 5xx'),
  totalMs: MS.describe('about the time that they took together'), p50Ms: MS, p99Ms: MS }

const SLOW = z.strictObject({ at: TIME.describe('when it was answered'), method: z.string(),
  path: z.string().describe('without the query'), status: COUNT, ms: MS, worker: ID_PARAMETER, release: RELEASE_NAME })

export type RouteRow = z.infer<typeof ROUTE>
const ROUTE = z.strictObject({
  route: z.string().meta({ description: 'method and template, or path with its ids folded',
    examples: ['GET /users/:id'] }),
  ...FIGURES,
  before: z.strictObject(FIGURES).nullable().describe(
    'the same of the release to compare with; null: it had none, or no release was given'
  ),
  slowest: z.array(SLOW).describe(
    'of the slowest requests of each minute and release, within the last hour, the ten slowest; the slowest first'
  )
}).meta({ id: 'Route' })

export type RouteList = z.infer<typeof ROUTES>
const ROUTES = z.strictObject({ since: TIME.nullable().describe('null: since this master began'),
  release: RELEASE_NAME.nullable().describe('null: all releases'), compare: RELEASE_NAME.nullable(),
  items: z.array(ROUTE).describe('those that took the most time in all first') }).meta({ id: 'Routes' })

export const routeFilters = (now: () => number) => ({ since: timeParam(now), until: timeParam(now), release: RELEASE,
  compare: RELEASE })

export function routeResources (
  { deck, now }: { deck: Pick<Deck, 'vitals'>, now: () => number }
): Record<string, Resource> {
  return {
    '/routes': {
      GET: operation({ name: 'listRoutes',
        summary: 'Lists the routes of the app with their requests, errors and latencies',
        description:
          'Of all that this master has heard of, or with `since` of the last hour at most, and `until`, by the minute; at most 200 routes of a release, and the others as one. ' +
          '`compare` adds the figures of another release in the same time.', role: 'viewer', cli: 'clusterdeck routes',
        query: z.strictObject(routeFilters(now)), answer: ROUTES,
        handle: ({ query }) => ({ body: listRoutes(deck.vitals, query, now()) }) })
    }
  }
}

/** @throws {DeckError} invalid-query */
export function listRoutes (vitals: Pick<Vitals, 'routes' | 'slowestRequests'>,
  { since, until, release, compare }: { since?: number, until?: number, release?: string, compare?: string },
  now: number): RouteList
{
  const oldest = now - KEPT_MS
  if (since !== undefined && (since < oldest - TOLERANCE_MS || since > now)) {
    throw new DeckError('invalid-query',
      `since: expected a time of the last hour, from ${toIso(oldest)} on, received ${toIso(since)}`)
  }
  const range = { release, sinceMs: since, untilMs: until }
  const slowest = vitals.slowestRequests(range)
  const before = new Map(
    compare === undefined
      ? []
      : vitals.routes({ ...range, release: compare }).map(({ route, ...figures }) => [route, figures])
  )
  return { since: since === undefined ? null : toIso(since), release: release ?? null, compare: compare ?? null,
    items: vitals.routes(range).map((row) => ({ ...row, before: before.get(row.route) ?? null,
      slowest: slowest.get(row.route) ?? [] })
    ) }
}
