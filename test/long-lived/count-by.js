/** @template T @param {T[]} items @param {(item: T) => number | string} keyOf @returns {Record<string, number>} */
export function countBy (items, keyOf) {
  /** @type {Record<string, number>} */
  const counts = {}
  for (const item of items) counts[keyOf(item)] = (counts[keyOf(item)] ?? 0) + 1
  return counts
}
