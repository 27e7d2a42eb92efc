import { z } from 'zod'
import { parseFields } from '../api/input.js'
import { profileWindow, readChanges, readFunctions } from '../api/profiles.js'
import { toIso } from '../api/fields.js'
import { eventFilters } from '../api/filters.js'
import { toShownProblem } from './history-filters.js'

/**
 * What the workers ran, by continuous profiling: the flame graph of a window of time, its busiest functions, and what has changed
 * against another release.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'profiling' | 'crashes' | 'releases'>} Deck
 */

const MAX_SHOWN = 20
/** The worker of an event surely had a slice in so much time before it. */
const BEFORE_MS = 2 * 60_000
const FIELDS = Object.freeze(['since', 'until', 'worker', 'slot', 'release', 'before'])

/** @param {{ deck: Deck, params: URLSearchParams, now: number, can?: import('./powers.js').Powers }} asked */
export async function profilesModel ({ deck, params, now, can }) {
  const filters = Object.fromEntries(FIELDS.flatMap((name) => params.get(name) ? [[name, params.get(name)]] : []))
  const blank = { now, filters, isOn: deck.profiling.isOn(), mayRead: can?.operate === true, releases: releasesOf(deck), slices: 0, problem: null, functions: null, changes: null, fileUrl: null, snapshot: deck.snapshot() }
  try {
    const { values: { before, ...window } } = parseFields(z.strictObject({ ...profileWindow(() => now), before: eventFilters(() => now).release }), new URLSearchParams(/** @type {Record<string, string>} */ (filters)))
    const slices = deck.profiling.list(window)
    if (!blank.mayRead || slices.length === 0) return { ...blank, slices: slices.length }
    const functions = await readFunctions(deck, window)
    return {
      ...blank,
      slices: slices.length,
      workers: new Set(slices.map(({ worker }) => worker)).size,
      since: toIso(slices[slices.length - 1].at),
      until: toIso(slices[0].at),
      functions: toShown(functions),
      changes: before === undefined ? null : await readChanges(deck, { ...window, beforeRelease: before }),
      // The same slices, also if another one comes meanwhile.
      fileUrl: `/api/v1/profiles/file?${new URLSearchParams({ ...without(filters, 'before'), since: toIso(slices[slices.length - 1].at), until: toIso(slices[0].at + 1) })}`
    }
  } catch (error) {
    return { ...blank, problem: toShownProblem(error) }
  }
}

/** @param {Record<string, string | null>} filters @param {string} name @returns {Record<string, string>} */
function without (filters, name) {
  return /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(filters).filter(([each]) => each !== name)))
}

/** @param {Deck} deck @returns {string[]} that have been profiled, newest first */
function releasesOf (deck) {
  return [...new Set(deck.profiling.list().map(({ release }) => release))]
}

/** @param {import('../api/profiles.js').ProfileFunctions} found */
function toShown ({ busyMs, idleMs, functions }) {
  return {
    busyPercent: busyMs + idleMs > 0 ? 100 * busyMs / (busyMs + idleMs) : 0,
    rows: functions.slice(0, MAX_SHOWN).map((each) => ({ ...each, selfPercent: 100 * each.selfMs / busyMs, totalPercent: 100 * each.totalMs / busyMs }))
  }
}

/**
 * When a worker was profiled before a moment: in its two minutes, as it has a slice each minute. Of a time with a begin all workers count.
 * @param {{ worker?: number | null, at: string, since?: number }} event @param {Pick<Deck['profiling'], 'list'>} profiling
 * @returns {{ since: number, until: number, worker?: number } | null} null: no slice of it is kept
 */
export function profiledWindow ({ worker, at, since }, profiling) {
  const until = Date.parse(at)
  const window = { since: since ?? until - BEFORE_MS, until, ...(worker && { worker }) }
  if ((!worker && since === undefined) || Number.isNaN(until) || Number.isNaN(window.since) || profiling.list(window).length === 0) return null
  return window
}

/** @param {{ since: number, until: number, worker?: number }} window */
export function profilesUrl ({ since, until, worker }) {
  return `/profiles?${new URLSearchParams({ since: toIso(since), until: toIso(until), ...(worker !== undefined && { worker: String(worker) }) })}`
}

/** @param {Parameters<typeof profiledWindow>[0]} event @param {Pick<Deck['profiling'], 'list'>} profiling @returns {string | null} */
export function profilesUrlOf (event, profiling) {
  const window = profiledWindow(event, profiling)
  return window && profilesUrl(window)
}
