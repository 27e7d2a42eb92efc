import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesOf, changeText, levelChange, tableOf } from '../../../server/mcp/vitals-story.ts'

const seriesOf = (...values: number[]) => ({ time: values.map((_, index) => index * 10),
  cluster: { latencyP99Ms: values, rssBytes: values.map(() => 1e8) } })

test('the moment at which a figure moved to another level is found, and no single peak is one', () => {
  const { index, before, after, times } = levelChange([10, 12, 11, 10, 90, 11, 400, 420, 390, 410, 400], 5)!
  assert.deepEqual([index, before, after], [6, 11, 400])
  assert.ok(times > 30)
  for (const [values, why] of [[[10, 12, 11, 10, 11, 900, 10, 11, 12, 10], 'one peak'], [[0.1, 0.2, 0.1, 4, 4, 4],
    'all of it is small'], [[10, 10, 400, 400], 'too few points on both sides'], [[], 'nothing is known'], [[100, 110,
    105, 120, 118, 121], 'less than half as much again']] as [number[], string][])
    assert.equal(levelChange(values, 5), null, why)
})

test('a change says from what to what, how much that is, and since when', () => {
  const [change, ...more] = changesOf(seriesOf(10, 12, 11, 10, 200, 210, 190))
  assert.deepEqual(more, [])
  assert.equal(changeText(change), 'p99 latency: 11 ms → 200 ms (18 times) from 1970-01-01T00:00:40.000Z on')
  assert.match(changeText(changesOf(seriesOf(200, 210, 190, 20, 20, 22))[0]), /200 ms → 20 ms \(0\.1 times\)/)
})

test('hours become a dozen rows', () => {
  const { columns, rows } = tableOf(seriesOf(...Array.from({ length: 1000 }, (_, index) => index + 0.1234)))
  assert.deepEqual([columns[0], columns[1], rows.length, rows[0].length], ['at', 'latencyP99Ms', 12, columns.length])
  assert.deepEqual(rows.map(([, value]) => value).slice(0, 2), [41.1, 124])
  assert.deepEqual(tableOf({ time: [], cluster: {} }).rows, [])
})
