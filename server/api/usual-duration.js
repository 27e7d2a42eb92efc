const MIN_COUNT = 3

/**
 * The usual time of a rollout of this kind.
 * @param {Pick<import('../../db/history.js').History, 'rolloutDurations'>} history
 * @param {Pick<import('../lifecycle/rollout/record.js').RolloutView, 'id' | 'kind' | 'steps'>} rollout
 * @returns {{ tookMs: number, count: number } | null} the median of those that have succeeded before it; null: too few, or nobody can tell
 */
export function usualOf (history, { id, kind, steps }) {
  try {
    const sorted = history.rolloutDurations({ kind, before: id, isOfOneSlot: steps.length === 1 }).toSorted((a, b) => a - b)
    return sorted.length < MIN_COUNT ? null : { tookMs: medianOf(sorted), count: sorted.length }
  } catch {
    // The rollout can be shown without it.
    return null
  }
}

/** @param {number[]} sorted */
function medianOf (sorted) {
  const middle = sorted.length / 2
  return Math.round((sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2)
}
