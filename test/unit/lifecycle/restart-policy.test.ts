import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blankRecord, recordExit } from '../../../server/lifecycle/restart-policy.ts'

const POLICY = Object.freeze({ minDelayMs: 100, maxDelayMs: 1000, resetAfterMs: 10_000,
  intensity: { restarts: 3, windowMs: 60_000 } })

/** `deaths`: in a row. Returns the delay after each. */
function delaysOf (deaths: number, random: number): number[] {
  let record = blankRecord()
  return Array.from({ length: deaths }, (_, at) => {
    const exit = recordExit(record, { at, uptimeMs: 0, random }, POLICY)
    record = exit.record
    return exit.delayMs
  })
}

test('the first replacement comes at once, and each later one after twice the time, up to the longest', () => {
  assert.deepEqual(delaysOf(7, 0.5), [0, 100, 200, 400, 800, 1000, 1000])
})

test('no two slots wait equally long: a delay is up to a fifth shorter or longer, and never above the longest', () => {
  assert.deepEqual(delaysOf(7, 0), [0, 80, 160, 320, 640, 800, 800])
  assert.deepEqual(delaysOf(7, 0.999_999), [0, 120, 240, 480, 960, 1000, 1000])
})

test('a delay counts from the start of the worker that died: one that was up for longer is replaced at once', () => {
  const record = { attempt: 2, exitTimes: [0], crashLooping: false }
  const delays = [0, 50.4, 199, 200, 5000].map((uptimeMs) =>
    recordExit(record, { at: 1, uptimeMs, random: 0.5 }, POLICY).delayMs
  )
  assert.deepEqual(delays, [200, 150, 1, 0, 0])
})

test('a worker that was up for long enough begins anew', () => {
  const record = { attempt: 5, exitTimes: [0], crashLooping: true }
  assert.deepEqual(recordExit(record, { at: 1, uptimeMs: 9999, random: 0.5 }, POLICY).record.attempt, 6)
  assert.deepEqual(recordExit(record, { at: 1, uptimeMs: 10_000, random: 0.5 }, POLICY), {
    record: { attempt: 1, exitTimes: [1], crashLooping: false },
    delayMs: 0
  })
})

test('more deaths than allowed within the window are a crash loop, and those before it do not count', () => {
  const after = (times: number[]) =>
    times.reduce((record, at) => recordExit(record, { at, uptimeMs: 0, random: 0.5 }, POLICY).record, blankRecord())
  assert.equal(after([0, 1, 2]).crashLooping, false)
  assert.equal(after([0, 1, 2, 3]).crashLooping, true)
  assert.equal(after([0, 60_000, 60_001, 60_002]).crashLooping, false)
  assert.equal(after([0, 1, 2, 3, 600_000]).crashLooping, true, 'until a worker lasts')
})
