import type { Deck } from '../deck.ts'

/** Workers report each second, so older figures are not of now. */
const FRESH_MS = 5000
const COLUMNS = ['requestsPerSecond', 'latencyP99Ms', 'cpuPercent', 'rssBytes', 'openConnections', 'threads'] as const

/** The figures of all workers together that pages show as now: of the last second, which the charts end with too. */
export function newestFigures ({ vitals }: Pick<Deck, 'vitals'>,
  now: number): Record<typeof COLUMNS[number], number | null>
{
  const { cluster } = vitals.series({ sinceMs: now - FRESH_MS, stepMs: 1000, columns: COLUMNS, slots: 'none' })
  return Object.fromEntries(COLUMNS.map((name) => [name, cluster[name]?.at(-1) ?? null])) as ReturnType<
    typeof newestFigures
  >
}

/** `sample`: of a worker. Null: it is not of now */
export function freshSample<S extends { at: string }> (sample: S | null, now: number): S | null {
  return sample && now - Date.parse(sample.at) <= FRESH_MS ? sample : null
}
