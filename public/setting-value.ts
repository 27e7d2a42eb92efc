import type { Unit } from '../server/config/units.ts'

/** Writes the value of an option as people say it: by the server for the page, and by the browser for what is typed. */

/** the largest first */
type Units = readonly (readonly [size: number, unit: string])[]

const UNITS: Readonly<Record<'ms' | 'bytes', Units>> = Object.freeze({
  ms: [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1000, 's'], [1, 'ms']],
  bytes: [[1024 ** 3, 'GB'], [1024 ** 2, 'MB'], [1024, 'KB'], [1, 'bytes']]
})

/**
 * `zero`: what 0 means, which is no number then.
 * @returns `30 s`, `512 MB`, `5 %`, `1,000,000`, `off`, `none`; null: nobody says it otherwise than it is written
 */
export function saidValue (value: unknown, unit: Unit | null, zero: string | null = null): string | null {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  if (typeof value === 'object' && value !== null) return saidList(value)
  if (typeof value !== 'number') return null
  if (value === 0 && zero !== null) return zero
  if (unit === 'share') return `${Number((100 * value).toFixed(2))} %`
  if (unit === 'times') return `${value} times`
  if (unit === null) return value >= 10_000 && Number.isInteger(value) ? value.toLocaleString('en-US') : null
  if (value === 0) return `0 ${unit}`
  return unit === 'ms' ? inParts(value) : inOneUnit(value)
}

function saidList (value: object): string {
  const parts = Array.isArray(value) ? value : Object.entries(value).map((pair) => pair.join('='))
  return parts.length === 0 ? 'none' : parts.join(', ')
}

function inParts (ms: number) {
  let rest = ms
  return UNITS.ms.flatMap(([size, unit]) => {
    const count = Math.floor(rest / size)
    rest -= count * size
    return count > 0 ? [`${count} ${unit}`] : []
  }).join(' ')
}

function inOneUnit (bytes: number) {
  const [size, unit] = UNITS.bytes.find(([each]) => bytes >= each) ?? [1, 'bytes']
  return `${Number((bytes / size).toFixed(2))} ${unit}`
}
