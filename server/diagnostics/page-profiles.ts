import { z } from 'zod'
import { formatPercent } from '../../public/format.ts'
import { parseFields } from '../api/input.ts'
import { profileWindow, readChanges, readFunctions } from './api-profiles.ts'
import { RELEASE } from '../api/filters.ts'
import { settingState } from '../config/api.ts'
import { toShownProblem } from '../events/page-filters.ts'
import type { HotFunctions } from './api-hot-functions.ts'
import type { Powers } from '../dashboard/powers.ts'

/**
 * What the workers ran, by continuous profiling: the busiest functions of a window of time, and what has changed against
 * another release.
 */
type Deck = Pick<import('../deck.ts').Deck, 'profiling' | 'crashes' | 'releases' | 'settings'>

const SWITCH = 'diagnostics.profiling'
const FIELDS = Object.freeze(['since', 'until', 'worker', 'release', 'beforeRelease'])

export async function profilesModel (
  { deck, params, now: clock, can }: { deck: Deck, params: URLSearchParams, now: () => number, can?: Powers }
) {
  const now = clock()
  const filters: Record<string, string> = Object.fromEntries(
    FIELDS.flatMap((name) => params.get(name) ? [[name, String(params.get(name))]] : [])
  )
  const { beforeRelease: _, ...shown } = filters
  const blank = {
    now,
    filters,
    isOn: deck.profiling.isOn(),
    // A form that switches it on says which value its reader has seen.
    seen: stateOf(deck, SWITCH),
    mayRead: can?.operate === true,
    slices: 0,
    problem: null,
    // Those that have been profiled, newest first.
    releases: [...new Set(deck.profiling.list().map(({ release }) => release))]
  }
  try {
    const { values: { beforeRelease, ...window } } = parseFields(
      z.strictObject({ ...profileWindow(() => now), beforeRelease: RELEASE }),
      new URLSearchParams(filters)
    )
    const slices = deck.profiling.list(window)
    if (!blank.mayRead || slices.length === 0) return { ...blank, slices: slices.length }
    const { since, until, ...functions } = await readFunctions(deck, window)
    return { ...blank, slices: slices.length, workers: new Set(slices.map(({ worker }) => worker)).size, since, until,
      busiest: toBusiest(functions),
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

/** As the partial of the busiest functions shows them. */
export function toBusiest ({ busyMs, functions }: Pick<HotFunctions, 'busyMs' | 'functions'>) {
  return { problem: null,
    functions: functions.map((each) => ({ ...each, percent: 100 * each.selfMs / busyMs,
      beside: `with all that it calls ${formatPercent(100 * each.totalMs / busyMs)}` })
    ) }
}
