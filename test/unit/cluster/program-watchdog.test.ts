import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createProgramWatchdog } from '../../../server/cluster/program-handle.ts'

function setUp (t: TestContext, timeoutMs: number) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let at = 0
  const told: (number | 'answered')[] = []
  const watchdog = createProgramWatchdog({ pid: () => 0, timeoutMs, now: () => at, onSilent: (ms) => {
    told.push(ms)
  }, onAnswered: () => {
    told.push('answered')
  } })
  t.after(watchdog.stop)
  return { watchdog, told, pass (ms: number) {
    for (let left = ms; left > 0; left -= 500) {
      at += 500
      t.mock.timers.tick(500)
    }
  } }
}

test('a program is watched once it has said that it lives, and told of once for each time that it is silent', (t) => {
  const { watchdog, told, pass } = setUp(t, 2000)
  pass(60_000)
  for (let second = 0; second < 10; second++) {
    watchdog.hears()
    pass(1000)
  }
  assert.deepEqual(told, [])
  pass(20_000)
  assert.equal(told.length, 1)
  watchdog.hears()
  pass(20_000)
  assert.deepEqual([told.length, told[1]], [3, 'answered'])
  watchdog.stop()
  watchdog.hears()
  pass(20_000)
  assert.equal(told.length, 3)
})

test('where nobody watches, nothing is told', (t) => {
  const { watchdog, told, pass } = setUp(t, 0)
  watchdog.hears()
  pass(20_000)
  assert.deepEqual(told, [])
})
