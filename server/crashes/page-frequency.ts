import { HOUR_MS, barsOf, endOfHour } from '../dashboard/bars.ts'
import type { Deck } from '../deck.ts'

// Draws how often a group crashed.

const DAY_MS = 24 * HOUR_MS

/** The time that the graph and each of its bars cover. */
const SPANS = Object.freeze({ day: { label: 'Last 24 hours', bars: 24, barMs: HOUR_MS, unit: 'h' },
  month: { label: 'Last 30 days', bars: 30, barMs: DAY_MS, unit: 'd' } })

export function frequencyOf (crashes: Pick<Deck['crashes'], 'hours'>, group: number,
  { now, span }: { now: number, span: keyof typeof SPANS })
{
  const { label, unit, ...axis } = SPANS[span]
  const graph = barsOf(crashes.hours(group, endOfHour(now) - axis.bars * axis.barMs), { now, ...axis })
  return { label, ...graph,
    bars: graph.bars.filter((bar) => bar.count > 0).map((bar) => ({ ...bar,
      title: `${agoOf(bar.ageMs / axis.barMs, unit)}: ${bar.count}` })
    ), summary: summaryOf(graph, { label, unit }) }
}

function summaryOf ({ total, max }: { total: number, max: number }, { label, unit }: { label: string, unit: string }) {
  const most = max > 0 && max < total ? `, at most ${max} in one ${unit === 'h' ? 'hour' : 'day'}` : ''
  return `${label}: ${total} ${total === 1 ? 'crash' : 'crashes'}${most}`
}

function agoOf (steps: number, unit: string) {
  if (steps === 0) return unit === 'h' ? 'this hour' : 'last 24 hours'
  return `${steps} ${unit} ago`
}
