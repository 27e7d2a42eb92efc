import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMessages } from '../../../server/cluster/messages.ts'
import { fake } from '../../support/fake.ts'
import type { PlainInput } from '../../../server/lifecycle/state.ts'

/** Two workers whose sockets are on their way to the keeper. */
function setUp (receive: (input: PlainInput) => void) {
  const handle = { tell () {} }
  const handles = new Map([[1, handle], [2, handle]])
  const invalid: string[] = []
  let arrive: () => void = () => {}
  const kept = new Promise((resolve) => {
    arrive = resolve
  }) as Promise<void>
  const hear = createMessages(
    fake({ state: () => ({ workers: { 1: { slot: 1 }, 2: { slot: 2 } } }), handles, receive, sockets: { establish: () =>
      kept }, slotPorts: { open () {} }, standbys: { has: () => false }, boots: { costOf: () =>
        null }, watchdog: { heard () {} },
      ...Object.fromEntries(
        ['acceptFairness', 'requestFairness', 'openRequests', 'vitals', 'judge'].map((name) => [name, {}])
      ), ipcValidation: { admit: () =>
        true, hear: (worker: number, text: string) => invalid.push(`${worker}: ${text}`) } })
  )
  return { hear, handles, invalid, arrive, kept }
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
  const { hear, invalid, arrive, kept } = setUp(() => {
    throw new TypeError('expected a text')
  })
  hear(1, fake({ type: 'ready' }))
  arrive()
  await kept
  assert.deepEqual(invalid, ['1: a message that cannot be read: expected a text'])
})
