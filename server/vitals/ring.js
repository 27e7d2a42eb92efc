import { COLUMNS } from './columns.js'

const WIDTH = COLUMNS.length

/**
 * The rows of the last `capacity` seconds, in typed arrays whose size never changes.
 * @param {number} capacity seconds
 */
export function createRing (capacity) {
  const seconds = new Float64Array(capacity).fill(-1)
  const values = new Float32Array(capacity * WIDTH)
  let newest = -1

  return {
    /** All rows, one behind the other. */
    values,

    /** The newest second, -1 if there is none. */
    get newest () { return newest },

    /** @param {number} second since the epoch @param {import('./columns.js').Row} row */
    write (second, row) {
      const place = second % capacity
      seconds[place] = second
      values.set(row, place * WIDTH)
      newest = second
    },

    /** @param {number} second @returns {number} the offset of its row in `values`, -1 if there is none */
    find (second) {
      const place = second % capacity
      return second >= 0 && seconds[place] === second ? place * WIDTH : -1
    }
  }
}
