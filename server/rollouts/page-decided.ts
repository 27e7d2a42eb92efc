import { formatBytes, formatLatency, formatPercent } from '../../public/format.ts'
import type { Decided } from '../api/shapes.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

/** A row of the table of new and old workers. `limit`: of the one that has decided, with its option */
export type SidesRow = { name: string, canary: string, baseline: string, isWorse: boolean, limit?: string,
  option?: string }

const FORMATS: Readonly<Record<Decided['unit'], (value: number) => string>> = Object.freeze({
  share: (share) => formatPercent(100 * share),
  ms: formatLatency,
  percent: formatPercent,
  bytes: formatBytes
})
const TITLES: Readonly<Record<Decided['unit'], string>> = Object.freeze({ share: 'too many 5xx', ms: 'too slow',
  percent: 'too much CPU', bytes: 'too much memory' })

/** The figure by which a rollout has failed, and that in few words. Null: something else was to blame */
export function decidedOf (
  { reason, verdicts }: Pick<RolloutView, 'reason' | 'verdicts'>
): { title: string, unit: Decided['unit'], row: SidesRow } | null {
  const { decided, message } = verdicts?.at(-1) ?? {}
  if (!decided || message !== reason) return null
  const { figure, unit, canary, baseline, limit, option } = decided
  const [now, before, most] = [canary, baseline, limit].map(FORMATS[unit])
  return { title: TITLES[unit], unit,
    row: { name: figure, canary: now, baseline: before, isWorse: true, limit: most, option } }
}
