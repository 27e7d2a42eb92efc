import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { addSparse, BOUNDS_MS, bucketOf, BUCKETS, quantile, toSparse } from '../../../workers/histogram.ts'

const MAX_ERROR = 0.036
/** Latencies of every magnitude alike. */
const latencies = fc.array(fc.double({ min: Math.log(0.01), max: Math.log(100_000), noNaN: true }).map(Math.exp), {
  minLength: 1,
  maxLength: 300
})

function histogramOf (values: number[]) {
  const counts = new Float64Array(BUCKETS)
  for (const value of values) counts[bucketOf(value)]++
  return counts
}

test('any quantile is that of the values themselves within 3.6 %', () => {
  fc.assert(fc.property(latencies, fc.constantFrom(0, 0.5, 0.9, 0.99, 1), (values, share) => {
    const sorted = values.toSorted((a, b) => a - b)
    const truth = sorted[Math.max(0, Math.ceil(values.length * share) - 1)]
    const estimate = quantile(histogramOf(values), share)
    assert.ok(Math.abs(estimate / truth - 1) <= MAX_ERROR, `${estimate} for ${truth}`)
  }), { numRuns: 500 })
})

test('histograms that are added up are the histogram of all, on the way from worker to master too', () => {
  fc.assert(fc.property(fc.array(latencies, { maxLength: 5 }), (workers) => {
    const merged = new Float64Array(BUCKETS)
    for (const values of workers) addSparse(merged, JSON.parse(JSON.stringify(toSparse(histogramOf(values)))))
    assert.deepEqual(merged, histogramOf(workers.flat()))
  }))
})

test('every bound belongs to the bucket that it closes, and the round ones are bounds', () => {
  assert.ok(BOUNDS_MS.every((bound, index) => index === 0 || bound > BOUNDS_MS[index - 1]))
  assert.deepEqual([...BOUNDS_MS].map(bucketOf), [...BOUNDS_MS.keys()])
  assert.deepEqual([...BOUNDS_MS].map((bound) => bucketOf(bound * 1.0001)),
    [...BOUNDS_MS.keys()].map((index) => index + 1))
  for (const ms of [0.1, 0.25, 1, 2.5, 5, 10, 25, 50, 75, 100, 250, 500, 1000, 2500, 7500, 10_000, 60_000])
    assert.ok(BOUNDS_MS.includes(ms), String(ms))
})

test('what is out of range is counted at its ends, and nothing has no quantile', () => {
  assert.deepEqual([bucketOf(0), bucketOf(1e9), bucketOf(Infinity)], [0, BUCKETS - 1, BUCKETS - 1])
  assert.equal(quantile(histogramOf([0]), 0.5), 0.01)
  assert.equal(quantile(histogramOf([1e9]), 0.5), 100_000)
  assert.equal(quantile(new Float64Array(BUCKETS), 0.99), NaN)
})
