/** @param {number[]} values those that are no numbers do not count @param {number} share 0…1 @returns {number} */
export function quantile (values, share) {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

/** @param {number[]} values */
export function median (values) {
  return quantile(values, 0.5)
}

/** @param {number[]} values @returns {string} the median, the smallest and the largest */
export function spreadOf (values) {
  return `${median(values).toFixed(2)} (${quantile(values, 0).toFixed(2)} to ${quantile(values, 1).toFixed(2)})`
}

/** @param {number[]} ours @param {number[]} theirs of the same rounds */
export function ratiosTo (ours, theirs) {
  return spreadOf(ours.map((value, round) => value / theirs[round]))
}
