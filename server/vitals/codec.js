import { COLUMNS } from './columns.js'

/**
 * A step as it is stored: version, number of columns, then for the cluster (as slot 0) and each slot its number and its
 * row. All numbers are of variable length (LEB128), 0 is a value that is not known: mostly one or two bytes each, where
 * columns of SQLite or floats would take four to ten.
 * @typedef {[slot: number, row: ArrayLike<number>]} Entry
 */

const VERSION = 1
const MAX_BYTES_EACH = 8

/** @param {readonly Entry[]} entries @returns {Buffer} */
export function encodeStep (entries) {
  const buffer = Buffer.allocUnsafe(2 + entries.length * (COLUMNS.length + 1) * MAX_BYTES_EACH)
  buffer[0] = VERSION
  buffer[1] = COLUMNS.length
  let at = 2
  const writeVarint = (/** @type {number} */ value) => {
    // Not by shifting: bytes of memory have more than 32 bits.
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

/**
 * @param {Uint8Array} body
 * @param {(slot: number, row: ArrayLike<number>) => void} take called for each entry with one row that is used again
 */
export function decodeStep (body, take) {
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
      // Columns are only ever added, at the end: those of a newer version are left out, older rows lack some.
      if (index < COLUMNS.length && value > 0) row[index] = (value - 1) / COLUMNS[index].perUnit
    }
    take(slot, row)
  }
}
