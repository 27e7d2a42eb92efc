/**
 * Says whether the charts are live, and why they are empty where they are.
 * @typedef {object} Situation
 * @property {boolean} isLive  the range ends now
 * @property {boolean} isConnected
 * @property {boolean} isEmpty  nothing was measured in the range
 * @property {boolean} hasFailed  the last request was not answered
 * @property {number} untilMs  the end of the range
 * @property {number} nowMs
 * @property {number | null} slot  null: all of them
 */

/** The database keeps steps of a minute for as long. */
const KEPT_DAYS = 30
const KEPT_MS = KEPT_DAYS * 24 * 60 * 60_000

/** @param {Situation} situation @returns {{ text: string, tone: 'ok' | 'idle' | 'warn' }} */
export function liveText ({ isLive, isConnected }) {
  if (!isConnected) return { text: 'Not live: no connection', tone: 'warn' }
  return isLive ? { text: 'Live', tone: 'ok' } : { text: 'Past time, not live', tone: 'idle' }
}

/** @param {Situation} situation @returns {string} empty: there is something to see */
export function emptyText ({ isLive, isEmpty, hasFailed, untilMs, nowMs, slot }) {
  if (!isEmpty) return ''
  if (hasFailed) return 'The figures could not be loaded. The page tries again.'
  if (untilMs < nowMs - KEPT_MS) return `Figures are kept for ${KEPT_DAYS} days; this range is older.`
  const where = slot === null ? '' : ` in slot ${slot}`
  return isLive ? `No worker${where} has reported figures in this time yet.` : `No worker ran${where} in this time, or no master was there to measure it.`
}

/** @param {string} length of time @returns {string} */
export function pointText (length) {
  return length === '1 s' ? 'Each point is one second.' : `Each point is ${length}: the line is the average, the band goes from the lowest to the highest.`
}
