import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requestLimit } from '../../../server/lifecycle/recycling.js'
import { OPTIONS, simulate } from '../../support/simulation.js'

const due = (/** @type {number} */ worker) => ({ type: 'worker-due', worker, cause: 'memory-limit', message: `worker ${worker} is too large` })

function running ({ workers = 2, options = OPTIONS } = {}) {
  const pool = simulate({ workers, options })
  pool.settle()
  return pool
}

describe('recycling', () => {
  test('starts the new worker first, and the old one drains once that is ready', () => {
    const pool = running()
    pool.feed(due(1))
    assert.deepEqual([pool.serving(), pool.processes.get(1)?.isDraining, pool.state.slots[0].candidate], [[1, 2], false, 3])
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual([pool.serving(), pool.processes.get(1)?.isDraining], [[3, 2], true])
    pool.settle()
    const { cause, actor, rollout, message } = pool.last('worker.exited')
    assert.deepEqual([cause, actor, rollout], ['memory-limit', 'system', null])
    assert.match(message, /too large/)
    assert.equal(pool.last('worker.restarted'), undefined, 'it is no death')
  })

  test('never touches two slots at once, and forgets none', () => {
    const pool = running({ workers: 3 })
    for (const worker of [1, 2, 3]) pool.feed(due(worker))
    assert.equal(pool.processes.size, 4)
    pool.feed({ type: 'worker-ready', worker: 4 })
    assert.equal(pool.processes.size, 4, 'the next one waits until the old one is gone')
    pool.settle()
    assert.deepEqual(pool.serving(), [4, 5, 6])
  })

  test('happens by age, up to a tenth earlier', () => {
    const pool = running({ workers: 1, options: /** @type {any} */ ({ ...OPTIONS, recycle: { maxAgeMs: 30_000 } }) })
    const readyAt = pool.at
    pool.passNextDeadline()
    assert.equal(pool.at - readyAt, 28_500)
    pool.settle()
    assert.deepEqual([pool.last('worker.exited').cause, pool.serving()], ['max-age', [2]])
    const limit = (/** @type {number} */ maxRequests, /** @type {number} */ random) => requestLimit({ maxRequests }, random)
    for (const random of [0, 0.3, 0.999]) assert.ok(limit(1000, random) > 899 && limit(1000, random) <= 1000)
    assert.deepEqual([limit(1, 0.9), limit(0, 0.9)], [1, 0])
  })

  test('by an age that is set while workers serve counts from when they became ready, and one that is lifted ends what has not begun', () => {
    const pool = running({ workers: 2 })
    const recycle = (/** @type {number} */ maxAgeMs) => pool.feed({ type: 'configure', options: { ...OPTIONS, recycle: { maxAgeMs } } })
    assert.equal(pool.deadlines.has('age:1'), false)
    const readyAt = Date.parse(String(pool.state.workers[1].readyAt))
    recycle(3_600_000)
    assert.equal(pool.deadlines.get('age:1')?.dueAt, readyAt + 3_420_000)
    recycle(0)
    assert.deepEqual([pool.deadlines.has('age:1'), pool.deadlines.has('age:2')], [false, false])
    recycle(1)
    pool.passNextDeadline()
    pool.passNextDeadline()
    assert.deepEqual([pool.state.recycling?.worker, pool.state.workers[2].due?.cause], [1, 'max-age'])
    recycle(0)
    assert.deepEqual([pool.state.recycling?.worker, pool.state.workers[2].due], [1, null], 'what has begun goes on')
  })

  test('by memory is forgotten where the limit is another one before it has begun', () => {
    const pool = running({ workers: 2 })
    for (const worker of [1, 2]) pool.feed(due(worker))
    pool.feed({ type: 'configure', options: OPTIONS })
    assert.equal(pool.state.workers[2].due?.cause, 'memory-limit')
    pool.feed({ type: 'configure', options: { ...OPTIONS, recycle: { maxAgeMs: 0, maxRssBytes: 1e9 } } })
    assert.deepEqual([pool.state.recycling?.worker, pool.state.workers[2].due], [1, null])
  })

  test('does not forget one that has reached its limit before it was ready', () => {
    const pool = simulate({ workers: 1 })
    pool.feed(due(1))
    assert.equal(pool.state.recycling, null)
    pool.settle()
    assert.deepEqual([pool.last('worker.exited').cause, pool.serving()], ['memory-limit', [2]])
  })

  test('waits for a rollout to end', () => {
    const pool = running()
    pool.feed({ type: 'restart-worker', worker: 2, actor: 'api' })
    pool.feed(due(1))
    assert.equal(pool.state.recycling, null)
    pool.settle()
    assert.equal(pool.last('worker.recycling').worker, 1)
    assert.ok(pool.events.findIndex(({ type }) => type === 'rollout.succeeded') < pool.events.findIndex(({ type }) => type === 'worker.recycling'))
  })

  for (const [name, command, cause] of /** @type {[string, any, string][]} */ ([
    ['a restart', { type: 'rollout', kind: 'restart' }, 'restart'],
    ['an upgrade', { type: 'upgrade', execPath: null }, 'upgrade'],
    ['a stop', { type: 'stop' }, 'shutdown'],
    ['a scale-down of its slot', { type: 'scale', workers: 1 }, 'scale-down']
  ])) {
    test(`makes way for ${name}`, () => {
      const pool = running()
      pool.feed(due(2))
      assert.equal(pool.feed({ ...command, actor: 'api' }), null)
      assert.equal(pool.processes.get(3)?.isDraining, true)
      assert.equal(pool.state.recycling, null)
      pool.exit(3, { code: 0 })
      assert.equal(pool.last('worker.exited').cause, cause)
      pool.settle()
    })
  }

  test('lets the old worker go on if the new one fails, and tries again later', () => {
    const pool = running()
    pool.feed(due(1))
    pool.exit(3, { code: 1 })
    assert.deepEqual([pool.serving(), pool.ready()], [[1, 2], 2])
    assert.match(pool.last('worker.recycle-failed').message, /worker 1 \(slot 1\) is not recycled/)
    const before = pool.at
    while (pool.state.slots[0].candidate === null) assert.ok(pool.passNextDeadline())
    assert.equal(pool.at - before, 30_000)
    pool.settle()
    assert.deepEqual(pool.serving(), [4, 2])
  })

  test('gives the slot to the new worker at once when the old one dies meanwhile', () => {
    const pool = running()
    pool.feed(due(1))
    pool.exit(1, { code: 1 })
    assert.deepEqual([pool.serving(), pool.processes.size], [[3, 2], 2])
    assert.equal(pool.last('worker.exited').cause, 'crash')
    pool.settle()
    assert.equal(pool.ready(), 2)
  })
})
