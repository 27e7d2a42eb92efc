import { readOr } from './read-or.js'

/**
 * Where the history is incomplete: what waits until it can be written again, and what was lost. What has only waited is in the
 * history by now, and needs no word.
 * @typedef {{ problem: string | null, since: string | null, waiting: number, lost: number }} State
 * @typedef {{ at: string, since: string | null, lost: number, from: string, to: string }} Gap  `since`…`at`: while the history could not be written; `from`…`to`: the times of what is lost
 * @typedef {{ unwritten: (State & { isCopyShown: boolean }) | null, lost: Gap[], isOfCrashes: boolean }} Gaps  `isCopyShown`: events that wait are shown all the same
 */

/** More outages with a loss than this, one after the other, are told by their events alone. */
const MAX_OUTAGES = 20
/** @type {Gaps} */
export const NO_GAPS = Object.freeze({ unwritten: null, lost: [], isOfCrashes: false })
const OF_EVENTS = 'history.recovered'
const OF_CRASHES = 'crash.records-lost'

/**
 * @param {{ history: Pick<import('../../db/history.js').History, 'page'> & { away?: string | null }, deck: { snapshot: () => { history?: State } } }} sources
 * @param {{ since?: string | number, until?: string | number, isOfCrashes?: boolean }} [shown]  what the page shows
 * @returns {Gaps}
 */
export function historyGaps ({ history, deck }, { since, until, isOfCrashes = false } = {}) {
  const snapshot = deck.snapshot()
  const state = snapshot.history
  const [from, to] = [toMs(since) ?? -Infinity, toMs(until) ?? Infinity]
  const isConcerned = state && state.problem !== null && !(to < Date.parse(state.since ?? ''))
  return {
    isOfCrashes,
    unwritten: isConcerned ? { ...state, isCopyShown: !isUnwritten(history, snapshot) && !isOfCrashes } : null,
    lost: readOr(() => lossesOf(history, isOfCrashes ? OF_CRASHES : OF_EVENTS), [])
      .filter((gap) => Date.parse(gap.to) >= from && Date.parse(gap.from) <= to)
  }
}

/** Whether events that have happened are not shown yet. @param {{ away?: string | null }} history @param {{ history?: State }} snapshot */
export function isUnwritten (history, snapshot) {
  return snapshot.history !== undefined && snapshot.history.problem !== null && typeof history.away !== 'string'
}

/** @param {string | number} [time] */
function toMs (time) {
  return time === undefined ? undefined : new Date(time).getTime()
}

/** @param {Pick<import('../../db/history.js').History, 'page'>} history @param {string} type @returns {Gap[]} newest first */
function lossesOf (history, type) {
  return history.page({ type, limit: MAX_OUTAGES }).items.flatMap(({ at, detail }) => {
    return detail?.lost > 0 && detail?.from ? [{ at, since: detail.since ?? null, lost: detail.lost, from: detail.from, to: detail.to }] : []
  })
}
