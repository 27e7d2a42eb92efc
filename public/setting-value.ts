import type { Unit } from '../server/config/units.ts'

/** Writes and reads the value of an option as people say it: on the server, and in the browser while it is typed. */

/** the largest first; `typed`: what somebody may write for it, in lower case */
type Units = readonly (readonly [size: number, unit: string, typed: RegExp])[]

const UNITS: Readonly<Record<Unit, Units>> = Object.freeze({
  ms: [[86_400_000, 'd', /^d(ays?)?$/], [3_600_000, 'h', /^h(ours?)?$/], [60_000, 'min', /^m(in(ute)?s?)?$/], [1000,
    's', /^s(ec(ond)?s?)?$/], [1, 'ms', /^(ms|milliseconds?)$/]],
  bytes: [[1024 ** 3, 'GB', /^gi?b?$/], [1024 ** 2, 'MB', /^mi?b?$/], [1024, 'KB', /^ki?b?$/], [1, 'bytes',
    /^b(ytes?)?$/]],
  share: [[0.01, '%', /^(%|percent)$/]],
  times: [[1, 'times', /^(times|x)$/]]
})

/** @returns the number that a text such as `1 h 30 min`, `300MB` or `5 %` means; null: it has not such a unit */
export function numberWithUnit (text: string, unit: Unit | null): number | null {
  if (unit === null || !/^(\d+(\.\d+)?\s*[a-z%]+\s*)+$/i.test(text.trim())) return null
  const sizes = Array.from(text.toLowerCase().matchAll(/([\d.]+)\s*([a-z%]+)/g),
    ([, count, word]) => Number(count) * (UNITS[unit].find(([, , typed]) => typed.test(word))?.[0] ?? Number.NaN))
  const sum = sizes.reduce((total, size) => total + size, 0)
  return Number.isNaN(sum) ? null : Number(sum.toFixed(unit === 'ms' || unit === 'bytes' ? 0 : 6))
}

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
