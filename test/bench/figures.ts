/** `values`: those that are no numbers do not count; `share`: 0…1 */
export function quantile (values: number[], share: number): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

export function median (values: number[]) {
  return quantile(values, 0.5)
}

/** @returns the median, the smallest and the largest */
export function spreadOf (values: number[]): string {
  return `${median(values).toFixed(2)} (${quantile(values, 0).toFixed(2)} to ${quantile(values, 1).toFixed(2)})`
}

/** `theirs`: of the same rounds */
export function ratiosTo (ours: number[], theirs: number[]) {
  return spreadOf(ours.map((value, round) => value / theirs[round]))
}
