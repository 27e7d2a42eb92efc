import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createThrottle } from '../../../server/cluster/throttle.ts'

function setUp (t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let at = 0
  const begun: [string, number][] = []
  const ends: (() => void)[] = []
  const pace = createThrottle({ everyMs: 1000, now: () => at, act (occasion: string, missed) {
    begun.push([occasion, missed])
    return new Promise((resolve) => ends.push(() => resolve(undefined)))
  } })
  return { pace, begun, end () {
    ends.shift()?.()
  }, pass (ms: number) {
    at += ms
    t.mock.timers.tick(ms)
  } }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('the first occasion is acted on at once, the last one of a storm once the time is up', async (t) => {
  const { pace, begun, end, pass } = setUp(t)
  pace.offer('a')
  end()
  await turn()
  for (const occasion of ['b', 'c', 'd']) pace.offer(occasion)
  pass(999)
  assert.deepEqual(begun, [['a', 0]])
  pass(1)
  assert.deepEqual(begun, [['a', 0], ['d', 2]])
})

test('nothing begins while it is busy, however long that takes', async (t) => {
  const { pace, begun, end, pass } = setUp(t)
  pace.offer('a')
  pass(5000)
  pace.offer('b')
  pace.offer('c')
  assert.deepEqual(begun, [['a', 0]])
  end()
  await turn()
  assert.deepEqual(begun, [['a', 0], ['c', 1]])
})

test('an occasion that comes late is acted on at once', async (t) => {
  const { pace, begun, end, pass } = setUp(t)
  pace.offer('a')
  end()
  await turn()
  pass(1000)
  pace.offer('b')
  assert.deepEqual(begun, [['a', 0], ['b', 0]])
})

test('once it is stopped nothing begins any more', async (t) => {
  const { pace, begun, end, pass } = setUp(t)
  pace.offer('a')
  pace.offer('b')
  pace.stop()
  pace.offer('c')
  end()
  await turn()
  pass(100_000)
  assert.deepEqual(begun, [['a', 0]])
})
