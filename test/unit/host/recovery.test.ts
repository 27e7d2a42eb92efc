import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecovery, FORGOTTEN_AFTER_MS, OF_PART } from '../../../server/host/recovery.ts'
import { fake } from '../../support/fake.ts'

function setUp () {
  let time = 0
  const timers: { work: () => void, ms: number, isCleared: boolean }[] = []
  const recovery = createRecovery(OF_PART, { now: () => time,
    timers: fake({
      setTimeout: (work: () => void, ms: number) => timers[timers.push({ work, ms, isCleared: false }) - 1],
      clearTimeout: (timer: { isCleared: boolean }) => {
        timer.isCleared = true
      }
    }) })
  return { recovery, timers, pass: (ms: number) => {
    time += ms
  } }
}

test('the part that has failed is made anew after longer and longer pauses, up to a limit, until it has gone well for a while', () => {
  const { recovery, timers, pass } = setUp()
  let made = 0
  const fail = () => {
    recovery.begin(new Error('boom'))
    recovery.later(() => {
      made++
    })
    const { ms, work } = timers[timers.length - 1]
    assert.equal(recovery.isPausing, true)
    work()
    assert.equal(recovery.isPausing, false)
    recovery.end()
    return ms
  }
  assert.deepEqual([fail(), fail(), fail()], [OF_PART.firstMs, 2 * OF_PART.firstMs, 4 * OF_PART.firstMs])
  for (let times = 0; times < 10; times++) fail()
  assert.equal(fail(), OF_PART.maxMs)
  pass(FORGOTTEN_AFTER_MS)
  assert.equal(fail(), OF_PART.maxMs)
  pass(FORGOTTEN_AFTER_MS + 1)
  assert.equal(fail(), OF_PART.firstMs)
  assert.equal(made, timers.length)
})

test('the fault is known until the next part is there, and nobody waits twice for that', () => {
  const { recovery, timers } = setUp()
  assert.equal(recovery.fault, null)
  const fault = recovery.begin('no error at all')
  assert.deepEqual([recovery.fault, fault.message], [fault, 'no error at all'])
  recovery.later(() => {})
  recovery.later(() => {})
  assert.deepEqual(timers.map(({ isCleared }) => isCleared), [true, false])
  recovery.endPause()
  assert.deepEqual([timers[1].isCleared, recovery.isPausing, recovery.fault], [true, false, fault])
  recovery.end()
  assert.equal(recovery.fault, null)
})

test('tries that fail without a success between them come after longer and longer pauses, and say when the next one is due', () => {
  const { recovery, timers, pass } = setUp()
  const pauses = [1, 2, 3, 4].map(() => {
    pass(FORGOTTEN_AFTER_MS + 1)
    recovery.begin(new Error('boom'))
    recovery.later(() => {})
    const { ms, work } = timers[timers.length - 1]
    const askedAt = Date.now()
    const dueAt = Date.parse(String(recovery.dueAt))
    assert.ok(dueAt >= askedAt + ms && dueAt <= Date.now() + ms, `${dueAt - askedAt} of ${ms}`)
    work()
    assert.equal(recovery.dueAt, null)
    return ms
  })
  assert.deepEqual(pauses, [1, 2, 4, 8].map((times) => times * OF_PART.firstMs))
})
