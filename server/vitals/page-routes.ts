import { z } from 'zod'
import { formatCount, formatLatency } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { parseFields } from '../api/input.ts'
import { listRoutes, routeFilters, type RouteRow } from './api-routes.ts'
import { toShownProblem, urlOf } from '../events/page-filters.ts'
import { SPARK_BOX, sparklineOf } from './page-sparkline.ts'
import type { Deck } from '../deck.ts'

// The page of the routes: which of them is slow, fails, or got worse by a release.

const SPANS = Object.freeze([{ value: '5m', label: 'Last 5 minutes' }, { value: '15m', label: 'Last 15 minutes' }, {
  value: '60m',
  label: 'Last hour'
}, { value: 'all', label: 'Since the start' }])
const DEFAULT_SPAN = '15m'
const SORTS: Readonly<Record<string, { label: string, valueOf: (row: RouteRow) => number }>> = Object.freeze({
  time: { label: 'Share of time', valueOf: ({ totalMs }) => totalMs },
  requests: { label: 'Requests', valueOf: ({ requests }) => requests },
  errors: { label: 'Error rate', valueOf: ({ requests, errors }) => errors / requests },
  p50: { label: 'p50', valueOf: ({ p50Ms }) => p50Ms },
  p99: { label: 'p99', valueOf: ({ p99Ms }) => p99Ms }
})
const MINUTES = 60
const MINUTE_MS = 60_000
const HOUR_MS = MINUTES * MINUTE_MS
const COMPARABLE = 20
const SHOWN_WORSE = 10
/** of the answers of a route */
const FAILING = 0.01
/** A p99 of few requests says little. */
const LEAST_REQUESTS = 20
const MUCH_SLOWER = 1.5
const MUCH_SLOWER_MS = 10
const MORE_ERRORS = 0.02

export function routesModel (
  { deck, params, now: clock }: { deck: Pick<Deck, 'vitals' | 'releases'>, params: URLSearchParams, now: () => number }
) {
  const now = clock()
  const releases = deck.releases.list({ limit: COMPARABLE }).items.map(({ id }) => id)
  try {
    const { sort, ...filters } = readFilters(params, now)
    const { items } = listRoutes(deck.vitals, filters.query, now)
    const byMinute = deck.vitals.requestsByMinute()
    const all = items.reduce((sum, row) => sum + row.totalMs, 0)
    const { compare } = filters.texts
    return {
      now,
      problem: null,
      // One that is picked may be older than those that are listed.
      releases: [...new Set([...releases, ...[filters.texts.release, compare].flatMap((id) => id ?? [])])],
      spans: SPANS,
      filters: filters.texts,
      sort,
      sorts: Object.entries(SORTS).map(([name, { label }]) => ({ label,
        url: urlOf('/routes', { ...filters.texts, sort: name }), ariaSort: sort === name ? 'descending' : null })
      ),
      compare: compare ?? null,
      box: SPARK_BOX,
      rows: items.sort((one, other) => SORTS[sort].valueOf(other) - SORTS[sort].valueOf(one)).map((row) => ({ ...row,
        share: all === 0 ? 0 : row.totalMs / all, worse: worseThanBefore(row), isFailing: isFailing(row),
        url: urlOf('/route', { route: row.route }), spark: sparkOf((at) =>
          byMinute.get(row.route)?.get(at) ?? 0, now).path })
      ),
      canonicalUrl: urlOf('/routes', { ...filters.texts, ...(sort === 'time' ? {} : { sort }) })
    }
  } catch (error) {
    return { now, problem: toShownProblem(error), releases, spans: SPANS, filters: {}, sort: 'time', sorts: [],
      box: SPARK_BOX, compare: null, rows: [], canonicalUrl: '/routes' }
  }
}

function readFilters (params: URLSearchParams, now: number) {
  const { since, until, release, compare } = routeFilters(() => now)
  const given = new URLSearchParams(params)
  // A time that is chosen for all pages may be longer ago than routes are kept.
  if (Date.parse(given.get('since') ?? '') < now - HOUR_MS) given.delete('since')
  const span = given.get('since') || DEFAULT_SPAN
  if (span === 'all') given.delete('since')
  else given.set('since', span)
  const { texts, values: { sort, ...query } } = parseFields(
    z.object({ release, compare, since, until,
      sort: z.enum(Object.keys(SORTS)).default('time').describe(`one of ${Object.keys(SORTS).join(', ')}`) }),
    given
  )
  delete texts.sort
  return { texts: { ...texts, since: span }, query, sort: String(sort) }
}

