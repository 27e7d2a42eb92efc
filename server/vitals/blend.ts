import { addSparse, BUCKETS, quantile } from '../../workers/histogram.ts'
import { COLUMNS, QUANTILES, type Row } from './columns.ts'

/**
 * Adds up rows and their histograms: of several workers to one row (`across`), or of several seconds to one of a longer
 * step (`over`). Unknown values do not count.
 */
export class Blend {
  #values: Float64Array = new Float64Array(COLUMNS.length)
  /** how many rows have had the value */
  #known: Uint32Array = new Uint32Array(COLUMNS.length)
  #latency = new Float64Array(BUCKETS)
  #hasLatency = false
  #rows = 0
  #rules

  constructor (direction: 'across' | 'over') {
    this.#rules = COLUMNS.map((column) => column[direction])
  }

  get isEmpty () {
    return this.#rows === 0
  }

  /** How many rows it holds. */
  get rows () {
    return this.#rows
  }

  /** `source`: has the histogram of the row */
  add (row: Row, source: Blend | null = null) {
    for (let index = 0; index < COLUMNS.length; index++) {
      const value = row[index]
      if (Number.isNaN(value) || this.#rules[index] === 'merged') continue
      const isFirst = this.#known[index]++ === 0
      this.#values[index] = this.#rules[index] === 'max' && !isFirst
        ? Math.max(this.#values[index], value)
        : this.#values[index] + value
    }
    this.#rows++
    if (source !== null && source.#hasLatency) {
      for (let index = 0; index < BUCKETS; index++) this.#latency[index] += source.#latency[index]
      this.#hasLatency = true
    }
  }

  /** `sparse`: a histogram as it travels */
  addLatency (sparse: readonly number[]) {
    addSparse(this.#latency, sparse)
    this.#hasLatency ||= sparse.length > 0
  }

  row (): Row {
    const row = new Float64Array(COLUMNS.length).fill(NaN)
    for (let index = 0; index < COLUMNS.length; index++) {
      if (this.#known[index] === 0) continue
      row[index] = this.#rules[index] === 'mean' ? this.#values[index] / this.#known[index] : this.#values[index]
    }
    if (this.#hasLatency) {
      for (const [share, index] of QUANTILES) row[index] = quantile(this.#latency, share)
    }
    return row
  }

  reset () {
    this.#values.fill(0)
    this.#known.fill(0)
    this.#rows = 0
    if (this.#hasLatency) this.#latency.fill(0)
    this.#hasLatency = false
  }
}
