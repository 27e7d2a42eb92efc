const UNIT_MS = Object.freeze(new Map([['ms', 1], ['s', 1000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000]]))

/**
 * Reads a length of time as people write it on the command line and in a query. `text`: such as `500ms`, `30s`, `1.5m`,
 * `2h`, `7d`.
 * @returns ms; null for what is no duration
 */
export function parseDuration (text: string): number | null {
  const [, count, unit = ''] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? []
  const unitMs = UNIT_MS.get(unit)
  return unitMs === undefined ? null : Math.round(Number(count) * unitMs)
}
