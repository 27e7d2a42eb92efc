import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NEW_RELEASE, OPTIONS, simulate } from '../../support/simulation.ts'

const ERROR = { errorName: 'TypeError', errorMessage: 'no shop' }

function crashing (pool: ReturnType<typeof simulate>, worker: number) {
  return pool.feed({ type: 'worker-crashing', worker, ...ERROR })
}

test('a worker that is about to crash is replaced before it ends, and counted once', () => {
  const pool = simulate()
  pool.settle()
  crashing(pool, 1)
  assert.deepEqual(pool.serving(), [3, 2])
  assert.equal(pool.processes.get(1)?.isDraining, false, 'it drains by itself')
  assert.deepEqual([pool.last('worker.draining').cause, pool.last('worker.draining').actor], ['crash', null])
  pool.exit(1, { code: 1 })
  assert.deepEqual([pool.last('worker.exited').cause, pool.last('worker.exited').code], ['crash', 1])
  assert.equal(pool.state.slots[0].restarts, 1)
  assert.equal(pool.types().filter((type) => type === 'worker.restarted').length, 1)
})

test('one that dies again and again waits out the backoff, also when it says so before', () => {
  const pool = simulate({ workers: 1 })
  pool.settle()
  crashing(pool, 1)
  pool.feed({ type: 'worker-ready', worker: 2 })
  crashing(pool, 2)
  assert.deepEqual(pool.serving(), [0])
  assert.ok(pool.deadlines.has('retry:1'))
})

test('one that says that it crashes and does not end is killed in the end', () => {
  const pool = simulate({ workers: 1 })
  pool.settle()
  crashing(pool, 1)
  assert.equal(pool.deadlines.get('drain:1')?.dueAt, pool.at + OPTIONS.crash.graceMs + 2000)
  pool.feed({ type: 'deadline-passed', deadline: 'drain', id: 1 })
  pool.feed({ type: 'deadline-passed', deadline: 'term', id: 1 })
  assert.equal(pool.processes.get(1)?.isKilled, true)
  pool.exit(1, { signal: 'SIGKILL' })
  assert.equal(pool.last('worker.exited').cause, 'crash')
})

test('in a rollout it ends the release that it belongs to; said on the way out, or twice, it changes nothing', () => {
  const pool = simulate({ workers: 2 })
  pool.settle()
  pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
  crashing(pool, 3)
  assert.match(pool.state.rollout?.reason ?? pool.last('rollout.failed')?.message, /TypeError: no shop/)
  const before = pool.events.length
  crashing(pool, 3)
  assert.equal(pool.events.length, before)
  assert.equal(pool.last('worker.draining').cause, 'boot-failure')
})

test('a lack of memory is the cause, unless the master meant the worker to end', () => {
  const pool = simulate()
  pool.settle()
  pool.processes.delete(1)
  pool.feed({ type: 'worker-exited', worker: 1, code: null, signal: 'SIGKILL', isOutOfMemory: true })
  assert.equal(pool.last('worker.exited').cause, 'out-of-memory')
})
