import { attempt } from '../errors.ts'
import type { History } from '../../db/history.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

const MIN_COUNT = 3

/**
 * The usual time of a rollout of this kind.
 * @returns the median of those that have succeeded before it; null: too few, or nobody can tell
 */
export function usualOf (history: Pick<History, 'rolloutDurations'>,
  { id, kind, steps }: Pick<RolloutView, 'id' | 'kind' | 'steps'>): { tookMs: number, count: number } | null
{
  // The rollout can be shown without it.
  return attempt(() => {
    const sorted = history.rolloutDurations({ kind, before: id, isOfOneSlot: steps.length === 1 }).toSorted((a, b) =>
      a - b
    )
    return sorted.length < MIN_COUNT ? null : { tookMs: medianOf(sorted), count: sorted.length }
  })
}

function medianOf (sorted: number[]) {
  const middle = sorted.length / 2
  return Math.round((sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2)
}
