import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventStream, type NewEvent } from '../../../server/events/stream.ts'
import { untilReplaced, untilServed } from '../../../server/host/until-served.ts'
import { fake } from '../../support/fake.ts'
import type { App } from '../../../server/app/app.ts'

const row = (slot: number, state: string, orphan = false) => ({ slot, state, orphan,
  runtime: 'node' as 'node' | 'other' })

/** Two slots, which workers 1 and 2 of another master serve. */
function setUp () {
  const events = createEventStream()
  let workers = [row(1, 'ready', true), row(2, 'ready', true)]
  const app = fake<App>({ events, restored: { left: [{ id: 1 }, { id: 2 }] },
    supervisor: { snapshot: () => ({ desiredWorkers: 2, workers }) } })
  let outcome: string | null | undefined
  untilServed(app).then((found) => {
    outcome = found
  })
  return { async see (event: NewEvent, next: ReturnType<typeof row>[] = workers) {
    workers = next
    events.publish(event)
    await new Promise((resolve) => setImmediate(resolve))
    return outcome
  } }
}

test('an app serves once each slot has a worker of its own, whether the earlier ones have gone or not', async () => {
  const { see } = setUp()
  assert.equal(
    await see({ type: 'worker.ready', worker: 3 }, [row(1, 'ready', true), row(1, 'ready'), row(2, 'ready', true)]),
    undefined
  )
  assert.equal(
    await see({ type: 'worker.exited', worker: 1 }, [row(1, 'ready'), row(2, 'ready', true), row(2, 'starting')]),
    undefined
  )
  assert.equal(
    await see({ type: 'worker.ready', worker: 4 }, [row(1, 'ready'), row(2, 'ready', true), row(2, 'ready')]),
    null
  )
})

test('a program that has come to its end is as good as one that serves; a worker that ends before is enough to give up, and says why', async () => {
  const finished = setUp()
  assert.equal(await finished.see({ type: 'slot.finished' }, [row(1, 'finished'), row(2, 'ready')]), null)
  const failed = setUp()
  assert.equal(await failed.see({ type: 'worker.exited', worker: 3, message: 'worker 3 threw' }), 'worker 3 threw')
})

test('a program that fails soon after it has begun to listen, as gunicorn does, takes the place of none', async () => {
  const events = createEventStream()
  const supervisor = {
    snapshot: () => ({ desiredWorkers: 1, workers: [{ ...row(1, 'ready'), runtime: 'other' as const }] }),
    unclaimed: () => [],
    closeUnclaimed: () => assert.fail('it is not replaced')
  }
  const replaced = untilReplaced(fake({ events, restored: { left: [] }, supervisor }))
  await new Promise((resolve) => setImmediate(resolve))
  events.publish({ type: 'worker.exited', worker: 1, message: 'worker 1 exited with code 3' })
  assert.equal(await replaced, 'worker 1 exited with code 3')
})
