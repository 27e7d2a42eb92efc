/** `values`: those that are no numbers do not count; `share`: 0…1 */
export function quantile (values: number[], share: number): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

export function median (values: number[]) {
  return quantile(values, 0.5)
}

/** @returns the median, the smallest and the largest */
export function spreadOf (values: number[], digits: number = 2): string {
  const [middle, least, most] = [0.5, 0, 1].map((share) => quantile(values, share).toFixed(digits))
  return `${middle} (${least} to ${most})`
}

/** `rows`: the first has the heads of the columns */
export function printTable (rows: string[][]) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)) + 2)
  for (const row of rows) console.log(row.map((text, column) => text.padEnd(widths[column])).join(''))
}
