import { numberWithUnit } from '../../public/setting-value.ts'

/**
 * Reads a length of time as people write it on the command line and in a query. `text`: such as `500ms`, `30s`, `1.5m`,
 * `2h`, `7d`.
 * @returns ms; null for what is no duration
 */
export function parseDuration (text: string): number | null {
  return /^\d{1,9}(\.\d{1,3})?(ms|s|m|h|d)$/.test(text) ? numberWithUnit(text, 'ms') : null
}
