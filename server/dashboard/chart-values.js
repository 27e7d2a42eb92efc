import { CHART_COLUMNS } from '../../public/chart-columns.js'

/**
 * New points for the charts of a page.
 * @typedef {import('../../public/live-events.d.ts').ChartValues} ChartValues
 */

/**
 * @param {Pick<import('../deck.js').Deck, 'vitals'>} deck
 * @param {{ slot: number, sinceMs: number }} range `slot`: 0 is the cluster
 * @returns {ChartValues | undefined} undefined: nothing
 */
export function chartValues ({ vitals }, { slot, sinceMs }) {
  const { time, cluster, slots } = vitals.series({ sinceMs, stepMs: 1000, columns: CHART_COLUMNS, slots: slot || 'none' })
  if (time.length === 0) return undefined
  const values = slot === 0 ? cluster : slots[0]?.columns ?? {}
  return { time, columns: CHART_COLUMNS.map((name) => values[name]?.some((value) => value !== null) ? values[name] : null) }
}
