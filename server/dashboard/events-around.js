import { formatDuration } from '../../public/format.js'
import { readOr } from './read-or.js'
import { toShownEvent } from './shown-event.js'

/**
 * What happened shortly before and after something else.
 * @typedef {Pick<import('../../db/history.js').History, 'page'>} History
 */

/** What happened this near to something may belong to it. */
const BEFORE_MS = 2 * 60_000
export const AFTER_MS = 20_000
const MAX_AROUND = 4
const MAX_READ = 100

/**
 * @param {History} history
 * @param {{ at: string, id: number | null }} subject when it was, and its own event, which is left out
 * @returns {(import('./shown-event.js').ShownEvent & { offset: string })[]} oldest first; nothing without the database, as the page is useful without it
 */
export function eventsAround (history, { at, id }) {
  const atMs = Date.parse(at)
  const eventsIn = (/** @type {number} */ since, /** @type {number} */ until) => readOr(() => history.page({ since, until, limit: MAX_READ }).items, [])
    // Sign-ins cause nothing.
    .filter(({ type }) => !type.startsWith('access.'))
  const before = eventsIn(atMs - BEFORE_MS, atMs).slice(0, MAX_AROUND)
  const after = eventsIn(atMs, atMs + AFTER_MS).slice(-MAX_AROUND)
  return [...after, ...before].reverse()
    .filter((each) => each.id !== id)
    .map((each) => ({ ...toShownEvent(each), offset: offsetOf(Date.parse(each.at) - atMs) }))
}

/** @param {number} ms from the subject to something else @returns {string} `12 s before` */
function offsetOf (ms) {
  return Math.abs(ms) < 1000 ? 'same time' : `${formatDuration(Math.abs(ms))} ${ms < 0 ? 'before' : 'after'}`
}
