import type { Range, Vitals } from './vitals-series.ts'

/** The lines of the key figures. The server leaves their points out, so that it has nothing to send while they move. */

/** The box that the template draws in. */
const WIDTH = 120
const HEIGHT = 32
const PADDING = 2
/** More points would be narrower than a pixel. */
const POINTS = 60
/** Fewer are a speck at the edge. */
const LEAST_POINTS = 5

export function drawSparks (vitals: Vitals, range: Range) {
  for (const line of document.querySelectorAll('[data-spark]')) {
    line.setAttribute('points', pointsOf(vitals, String(line.getAttribute('data-spark')), range))
  }
}

/** @returns of each part of the range the peak; parts in which nothing is known are passed over */
function pointsOf (vitals: Vitals, column: string, { fromS, toS }: Range): string {
  const partS = (toS - fromS) / POINTS
  const peaks: Map<number, number> = new Map()
  for (const [index, second] of vitals.time.entries()) {
    const value = vitals.high[column]?.[index] ?? null
    const part = Math.floor((second - fromS) / partS)
    if (value !== null && value >= (peaks.get(part) ?? -Infinity)) peaks.set(part, value)
  }
  if (peaks.size < LEAST_POINTS) return ''
  const most = Math.max(...peaks.values()) || 1
  return Array.from(peaks,
    ([part, value]) =>
      `${(part + 1) * WIDTH / POINTS},${(HEIGHT - PADDING - (HEIGHT - 2 * PADDING) * value / most).toFixed(1)}`).join(
      ' '
    )
}
