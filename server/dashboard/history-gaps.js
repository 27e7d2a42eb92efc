import { readOr } from './read-or.js'

/**
 * Where the history is incomplete: what waits until it can be written again, and what was lost. What has only waited is in the
 * history by now, and needs no word.
 * @typedef {{ problem: string | null, since: string | null, waiting: number, lost: number }} State
 * @typedef {{ at: string, since: string | null, lost: number, from: string, to: string }} Gap  `since`…`at`: while the history could not be written; `from`…`to`: the times of what is lost
 * @typedef {{ fromMs: number, toMs: number }} Span  the times that a page shows, in ms since the epoch
 * @typedef {{ unwritten: (State & { isCopyShown: boolean }) | null, lost: Gap[], isOfCrashes: boolean }} Gaps  `isCopyShown`: events that wait are shown all the same
 */

/** More outages with a loss than this, one after the other, are told by their events alone. */
const MAX_OUTAGES = 20
/** @type {Gaps} */
export const NO_GAPS = Object.freeze({ unwritten: null, lost: [], isOfCrashes: false })

/**
 * @param {{ history: Pick<import('../../db/history.js').History, 'page'> & { away?: string | null }, deck: { snapshot: () => { history?: State } } }} sources
 * @param {{ since?: string | number, until?: string | number, isOfCrashes?: boolean }} [shown]  what the page shows
 * @returns {Gaps}
 */
export function historyGaps ({ history, deck }, { since, until, isOfCrashes = false } = {}) {
  const snapshot = deck.snapshot()
  const state = snapshot.history
  const span = spanOf({ since, until })
  const isConcerned = state && state.problem !== null && showsUnwritten(span, state)
  return {
    isOfCrashes,
    unwritten: isConcerned ? { ...state, isCopyShown: !isUnwritten(history, snapshot) && !isOfCrashes } : null,
    lost: readOr(() => lossesOf(history, lossEvent(isOfCrashes)), []).filter((gap) => showsLoss(span, gap))
  }
}

/** Whether events that have happened are not shown yet. @param {{ away?: string | null }} history @param {{ history?: State }} snapshot */
export function isUnwritten (history, snapshot) {
  return snapshot.history !== undefined && snapshot.history.problem !== null && typeof history.away !== 'string'
}

/** @param {boolean} isOfCrashes @returns {string} the type of the events that tell of a loss */
export function lossEvent (isOfCrashes) {
  return isOfCrashes ? 'crash.records-lost' : 'history.recovered'
}

/** @param {{ since?: string | number, until?: string | number }} shown @returns {Span} */
export function spanOf ({ since = -Infinity, until = Infinity }) {
  return { fromMs: toMs(since), toMs: toMs(until) }
}

/** Whether a page shows times of which something is lost. @param {Span} span @param {Pick<Gap, 'from' | 'to'>} gap */
export function showsLoss (span, gap) {
  return Date.parse(gap.to) >= span.fromMs && Date.parse(gap.from) <= span.toMs
}

/** Whether a page shows times since a history cannot be written, of which it may lack events. @param {Span} span @param {{ since: string | null }} state */
export function showsUnwritten (span, { since }) {
  return !(span.toMs < Date.parse(since ?? ''))
}

/** @param {string | number} time */
function toMs (time) {
  return typeof time === 'number' ? time : Date.parse(time)
}

/** @param {Pick<import('../../db/history.js').History, 'page'>} history @param {string} type @returns {Gap[]} newest first */
function lossesOf (history, type) {
  return history.page({ type, limit: MAX_OUTAGES }).items.flatMap(({ at, detail }) => {
    return detail?.lost > 0 && detail?.from ? [{ at, since: detail.since ?? null, lost: detail.lost, from: detail.from, to: detail.to }] : []
  })
}
