/**
 * Workers and master count latencies alike: in buckets whose bounds grow by about 6 %, so that histograms of
 * many workers or seconds add up to the histogram of them all, and its quantiles are those of all requests within 3.6 %.
 * This file imports nothing: both sides read it.
 *
 * The bounds are the preferred numbers R40 of ISO 3. They are nearly geometric and hold the round ones (1, 2.5, 5, 7.5 …)
 * by which people set their objectives, so cumulative counts at those are exact.
 */
const R40 = [
  100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300,
  315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950
]
const LOWEST_DECADE = -2
const DECADES = 7

/** Ascending, in ms, from 0.01 to 100,000. Bucket i holds what is at most BOUNDS_MS[i] and more than the bound before; one more holds the rest. */
export const BOUNDS_MS = Float64Array.from([
  ...Array.from({ length: DECADES }, (_, decade) => R40.map((number) => scaleNumber(number, decade + LOWEST_DECADE))).flat(),
  scaleNumber(100, DECADES + LOWEST_DECADE)
])

export const BUCKETS = BOUNDS_MS.length + 1

/** The geometric middle stands for each bucket: it is off by the same share for the smallest and the largest in it. */
const MIDDLES_MS = Float64Array.from({ length: BUCKETS }, (_, index) => {
  if (index === 0) return BOUNDS_MS[0]
  if (index === BUCKETS - 1) return BOUNDS_MS[index - 1]
  return Math.sqrt(BOUNDS_MS[index - 1] * BOUNDS_MS[index])
})

/** @param {number} ms not negative @returns {number} the index of its bucket */
export function bucketOf (ms) {
  let low = 0
  let high = BUCKETS - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ms <= BOUNDS_MS[middle]) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * @param {ArrayLike<number>} counts by bucket
 * @param {number} share 0…1, as 0.99
 * @returns {number} ms: an estimate of the smallest latency that at least this share of them does not exceed; NaN without any
 */
export function quantile (counts, share) {
  let total = 0
  for (let index = 0; index < BUCKETS; index++) total += counts[index]
  if (total === 0) return NaN
  let left = Math.max(1, Math.ceil(total * share))
  let index = -1
  while (left > 0) left -= counts[++index]
  return MIDDLES_MS[index]
}

/**
 * The buckets that are not empty, as `[index, count, index, count …]` with ascending indexes: what travels.
 * @param {ArrayLike<number>} counts @returns {number[]}
 */
export function toSparse (counts) {
  const sparse = []
  for (let index = 0; index < BUCKETS; index++) {
    if (counts[index] > 0) sparse.push(index, counts[index])
  }
  return sparse
}

/** @param {Float64Array} counts what is added to @param {readonly number[]} sparse see toSparse */
export function addSparse (counts, sparse) {
  for (let n = 0; n < sparse.length; n += 2) counts[sparse[n]] += sparse[n + 1]
}

// A division by a power of ten is rounded right, a multiplication by 0.01 is not.
function scaleNumber (/** @type {number} */ number, /** @type {number} */ decade) {
  return decade >= 2 ? number * 10 ** (decade - 2) : number / 10 ** (2 - decade)
}
