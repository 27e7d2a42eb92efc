import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { test, type TestContext } from 'node:test'
import { lookInMiddleOfSecond } from '../../../workers/look-together.ts'

test('those who look in the middle of a second or of one in three look in the same moment, whenever they began, and from the next such moment on', (t) => {
  const clock = clockAt(t, 10_120)
  const seen: [string, number][] = []
  const ends = [lookInMiddleOfSecond(() => seen.push(['each', Date.now()]), 1000)]
  clock.pass(1257)
  ends.push(lookInMiddleOfSecond(() => seen.push(['third', Date.now()]), 3000))
  clock.pass(4500)
  assert.deepEqual(seen, [['each', 10_500], ['each', 11_500], ['third', 12_500], ['each', 12_500], ['each', 13_500], [
    'each',
    14_500
  ], ['third', 15_500], ['each', 15_500]])
  for (const end of ends) end()
  clock.pass(9000)
  assert.equal(seen.length, 8)
})

test('a timer that fires a moment before its time by the clock makes nobody look twice', (t) => {
  const clock = clockAt(t, 10_600)
  const seen: number[] = []
  t.after(lookInMiddleOfSecond(() => seen.push(Date.now()), 1000))
  clock.set(-2)
  clock.pass(4000)
  assert.deepEqual(seen, [11_498, 12_500, 13_500, 14_500])
})

function clockAt (t: TestContext, now: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.timers.reset()
    syncBuiltinESMExports()
  })
  t.mock.method(Date, 'now', () => now)
  return { set (ms: number) {
    now += ms
  }, pass (ms: number) {
    for (let each = 0; each < ms; each++) {
      now++
      t.mock.timers.tick(1)
    }
  } }
}
