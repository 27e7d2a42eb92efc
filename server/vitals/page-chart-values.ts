import { CHART_COLUMNS } from '../../public/chart-columns.ts'
import type { ChartValues } from '../../public/live-events.d.ts'
import type { Deck } from '../deck.ts'

/** New points for the charts of a page. */

/** `slot`: 0 is the cluster. Returns undefined: nothing. */
export function chartValues ({ vitals }: Pick<Deck, 'vitals'>, { slot, sinceMs }: { slot: number, sinceMs: number }):
  | ChartValues
  | undefined
{
  const { time, cluster, slots } = vitals.series({ sinceMs, stepMs: 1000, columns: CHART_COLUMNS,
    slots: slot || 'none' })
  if (time.length === 0) return undefined
  const values = slot === 0 ? cluster : slots[0]?.columns ?? {}
  return { time,
    columns: CHART_COLUMNS.map((name) => values[name]?.some((value) => value !== null) ? values[name] : null) }
}
