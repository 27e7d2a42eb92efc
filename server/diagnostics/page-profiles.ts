import { z } from 'zod'
import { parseFields } from '../api/input.ts'
import { lookIntoWindow, profileWindow, readChanges } from './api-profiles.ts'
import { RELEASE } from '../api/filters.ts'
import { settingState } from '../config/api.ts'
import { isoOf, spanIn, timeChoices } from '../dashboard/time-strip.ts'
import { toShownProblem, urlOf } from '../events/page-filters.ts'
import { flameOf } from './page-flame.ts'
import type { Looked } from './api-hot-functions.ts'
import type { Powers } from '../dashboard/powers.ts'

/**
 * What the workers ran, by continuous profiling: a flame graph and the busiest functions of a window of time, and what
 * has changed against another release.
 */
type Deck = Pick<import('../deck.ts').Deck, 'profiling' | 'crashes' | 'releases' | 'settings'>

const SWITCH = 'diagnostics.profiling'
const FIELDS = Object.freeze(['since', 'until', 'worker', 'release', 'beforeRelease'])

export async function profilesModel (
  { deck, params, now: clock, can }: { deck: Deck, params: URLSearchParams, now: () => number, can?: Powers }
) {
  const now = clock()
  const chosen = spanIn(params, now)
  const filters: Record<string, string> = Object.fromEntries(
    FIELDS.flatMap((name) => params.get(name) ? [[name, String(params.get(name))]] : [])
  )
  // The end belongs to a time that is chosen for all pages.
  delete filters.until
  Object.assign(filters, chosen && isoOf(chosen))
  const { beforeRelease: _, ...shown } = filters
  const kept = deck.profiling.list()
  const blank = {
    now,
    filters,
    isOn: deck.profiling.isOn(),
    // A form that switches it on says which value its reader has seen.
    seen: stateOf(deck, SWITCH),
    mayRead: can?.operate === true,
    slices: 0,
    problem: null,
    keptSince: kept.length > 0 ? new Date(kept[kept.length - 1].at).toISOString() : null,
    choices: timeChoices(params, now),
    // Those that have been profiled, newest first.
    releases: [...new Set(kept.map(({ release }) => release))],
    workers: [...new Set(kept.map(({ worker }) => String(worker)))],
    canonicalUrl: urlOf('/profiles', filters)
  }
  try {
    const { values: { beforeRelease, ...window } } = parseFields(
      z.strictObject({ ...profileWindow(() => now), beforeRelease: RELEASE }),
      new URLSearchParams(filters)
    )
    const slices = deck.profiling.list(window)
    if (!blank.mayRead || slices.length === 0) return { ...blank, slices: slices.length }
    const looked = await lookIntoWindow(deck, window)
    return { ...blank, slices: slices.length, of: new Set(slices.map(({ worker }) => worker)).size, since: looked.since,
      until: looked.until, busiest: toShownProfile(looked, '/profiles', params),
      changes: beforeRelease === undefined ? null : await readChanges(deck, { ...window, beforeRelease }),
      fileUrl: `/api/v1/profiles/file?${new URLSearchParams(shown)}` }
  } catch (error) {
    return { ...blank, problem: toShownProblem(error) }
  }
}

/** Null: nobody can change it now */
function stateOf ({ settings }: Pick<Deck, 'settings'>, name: string): string | null {
  const setting = settings.list().find((each) => each.name === name)
  return setting?.takesEffect === 'now' ? settingState(setting) : null
}

/** `path`, `params`: of the page that shows it */
export function toShownProfile ({ root, hot: { busyMs, functions } }: Looked, path: string, params: URLSearchParams) {
  const urlOfFrame = (frame: string) => {
    const wanted = new URLSearchParams(params)
    wanted.set('frame', frame)
    if (frame === '') wanted.delete('frame')
    return `${path}?${wanted}#functions`
  }
  return { problem: null, flame: functions.length === 0 ? null : flameOf(root, params.get('frame') ?? '', urlOfFrame),
    functions: functions.map((each) => ({ ...each, percent: 100 * each.selfMs / busyMs,
      other: 100 * each.totalMs / busyMs })
    ) }
}
