import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenRequests } from '../../../server/cluster/open-requests.ts'
import { clusterOf } from '../../support/cluster.ts'
import { fake } from '../../support/fake.ts'
import type { PoolState, Worker } from '../../../server/lifecycle/state.ts'
import type { ToWorker } from '../../../workers/protocol.ts'

const GET = { method: 'GET', path: '/slow', ageMs: 12 }

/** `worker`: what is special about the one that there is */
function setUp (worker?: Partial<Worker>, patienceMs?: number) {
  const told: { type: string, id?: number }[] = []
  const workers = fake<PoolState['workers']>({ 3: { id: 3, state: 'ready', orphan: null, ...worker } })
  const cluster = clusterOf({ state: { workers, releases: { r2: { runtime: 'other' } } },
    handles: { 3: { tell: (message: ToWorker) => told.push(message) } } })
  return { ...createOpenRequests(cluster, patienceMs), left: (id: number) => cluster.emit('left', id), told }
}

test('a worker is asked once for all who want to know, and again for who comes later', async () => {
  const { ask, answered, told } = setUp()
  const both = [ask(3), ask(3)]
  assert.deepEqual(told, [{ type: 'list-requests', id: 1 }])
  answered(3, { id: 1, requests: [GET], total: 7 })
  assert.deepEqual(await Promise.all(both), Array(2).fill({ items: [GET], total: 7 }))
  const third = ask(3)
  answered(3, { id: 1, requests: [GET], total: 9 })
  answered(3, { id: 2, requests: [], total: 0 })
  assert.deepEqual(await third, { items: [], total: 0 })
})

test('what a worker answers is bounded and of the right shape, whatever it says', async () => {
  const { ask, answered } = setUp()
  const answer = ask(3)
  assert.throws(() => answered(3, { id: 1, requests: 'none' }), {
    message: 'requests: expected a list, received string'
  })
  answered(3, { id: 1,
    requests: [{ method: 'X'.repeat(99), path: '/'.repeat(999), ageMs: NaN }, null, ...Array(200).fill(GET)],
    total: 'many' })
  const { items, total } = await answer
  assert.deepEqual([items.length, total], [100, 100])
  assert.deepEqual(items.slice(0, 2), [{ method: 'X'.repeat(20), path: '/'.repeat(500), ageMs: 0 }, {
    method: 'undefined',
    path: 'undefined',
    ageMs: 0
  }])
})

test('one that ends or does not answer keeps nobody waiting', async () => {
  const { ask, left, told } = setUp({}, 1)
  const first = ask(3)
  left(3)
  await assert.rejects(first, { code: 'not-found', message: 'worker 3 has ended' })
  // Its timer keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  await assert.rejects(ask(3), { code: 'not-possible', message: 'worker 3 did not answer within 1 ms' })
  clearInterval(alive)
  assert.deepEqual(told.map(({ id }) => id), [1])
})

const SILENT: Record<string, Partial<Worker>> = {
  'worker 3 is no Node.js process, so its open requests are not known': { release: 'r2' },
  'worker 3 belongs to another master': { orphan: 'master-lost' },
  'worker 3 is unresponsive': { state: 'unresponsive' }
}
for (const [message, worker] of [['No worker 9 is alive', {}], ...Object.entries(SILENT)] as const)
  test(`who cannot answer is not asked: ${message}`, async () => {
    const { ask, told } = setUp(worker)
    const [id, code] = message.startsWith('No') ? [9, 'not-found'] : [3, 'not-possible']
    await assert.rejects(ask(Number(id)), { code, message })
    assert.deepEqual(told, [])
  })
