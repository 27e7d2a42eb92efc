import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMessages } from '../../../server/cluster/messages.ts'
import { clusterOf } from '../../support/cluster.ts'
import { keptEvents } from '../../support/event-log.ts'
import { fake } from '../../support/fake.ts'
import type { PlainInput } from '../../../server/lifecycle/state.ts'

/** Two workers whose sockets are on their way to the keeper. */
function setUp (receive: (input: PlainInput) => void) {
  const { events, publish } = keptEvents()
  let arrive: () => void = () => {}
  const kept = new Promise((resolve) => {
    arrive = resolve
  }) as Promise<void>
  const cluster = clusterOf({ state: { workers: { 1: { slot: 1 }, 2: { slot: 2 } } },
    handles: { 1: { tell () {} }, 2: { tell () {} } }, receive, events: { publish } })
  const { hear } = createMessages(cluster,
    fake({ sockets: { establish: () => kept }, standbys: { has: () => false }, boots: { costOf: () => null },
      watchdog: { heard () {} }, acceptFairness: {}, requestFairness: {}, openRequests: {} }))
  return { hear, handles: cluster.handles, events, arrive, kept }
}

test('a worker counts as ready once the keeper cannot lose its sockets, and not if it has ended by then', async () => {
  const received: PlainInput[] = []
  const { hear, handles, arrive, kept } = setUp((input) => received.push(input))
  for (const worker of [1, 2]) hear(worker, fake({ type: 'ready' }))
  handles.delete(2)
  await new Promise(setImmediate)
  assert.equal(received.length, 0)
  arrive()
  await kept
  assert.deepEqual(received.map((input) => [input.type, 'worker' in input && input.worker]), [['worker-ready', 1]])
})

test('what cannot be read in a message that has waited for the keeper is told, and harms nobody', async () => {
  const { hear, events, arrive, kept } = setUp(() => {
    throw new TypeError('expected a text')
  })
  hear(1, fake({ type: 'ready' }))
  arrive()
  await kept
  assert.deepEqual(events.map(({ message }) => message), [
    'worker 1 has sent what was dropped: a message that cannot be read: expected a text'
  ])
})
