/**
 * Workers and master count latencies alike: in buckets whose bounds grow by about 6 %, so that histograms of
 * many workers or seconds add up to the histogram of them all, and its quantiles are those of all requests within 3.6
 * %. This file imports nothing: both sides read it.
 *
 * The bounds are the preferred numbers R40 of ISO 3. They are nearly geometric and hold the round ones (1, 2.5, 5, 7.5
 * …) by which people set their objectives, so cumulative counts at those are exact.
 */
const R40 = [100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315,
  335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950]
const LOWEST_DECADE = -2
const DECADES = 7

/**
 * Ascending, in ms, from 0.01 to 100,000. Bucket i holds what is at most BOUNDS_MS[i] and more than the bound before;
 * one more holds the rest.
 */
export const BOUNDS_MS = Float64Array.from([
  ...Array.from({ length: DECADES }, (_, decade) => R40.map((number) => scaleNumber(number, decade + LOWEST_DECADE)))
    .flat(),
  scaleNumber(100, DECADES + LOWEST_DECADE)
])

export const BUCKETS = BOUNDS_MS.length + 1

/** The geometric middle stands for each bucket: it is off by the same share for the smallest and the largest in it. */
const MIDDLES_MS = Float64Array.from({ length: BUCKETS }, (_, index) => {
  if (index === 0) return BOUNDS_MS[0]
  if (index === BUCKETS - 1) return BOUNDS_MS[index - 1]
  return Math.sqrt(BOUNDS_MS[index - 1] * BOUNDS_MS[index])
})

/**
 * A double begins with its exponent and the highest bits of its fraction: 12 and 5 of them name a cell, 32 for each
 * doubling, narrower than any bucket. So a cell holds one bound at most, and the index of the bucket in which it begins
 * replaces a search for each request.
 */
const CELL_SHIFT = 15
const double = new Float64Array(1)
const words = new Uint32Array(double.buffer)
const HIGH_WORD = new Uint8Array(Uint16Array.of(1).buffer)[0]
const FIRST_CELL = cellOf(BOUNDS_MS[0])
const BUCKET_OF_CELL = startBuckets()

/** `ms`: not negative. Returns the index of its bucket. */
export function bucketOf (ms: number): number {
  if (ms <= BOUNDS_MS[0]) return 0
  if (ms > BOUNDS_MS[BUCKETS - 2]) return BUCKETS - 1
  const bucket = BUCKET_OF_CELL[cellOf(ms) - FIRST_CELL]
  return ms <= BOUNDS_MS[bucket] ? bucket : bucket + 1
}

function cellOf (ms: number) {
  double[0] = ms
  return words[HIGH_WORD] >>> CELL_SHIFT
}

/** @returns of each cell, the bucket that holds its smallest value */
function startBuckets (): Uint16Array {
  const buckets = new Uint16Array(cellOf(BOUNDS_MS[BUCKETS - 2]) - FIRST_CELL + 1)
  let bucket = 0
  for (let cell = 0; cell < buckets.length; cell++) {
    double[0] = 0
    words[HIGH_WORD] = (cell + FIRST_CELL) << CELL_SHIFT
    while (double[0] > BOUNDS_MS[bucket]) bucket++
    buckets[cell] = bucket
  }
  return buckets
}

/**
 * `counts`: by bucket; `share`: 0…1, as 0.99.
 * @returns ms: an estimate of the smallest latency that at least this share of them does not exceed; NaN without any
 */
export function quantile (counts: ArrayLike<number>, share: number): number {
  let total = 0
  for (let index = 0; index < BUCKETS; index++) total += counts[index]
  if (total === 0) return NaN
  let left = Math.max(1, Math.ceil(total * share))
  let index = -1
  while (left > 0) left -= counts[++index]
  return MIDDLES_MS[index]
}

/** `counts`: by bucket @returns ms: about how long all of them took together */
export function totalOf (counts: ArrayLike<number>): number {
  let total = 0
  for (let index = 0; index < BUCKETS; index++) total += counts[index] * MIDDLES_MS[index]
  return total
}

/** The buckets that are not empty, as `[index, count, index, count …]` with ascending indexes: what travels. */
export function toSparse (counts: ArrayLike<number>): number[] {
  const sparse = []
  for (let index = 0; index < BUCKETS; index++) {
    if (counts[index] > 0) sparse.push(index, counts[index])
  }
  return sparse
}

/** `counts`: what is added to; `sparse`: see toSparse */
export function addSparse (counts: Float64Array, sparse: readonly number[]) {
  for (let n = 0; n < sparse.length; n += 2) counts[sparse[n]] += sparse[n + 1]
}

// A division by a power of ten is rounded right, a multiplication by 0.01 is not.
function scaleNumber (number: number, decade: number) {
  return decade >= 2 ? number * 10 ** (decade - 2) : number / 10 ** (2 - decade)
}
