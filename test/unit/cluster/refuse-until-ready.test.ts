import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { refuseUntilReady } from '../../../server/cluster/refuse-until-ready.ts'
import { fake } from '../../support/fake.ts'
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'

/** A worker's process as node:cluster has it, with what was sent to it and what the primary is answered. */
function setUp () {
  const sent: { act?: string }[] = []
  const answers: [number, boolean][] = []
  const child = Object.assign(new EventEmitter(), { connected: true,
    send: (message: typeof sent[number]) => sent.push(message) > 0 }) as unknown as ChildProcess & {
      connected: boolean
    }
  child.on('internalMessage', ({ ack, accepted }) => answers.push([ack, accepted]))
  const offer = (seq: number, handle = fake<Socket>({})) => {
    child.send({ cmd: 'NODE_CLUSTER', act: 'newconn', seq }, handle)
    return handle
  }
  const workers = [{ process: child as ChildProcess, isConnected: () => child.connected }]
  return { child, sent, answers, offer, workers, open: refuseUntilReady(child, workers) }
}

test('refuses what is offered, a little later, and lets everything else through', async () => {
  const { child, sent, answers, offer } = setUp()
  child.send({ cmd: 'NODE_CLUSTER', ack: 1 })
  offer(2)
  assert.deepEqual([sent, answers], [[{ cmd: 'NODE_CLUSTER', ack: 1 }], []])
  await once(child, 'internalMessage')
  assert.deepEqual([sent.length, answers], [1, [[2, false]]])
})

test('takes its time with a connection that comes back, so that the master does not spin', async () => {
  const { child, answers, offer } = setUp()
  const handle = offer(1)
  await once(child, 'internalMessage')
  const since = performance.now()
  offer(2, handle)
  await once(child, 'internalMessage')
  assert.ok(performance.now() - since > 8)
  assert.deepEqual(answers, [[1, false], [2, false]])
})

test('lets connections through once it is told to', () => {
  const { sent, offer, open } = setUp()
  open()
  offer(1)
  assert.equal(sent[0].act, 'newconn')
})

for (const [others, accepted] of [[true, false], [false, true]] as const) {
  test(`what a worker was offered that dies then ${others ? 'goes to another one' : 'is closed where there is no other'}`, async () => {
    const { child, answers, offer, workers } = setUp()
    if (others) workers.push({ process: fake({}), isConnected: () => true })
    offer(1)
    child.connected = false
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
    assert.deepEqual(answers, [], 'until the primary knows, it would offer it to the same one')
    child.emit('disconnect')
    assert.deepEqual(answers, [[1, accepted]])
  })
}