function worseThanBefore ({ requests, errors, p99Ms, before }: RouteRow): 'slower' | 'failing' | null {
  if (before === null || Math.min(requests, before.requests) < LEAST_REQUESTS) return null
  if (errors / requests > before.errors / before.requests + MORE_ERRORS) return 'failing'
  return p99Ms > Math.max(before.p99Ms * MUCH_SLOWER, before.p99Ms + MUCH_SLOWER_MS) ? 'slower' : null
}

/** The routes that a release answers worse than another one, those that take the most time first. */
export function worseRoutes (vitals: Deck['vitals'], { from, to }: { from: string, to: string }, now: number) {
  return listRoutes(vitals, { release: to, compare: from }, now).items.flatMap((row) => {
    const worse = worseThanBefore(row)
    return worse && row.before
      ? [{ ...row, before: row.before, worse, url: urlOf('/route', { route: row.route }) }]
      : []
  }).slice(0, SHOWN_WORSE)
}

function isFailing ({ requests, errors }: Pick<RouteRow, 'requests' | 'errors'>): boolean {
  return errors / requests >= FAILING
}

type Minute = ReturnType<Deck['vitals']['minutesOfRoute']> extends Map<number, infer M> ? M : never

/** Over the last hour. `valueAt`: of the minute that begins then, ms; null: unknown */
function sparkOf (valueAt: (at: number) => number | null, now: number) {
  const first = Math.floor((now - HOUR_MS) / MINUTE_MS) + 1
  const points = Array.from({ length: MINUTES }, (_, index) => {
    const at = (first + index) * MINUTE_MS
    return { ageMs: now - at, value: valueAt(at) }
  })
  return sparklineOf(points, HOUR_MS)
}

const numberText = (value: number | null) => value === null ? '–' : formatCount(value)
const LINES: readonly {
  label: string,
  valueOf: (minute: Minute) => number,
  format: (value: number | null) => string,
  /** in a minute without a request */
  empty: number | null
}[] = Object.freeze([{ label: 'Requests a minute', valueOf: ({ requests }) => requests, format: numberText, empty: 0 },
  { label: '5xx a minute', valueOf: ({ errors }) => errors, format: numberText, empty: 0 }, { label: 'p50',
  valueOf: ({ p50Ms }) => p50Ms, format: formatLatency, empty: null }, { label: 'p99', valueOf: ({ p99Ms }) => p99Ms,
  format: formatLatency, empty: null }])

/**
 * One route: the last hour by the minute, and how each release has answered it.
 * @throws {DeckError} not-found
 */
export function routeModel (
  { deck, params, now: clock }: { deck: Pick<Deck, 'vitals' | 'releases'>, params: URLSearchParams, now: () => number }
) {
  const now = clock()
  const route = params.get('route') ?? ''
  const total = deck.vitals.routes().find((row) => row.route === route)
  if (!total) throw new DeckError('not-found', `No request of ${JSON.stringify(route.slice(0, 200))} is known`)
  const minutes = deck.vitals.minutesOfRoute(route)
  const [, path = route] = route.split(' ')
  return {
    now,
    route,
    box: SPARK_BOX,
    total: { ...total, isFailing: isFailing(total) },
    lines: LINES.map(({ label, valueOf, format, empty }) => {
      const { path: drawn, last, max } = sparkOf((at) => minutes.has(at) ? valueOf(minutes.get(at)!) : empty, now)
      return { label, path: drawn, lastText: format(last), maxText: format(max) }
    }),
    releases: deck.releases.list({ limit: COMPARABLE }).items.flatMap(({ id }) => {
      const row = deck.vitals.routes({ release: id }).find((each) => each.route === route)
      return row ? [{ id, ...row, isFailing: isFailing(row) }] : []
    }),
    // A template is in no line as it is: its longest part without parameters is.
    logsUrl: urlOf('/logs', { q: path.split(/[:*{(<]/)[0] || path })
  }
}
