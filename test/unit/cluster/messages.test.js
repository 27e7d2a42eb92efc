import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMessages } from '../../../server/cluster/messages.js'

/** Two workers whose sockets are on their way to the keeper. @param {(input: any) => void} receive */
function setUp (receive) {
  const handles = new Map([[1, {}], [2, {}]])
  /** @type {string[]} */
  const invalid = []
  /** @type {() => void} */
  let arrive = () => {}
  const kept = /** @type {Promise<void>} */ (new Promise((resolve) => { arrive = resolve }))
  const hear = createMessages(/** @type {any} */ ({
    state: () => ({ workers: { 1: { slot: 1 }, 2: { slot: 2 } } }),
    handles,
    receive,
    sockets: { establish: () => kept },
    slotPorts: { open () {} },
    standbys: { has: () => false },
    boots: { costOf: () => null },
    watchdog: { heard () {} },
    ...Object.fromEntries(['acceptFairness', 'requestFairness', 'openRequests', 'vitals', 'judge'].map((name) => [name, {}])),
    ipcValidation: { admit: () => true, hear: (/** @type {number} */ worker, /** @type {string} */ text) => invalid.push(`${worker}: ${text}`) }
  }))
  return { hear, handles, invalid, arrive, kept }
}

test('a worker counts as ready once the keeper cannot lose its sockets, and not if it has ended by then', async () => {
  /** @type {any[]} */
  const received = []
  const { hear, handles, arrive, kept } = setUp((input) => received.push(input))
  for (const worker of [1, 2]) hear(worker, /** @type {any} */ ({ type: 'ready' }))
  handles.delete(2)
  await new Promise(setImmediate)
  assert.deepEqual(received, [])
  arrive()
  await kept
  assert.deepEqual(received.map(({ type, worker }) => [type, worker]), [['worker-ready', 1]])
})

test('what cannot be read in a message that has waited for the keeper is told, and harms nobody', async () => {
  const { hear, invalid, arrive, kept } = setUp(() => { throw new TypeError('expected a text') })
  hear(1, /** @type {any} */ ({ type: 'ready' }))
  arrive()
  await kept
  assert.deepEqual(invalid, ['1: a message that cannot be read: expected a text'])
})
