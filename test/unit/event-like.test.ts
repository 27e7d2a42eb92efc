import assert from 'node:assert/strict'
import { test } from 'node:test'
import { above, isLike } from '../support/event-log.ts'

const EVENT = { id: 7, type: 'worker.exited', worker: 3, message: 'worker 3 exited', actor: null,
  detail: { job: 'nightly', run: 12 } }

test('an event is as a test wants it only where each field is: by value, pattern, test, and what is inside', () => {
  for (const wanted of [{}, { worker: 3 }, { actor: null }, { message: /exited$/, id: above(6) }, {
    worker: (id: number) => id !== 4,
    detail: { run: 12 }
  }]) assert.ok(isLike(EVENT, wanted), JSON.stringify(wanted))
  for (const wanted of [{ worker: 4 }, { worker: 3, actor: 'ada' }, { worker: undefined }, { message: /^exited/ }, {
    id: above(7)
  }, { detail: { run: 12, job: 'daily' } }, { detail: null }, { actor: { name: 'ada' } }, { rollout: 1 }])
    assert.ok(!isLike(EVENT, wanted), JSON.stringify(wanted))
})
