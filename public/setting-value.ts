/** Writes the value of an option as people say it: by the server for the page, and by the browser for what is typed. */

/** the largest first */
type Units = readonly (readonly [size: number, unit: string])[]

const UNITS: Readonly<Record<'ms' | 'bytes', Units>> = Object.freeze({
  ms: [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1000, 's'], [1, 'ms']],
  bytes: [[1024 ** 3, 'GB'], [1024 ** 2, 'MB'], [1024, 'KB'], [1, 'bytes']]
})

/** @returns `30 s`, `1 min 30 s`, `512 MB`, `1,000,000`, `none`; null: nobody says it otherwise than it is written */
export function saidValue (value: unknown, unit: 'ms' | 'bytes' | null): string | null {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(', ')
  if (typeof value !== 'number') return null
  if (unit === null) return value >= 10_000 && Number.isInteger(value) ? value.toLocaleString('en-US') : null
  if (value === 0) return null
  return unit === 'ms' ? inParts(value) : inOneUnit(value)
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
