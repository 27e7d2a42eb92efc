import { COLUMNS, type Row } from './columns.ts'

const WIDTH = COLUMNS.length

/** The rows of the last `capacity` seconds, in typed arrays whose size never changes. `capacity`: seconds. */
export function createRing (capacity: number) {
  const seconds = new Float64Array(capacity).fill(-1)
  const values = new Float32Array(capacity * WIDTH)
  let newest = -1

  return {
    /** All rows, one behind the other. */
    values,

    /** The newest second, -1 if there is none. */
    get newest () {
      return newest
    },

    /** `second`: since the epoch */
    write (second: number, row: Row) {
      const place = second % capacity
      seconds[place] = second
      values.set(row, place * WIDTH)
      newest = second
    },

    /** @returns the offset of its row in `values`, -1 if there is none */
    find (second: number): number {
      const place = second % capacity
      return second >= 0 && seconds[place] === second ? place * WIDTH : -1
    }
  }
}
