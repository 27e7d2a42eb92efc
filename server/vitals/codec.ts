import { COLUMNS } from './columns.ts'

/**
 * Encodes a step as version, number of columns, and then for the cluster (as slot 0) and each slot its number and its
 * row. All numbers have a variable length (LEB128), and 0 is an unknown value. Most take one or two bytes, where
 * columns of SQLite or floats would take four to ten.
 */
export type Entry = [slot: number, row: ArrayLike<number>]

const VERSION = 1
const MAX_BYTES_EACH = 8

export function encodeStep (entries: readonly Entry[]): Buffer {
  const buffer = Buffer.allocUnsafe(2 + entries.length * (COLUMNS.length + 1) * MAX_BYTES_EACH)
  buffer[0] = VERSION
  buffer[1] = COLUMNS.length
  let at = 2
  const writeVarint = (value: number) => {
    // Shifting would cut numbers to 32 bits.
    for (; value >= 128; value = Math.floor(value / 128)) buffer[at++] = value % 128 + 128
    buffer[at++] = value
  }
  for (const [slot, row] of entries) {
    writeVarint(slot)
    COLUMNS.forEach(({ perUnit }, index) => {
      const value = row[index]
      writeVarint(Number.isNaN(value) ? 0 : Math.round(value * perUnit) + 1)
    })
  }
  return Buffer.from(buffer.subarray(0, at))
}

/** `take`: called for each entry, each time with the same array */
export function decodeStep (body: Uint8Array, take: (slot: number, row: ArrayLike<number>) => void) {
  if (body[0] !== VERSION) return
  const width = body[1]
  const row = new Float64Array(COLUMNS.length)
  let at = 2
  const readVarint = () => {
    let value = 0
    for (let factor = 1; at < body.length; factor *= 128) {
      const byte = body[at++]
      value += (byte & 127) * factor
      if (byte < 128) break
    }
    return value
  }
  while (at < body.length) {
    const slot = readVarint()
    row.fill(NaN)
    for (let index = 0; index < width; index++) {
      const value = readVarint()
      // Columns are only ever added at the end: those of a newer version are ignored, and older rows lack some.
      if (index < COLUMNS.length && value > 0) row[index] = (value - 1) / COLUMNS[index].perUnit
    }
    take(slot, row)
  }
}
