import { z } from 'zod'
import { formatPercent } from '../../public/format.ts'
import { parseFields } from '../api/input.ts'
import { profileWindow, readChanges, readFunctions } from '../api/profiles.ts'
import { toIso } from '../api/fields.ts'
import { eventFilters } from '../api/filters.ts'
import { toShownProblem } from './history-filters.ts'
import type { HotFunctions } from '../api/hot-functions.ts'
import type { Powers } from './powers.ts'

/**
 * What the workers ran, by continuous profiling: the busiest functions of a window of time, and what has changed against
 * another release.
 */
export type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'profiling' | 'crashes' | 'releases'>

/** The worker of an event surely had a slice in so much time before it. */
const BEFORE_MS = 2 * 60_000
const FIELDS = Object.freeze(['since', 'until', 'worker', 'release', 'before'])

export async function profilesModel (
  { deck, params, now, can }: { deck: Deck, params: URLSearchParams, now: number, can?: Powers }
) {
  const filters = Object.fromEntries(FIELDS.flatMap((name) => params.get(name) ? [[name, params.get(name)]] : []))
  const blank = { now, filters, isOn: deck.profiling.isOn(), mayRead: can?.operate === true, releases: releasesOf(deck),
    slices: 0, problem: null, busiest: null, changes: null, fileUrl: null, snapshot: deck.snapshot() }
  try {
    const { values: { before, ...window } } = parseFields(
      z.strictObject({ ...profileWindow(() => now), before: eventFilters(() => now).release }),
      new URLSearchParams(filters as Record<string, string>)
    )
    const slices = deck.profiling.list(window)
    if (!blank.mayRead || slices.length === 0) return { ...blank, slices: slices.length }
    const functions = await readFunctions(deck, window)
    return {
      ...blank,
      slices: slices.length,
      workers: new Set(slices.map(({ worker }) => worker)).size,
      since: toIso(slices[slices.length - 1].at),
      until: toIso(slices[0].at),
      busiest: toBusiest(functions),
      changes: before === undefined ? null : await readChanges(deck, { ...window, beforeRelease: before }),
      // The same slices, also if another one comes meanwhile.
      fileUrl: `/api/v1/profiles/file?${new URLSearchParams({ ...without(filters, 'before'),
        since: toIso(slices[slices.length - 1].at), until: toIso(slices[0].at + 1) })}`
    }
  } catch (error) {
    return { ...blank, problem: toShownProblem(error) }
  }
}

function without (filters: Record<string, string | null>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(filters).filter(([each]) => each !== name)) as Record<string, string>
}

/** @returns that have been profiled, newest first */
function releasesOf (deck: Deck): string[] {
  return [...new Set(deck.profiling.list().map(({ release }) => release))]
}

/** As the partial of the busiest functions shows them. */
export function toBusiest ({ busyMs, functions }: Pick<HotFunctions, 'busyMs' | 'functions'>) {
  return { problem: null,
    functions: functions.map((each) => ({ ...each, percent: 100 * each.selfMs / busyMs,
      note: `with all that it calls ${formatPercent(100 * each.totalMs / busyMs)}` })
    ) }
}

/**
 * When a worker was profiled before a moment: in its two minutes, as it has a slice each minute. Of a time with a begin
 * all workers count. Returns null: no slice of it is kept.
 */
export function profiledWindow ({ worker, at, since }: { worker?: number | null, at: string, since?: number },
  profiling: Pick<Deck['profiling'], 'list'>): { since: number, until: number, worker?: number } | null
{
  const until = Date.parse(at)
  const window = { since: since ?? until - BEFORE_MS, until, ...(worker && { worker }) }
  if ((!worker && since === undefined) || Number.isNaN(until) || Number.isNaN(window.since) ||
    profiling.list(window).length === 0) return null
  return window
}

export function profilesUrl ({ since, until, worker }: { since: number, until: number, worker?: number }) {
  return `/profiles?${new URLSearchParams({ since: toIso(since), until: toIso(until),
    ...(worker !== undefined && { worker: String(worker) }) })}`
}

export function profilesUrlOf (event: Parameters<typeof profiledWindow>[0], profiling: Pick<Deck['profiling'], 'list'>):
  | string
  | null
{
  const window = profiledWindow(event, profiling)
  return window && profilesUrl(window)
}
