import { HOUR_MS, barsOf, endOfHour } from './bars.js'

/**
 * Draws how often a group crashed.
 * @typedef {ReturnType<typeof frequencyOf>} Frequency
 */

const DAY_MS = 24 * HOUR_MS

/** The time that the graph and each of its bars cover. */
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
    summary: summaryOf(graph, { label, unit })
  }
}

/** @param {{ total: number, max: number }} graph @param {{ label: string, unit: string }} span */
function summaryOf ({ total, max }, { label, unit }) {
  const most = max > 0 && max < total ? `, at most ${max} in one ${unit === 'h' ? 'hour' : 'day'}` : ''
  return `${label}: ${total} ${total === 1 ? 'crash' : 'crashes'}${most}`
}

/** @param {number} steps @param {string} unit */
function agoOf (steps, unit) {
  if (steps === 0) return unit === 'h' ? 'this hour' : 'last 24 hours'
  return `${steps} ${unit} ago`
}
