import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRateLimiter } from '../../../server/fleet/rate-limiter.ts'

test('some times at once, then each time after a while, however often somebody has come too early', () => {
  let nowMs = 0
  const waitMs = createRateLimiter({ burst: 3, everyMs: 100, now: () => nowMs })
  const take = (times: number) => Array.from({ length: times }, waitMs)
  assert.deepEqual(take(1000).slice(0, 5), [0, 0, 0, 100, 100])
  nowMs = 40
  assert.deepEqual(take(2), [60, 60])
  nowMs = 100
  assert.deepEqual(take(2), [0, 100])
  nowMs = 10_000
  assert.deepEqual(take(4), [0, 0, 0, 100])
})
