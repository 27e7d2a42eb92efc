import { z } from 'zod'
import { formatCount, formatLatency, formatPercent, formatUnsure } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { parseFields } from '../api/input.ts'
import { LEAST_REQUESTS, listRoutes, routeFilters, type RouteRow } from './api-routes.ts'
import { spansOf, unsureOf } from '../releases/api-comparison.ts'
import { toShownProblem, urlOf } from '../events/page-filters.ts'
import { isoOf, spanIn, timeChoices, type Span } from '../dashboard/time-strip.ts'
import { workerUrlOf } from '../dashboard/worker-url.ts'
import { slowInFlight, slowPast } from './page-slow-requests.ts'
import { SPARK_BOX, sparklineOf } from './page-sparkline.ts'
import type { Deck } from '../deck.ts'
import type { History } from '../../db/history.ts'
import type { Powers } from '../dashboard/powers.ts'

// The page of the routes: which of them is slow, fails, or got worse by a release.

const DEFAULT_SPAN = '15m'
const SORTS: Readonly<Record<string, { label: string, valueOf: (row: RouteRow) => number }>> = Object.freeze({
  time: { label: 'Share of time', valueOf: ({ totalMs }) => totalMs },
  requests: { label: 'Requests', valueOf: ({ requests }) => requests },
  errors: { label: 'Error rate', valueOf: ({ requests, errors }) => errors / requests },
  p50: { label: 'p50', valueOf: ({ p50Ms }) => p50Ms },
  p99: { label: 'p99', valueOf: ({ p99Ms }) => p99Ms }
})
const MINUTE_MS = 60_000
/** The minutes of routes are kept for so long. */
const HOUR_MS = 60 * MINUTE_MS
const COMPARABLE = 20
const SHOWN_WORSE = 10
/** of the answers of a route */
const FAILING = 0.01
const MUCH_SLOWER = 1.5
const MUCH_SLOWER_MS = 10
const MORE_ERRORS = 0.02

export function routesModel (
  { deck, params, now: clock }: { deck: Pick<Deck, 'vitals' | 'releases'>, params: URLSearchParams, now: () => number }
) {
  const now = clock()
  const releases = deck.releases.list({ limit: COMPARABLE }).items.map(({ id }) => id)
  const choices = timeChoices(params, now, [['all', 'Since the start']])
  try {
    const { texts, query, sort, span, then } = readFilters(params, now)
    const { compare, release } = texts
    const { items } = listRoutes(deck.vitals, query, now)
    const unsure = release === undefined || compare === undefined
      ? []
      : unsureOf([{ release: compare, requests: null }, { release, requests: null }], spansOf(deck.releases, now))
    const byMinute = deck.vitals.requestsByMinute(release)
    const all = items.reduce((sum, row) => sum + row.totalMs, 0)
    return {
      now,
      problem: null,
      // One that is picked may be older than those that are listed.
      releases: [...new Set([...releases, ...[release, compare].flatMap((id) => id ?? [])])],
      choices,
      filters: texts,
      sort,
      sorts: Object.entries(SORTS).map(([name, { label }]) => ({ label, url: urlOf('/routes', { ...texts, sort: name }),
        ariaSort: sort === name ? 'descending' : null })
      ),
      compare: compare ?? null,
      unsure: formatUnsure(unsure),
      box: SPARK_BOX,
      sparkTitle: choices.find(([value]) => value === texts.since && value !== 'all')?.[1] ?? 'Last hour',
      rows: items.sort((one, other) => SORTS[sort].valueOf(other) - SORTS[sort].valueOf(one)).map((row) => ({ ...row,
        share: all === 0 ? 0 : row.totalMs / all, worse: unsure.length === 0 ? worseThanBefore(row) : null,
        isFailing: isFailing(row), url: urlOf('/route', { route: row.route, ...then }), spark: sparkOf((at) =>
          byMinute.get(row.route)?.get(at) ?? 0, span).path })
      ),
      canonicalUrl: urlOf('/routes', { ...texts, ...(sort === 'time' ? {} : { sort }) })
    }
  } catch (error) {
    return { now, problem: toShownProblem(error), releases, choices, filters: {}, sort: 'time', sorts: [],
      box: SPARK_BOX, compare: null, rows: [], canonicalUrl: '/routes' }
  }
}

/** `span`: of the sparklines; `then`: the time that is chosen for all pages, which goes along */
function readFilters (params: URLSearchParams, now: number) {
  const { since, until, release, compare } = routeFilters(() => now)
  const chosen = spanIn(params, now)
  const given = new URLSearchParams(params)
  const choice = given.get('since') || DEFAULT_SPAN
  // The end belongs to a time that is chosen for all pages.
  for (const name of ['since', 'until']) given.delete(name)
  if (!chosen && choice !== 'all') given.set('since', choice)
  const { texts, values: { sort, ...query } } = parseFields(
    z.object({ release, compare, since, until,
      sort: z.enum(Object.keys(SORTS)).default('time').describe(`one of ${Object.keys(SORTS).join(', ')}`) }),
    given
  )
  const { sort: _, ...shown } = texts
  const span = spanOf(chosen, now, query.since)
  const then = chosen ? isoOf(chosen) : {}
  return { texts: { ...shown, since: choice, ...then }, sort: String(sort), span, then,
    query: { ...query, ...(chosen && { since: span.sinceMs, until: span.untilMs }) } }
}

