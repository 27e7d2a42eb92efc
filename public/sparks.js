/**
 * The lines of the key figures. The server leaves their points out, so that it has nothing to send while they move.
 * @typedef {import('./vitals-feed.js').Vitals} Vitals
 * @typedef {import('./vitals-feed.js').Range} Range
 */

/** The box that the template draws in. */
const WIDTH = 120
const HEIGHT = 32
const PADDING = 2
/** More points would be narrower than a pixel. */
const POINTS = 60
/** Fewer are a speck at the edge. */
const LEAST_POINTS = 5

/** @param {Vitals} vitals @param {Range} range */
export function drawSparks (vitals, range) {
  for (const line of document.querySelectorAll('[data-spark]')) {
    line.setAttribute('points', pointsOf(vitals, String(line.getAttribute('data-spark')), range))
  }
}

/**
 * @param {Vitals} vitals
 * @param {string} column
 * @param {Range} range
 * @returns {string} of each part of the range the peak; parts in which nothing is known are passed over
 */
function pointsOf (vitals, column, { fromS, toS }) {
  const partS = (toS - fromS) / POINTS
  /** @type {Map<number, number>} */
  const peaks = new Map()
  for (const [index, second] of vitals.time.entries()) {
    const value = vitals.high[column]?.[index] ?? null
    const part = Math.floor((second - fromS) / partS)
    if (value !== null && value >= (peaks.get(part) ?? -Infinity)) peaks.set(part, value)
  }
  if (peaks.size < LEAST_POINTS) return ''
  const most = Math.max(...peaks.values()) || 1
  return Array
    .from(peaks, ([part, value]) => `${(part + 1) * WIDTH / POINTS},${(HEIGHT - PADDING - (HEIGHT - 2 * PADDING) * value / most).toFixed(1)}`)
    .join(' ')
}
