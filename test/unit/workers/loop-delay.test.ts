import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLoopDelay } from '../../../workers/vitals.ts'
import { fake } from '../../support/fake.ts'
import type { IntervalHistogram } from 'node:perf_hooks'

test('a loop is not looked at once it has rested for three reports, and again as soon as it was busy for long', () => {
  const looks = fakeLooks()
  const delay = createLoopDelay(() => looks.monitor)
  for (let report = 0; report < 2; report++) assert.equal(delay.take(3).loopDelayMaxMs, 30)
  assert.equal(looks.isOn, true)
  delay.take(3)
  assert.equal(looks.isOn, false)
  assert.deepEqual(delay.take(3), { loopDelayP50Ms: 0, loopDelayP99Ms: 3, loopDelayMaxMs: 3 })
  assert.deepEqual(delay.take(480.1234), { loopDelayP50Ms: 0, loopDelayP99Ms: 480.123, loopDelayMaxMs: 480.123 },
    'the block that ends its rest is told')
  assert.equal(looks.isOn, true)
  assert.deepEqual(delay.take(3), { loopDelayP50Ms: 0, loopDelayP99Ms: 10, loopDelayMaxMs: 30 })
})

test('a loop that is busy is always looked at', () => {
  const looks = fakeLooks()
  const delay = createLoopDelay(() => looks.monitor)
  for (let report = 0; report < 100; report++) assert.equal(delay.take(report % 3 === 0 ? 20 : 3).loopDelayMaxMs, 30)
  assert.equal(looks.isOn, true)
})

/** Looks that are 20 ms apart, where one in a hundred was 10 ms late, and one 30 ms. */
function fakeLooks () {
  const looks = { isOn: false, monitor: fake<IntervalHistogram>({ enable: () => {
    looks.isOn = true
    return true
  }, disable: () => {
    looks.isOn = false
    return true
  }, reset () {}, percentile: (share: number) => (share === 50 ? 20e6 : 30e6), max: 50e6 }) }
  return looks
}
