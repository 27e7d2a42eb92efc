import { z } from 'zod'
import { parseFields } from '../api/input.ts'
import { listRoutes, routeFilters, type RouteRow } from './api-routes.ts'
import { toShownProblem, urlOf } from '../events/page-filters.ts'
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
const COMPARABLE = 20
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
      rows: items.sort((one, other) => SORTS[sort].valueOf(other) - SORTS[sort].valueOf(one)).map((row) => ({ ...row,
        share: all === 0 ? 0 : row.totalMs / all, worse: worseThanBefore(row) })
      ),
      canonicalUrl: urlOf('/routes', { ...filters.texts, ...(sort === 'time' ? {} : { sort }) })
    }
  } catch (error) {
    return { now, problem: toShownProblem(error), releases, spans: SPANS, filters: {}, sort: 'time', sorts: [],
      compare: null, rows: [], canonicalUrl: '/routes' }
  }
}

function readFilters (params: URLSearchParams, now: number) {
  const { since, release, compare } = routeFilters(() => now)
  const given = new URLSearchParams(params)
  const span = given.get('since') || DEFAULT_SPAN
  if (span === 'all') given.delete('since')
  else given.set('since', span)
  const { texts, values: { sort, ...query } } = parseFields(
    z.object({ release, compare, since,
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