/** What is kept of a chosen time, else up to the end of the minute that is not over. */
function spanOf (chosen: Span | null, now: number, sinceMs: number = now - HOUR_MS): Span {
  return chosen
    ? { ...chosen, sinceMs: Math.max(chosen.sinceMs, now - HOUR_MS) }
    : { sinceMs, untilMs: (Math.floor(now / MINUTE_MS) + 1) * MINUTE_MS }
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

/** `valueAt`: of the minute that begins then, ms; null: unknown */
function sparkOf (valueAt: (at: number) => number | null, { sinceMs, untilMs }: Span) {
  const first = Math.floor(sinceMs / MINUTE_MS)
  // A minute that still runs would look like a fall.
  const points = Array.from({ length: Math.max(1, Math.floor(untilMs / MINUTE_MS) - first) }, (_, index) => {
    const at = (first + index) * MINUTE_MS
    return { ageMs: untilMs - at, value: valueAt(at) }
  })
  return sparklineOf(points, untilMs - first * MINUTE_MS)
}

/**
 * One route in the last hour or a chosen time, and how each release has answered it.
 * @throws {DeckError} not-found
 */
export async function routeModel (
  { deck, history, params, now: clock, can }: {
    deck: Pick<Deck, 'vitals' | 'releases' | 'profiling' | 'crashes' | 'snapshot' | 'openRequests'>,
    history: Pick<History, 'page'>,
    params: URLSearchParams,
    now: () => number,
    can?: Powers
  }
) {
  const now = clock()
  const route = params.get('route') ?? ''
  const totalOf = (query: Parameters<typeof deck.vitals.routes>[0]) =>
    deck.vitals.routes(query).find((row) => row.route === route)
  const known = totalOf({})
  if (!known) throw new DeckError('not-found', `No request of ${JSON.stringify(route.slice(0, 200))} is known`)
  const chosen = spanIn(params, now)
  const span = spanOf(chosen, now)
  const total = totalOf(span)
  const minutes = deck.vitals.minutesOfRoute(route)
  const [, path = route] = route.split(' ')
  const then = chosen ? isoOf(chosen) : {}
  return {
    now,
    route,
    box: SPARK_BOX,
    spanLabel: chosen ? 'the chosen time' : 'the last hour',
    facts: total &&
      [
        fact('Requests', formatCount(total.requests), ({ requests }) => requests, (most) =>
          `at most ${formatCount(most ?? 0)} a minute`, 0),
        fact('Error rate', formatPercent(100 * total.errors / total.requests), ({ errors, requests }) =>
          errors / requests, () =>
          total.errors === 0 ? 'no answer with 5xx' : `${formatCount(total.errors)} answers with 5xx`),
        ...(['p50', 'p99'] as const).map((label) =>
          fact(label, formatLatency(total[`${label}Ms`]), (minute) => minute[`${label}Ms`], (most) =>
            `at most ${formatLatency(most)} in a minute`)
        )
      ],
    isFailing: total && isFailing(total),
    inFlight: chosen ? [] : await slowInFlight({ deck, route, p99Ms: known.p99Ms }),
    slowest: (deck.vitals.slowestRequests(span).get(route) ?? []).map((each) => ({ ...each,
      logsUrl: urlOf('/logs', { around: each.at }), workerUrl: workerUrlOf(each.worker, each.at) })
    ),
    slow: slowPast({ deck, history, route, chosen }),
    releases: deck.releases.list({ limit: COMPARABLE }).items.flatMap(({ id }) => {
      const row = totalOf({ release: id })
      return row ? [{ id, ...row, isFailing: isFailing(row) }] : []
    }),
    routesUrl: urlOf('/routes', then),
    profilesUrl: can?.operate && deck.profiling.list({ since: span.sinceMs, until: span.untilMs }).length > 0
      ? urlOf('/profiles', then)
      : null,
    // A template is in no line as it is: its longest part without parameters is.
    logsUrl: urlOf('/logs', { q: path.split(/[:*{(<]/)[0] || path, ...then })
  }

  /** `noteOf`: of the highest of the minutes; `empty`: the value of a minute without a request */
  function fact (label: string, figure: string, valueOf: (minute: Minute) => number,
    noteOf: (most: number | null) => string, empty: number | null = null)
  {
    const { path: drawn, max } = sparkOf((at) => minutes.has(at) ? valueOf(minutes.get(at)!) : empty, span)
    return { label, figure, path: drawn, note: noteOf(max) }
  }
}
