import { HOUR_MS, barsOf, endOfHour } from './bars.js'

/**
 * How often a group crashed, as graphs.
 * @typedef {ReturnType<typeof frequencyOf>} Frequency
 */

const DAY_MS = 24 * HOUR_MS

/** What one bar stands for. */
const SPANS = Object.freeze({
  day: { label: 'Last 24 hours', bars: 24, barMs: HOUR_MS, unit: 'h' },
  month: { label: 'Last 30 days', bars: 30, barMs: DAY_MS, unit: 'd' }
})

/** @param {Pick<import('../deck.js').Deck['crashes'], 'hours'>} crashes @param {number} group @param {{ now: number, span: keyof typeof SPANS }} axis */
export function frequencyOf (crashes, group, { now, span }) {
  const { label, unit, ...axis } = SPANS[span]
  const graph = barsOf(crashes.hours(group, endOfHour(now) - axis.bars * axis.barMs), { now, ...axis })
  return {
    label,
    ...graph,
    bars: graph.bars.filter((bar) => bar.count > 0).map((bar) => ({ ...bar, title: `${agoOf(bar.ageMs / axis.barMs, unit)}: ${bar.count}` })),
    summary: `${label}: ${graph.total} ${graph.total === 1 ? 'crash' : 'crashes'}${graph.max > 0 && graph.max < graph.total ? `, at most ${graph.max} in one ${unit === 'h' ? 'hour' : 'day'}` : ''}`
  }
}

/** @param {number} steps @param {string} unit */
function agoOf (steps, unit) {
  if (steps === 0) return unit === 'h' ? 'this hour' : 'last 24 hours'
  return `${steps} ${unit} ago`
}
