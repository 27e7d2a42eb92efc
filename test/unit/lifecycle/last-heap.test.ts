import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OPTIONS, simulate } from '../../support/simulation.ts'

const MB = 1024 ** 2

function drained (heapBytes: number, { cause = 'memory-limit' }: { cause?: 'memory-limit' | 'max-requests' } = {}) {
  const pool = simulate({ workers: 2 })
  pool.settle()
  pool.feed({ type: 'worker-due', worker: 1, cause, message: 'it is due' })
  pool.becomeReady(3)
  pool.feed({ type: 'worker-drained', worker: 1, heapBytes })
  return { pool, process: pool.processes.get(1) }
}

describe('a worker that was recycled for its memory', () => {
  test('has a time of its own to write its heap once it has drained, and more for a larger one', () => {
    const dueAfter = [10, 100, 1000, 10_000].map((mb) => {
      const { pool, process } = drained(mb * MB)
      assert.deepEqual([process?.writesHeap, process?.isTerminated], [true, false])
      return Number(pool.deadlines.get('drain:1')?.dueAt) - pool.at
    })
    assert.deepEqual(dueAfter, [60_000, 300_000, 600_000, 600_000])
  })

  test('ends as usual with its heap written, and is killed if it never is', () => {
    const { pool, process } = drained(100 * MB)
    pool.feed({ type: 'worker-drained', worker: 1, heapBytes: 0 })
    assert.ok(process?.isTerminated && !process.isKilled)
    pool.exit(1, { code: 0 })
    assert.equal(pool.last('worker.exited').cause, 'memory-limit')

    const late = drained(100 * MB)
    while (!late.process?.isKilled) assert.ok(late.pool.passNextDeadline())
    late.pool.exit(1, { signal: 'SIGKILL' })
    assert.match(late.pool.last('worker.exited').message, /was killed, as it was still writing its heap/)
  })

  test('writes nothing where it is not to, or where it was recycled for something else', () => {
    for (const { process } of [drained(0), drained(NaN), drained(100 * MB, { cause: 'max-requests' })]) {
      assert.deepEqual([process?.writesHeap, process?.isTerminated], [undefined, true])
    }
  })

  test('holds up neither the next recycling, nor a deploy, nor a stop', () => {
    const { pool, process } = drained(1000 * MB)
    assert.equal(pool.state.recycling, null)
    pool.feed({ type: 'worker-due', worker: 2, cause: 'memory-limit', message: 'it is due too' })
    pool.becomeReady(4)
    pool.feed({ type: 'worker-drained', worker: 2, heapBytes: 0 })
    pool.exit(2, { code: 0 })

    pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
    for (const id of [5, 6]) pool.becomeReady(id)
    for (const old of [3, 4]) {
      pool.feed({ type: 'worker-drained', worker: old })
      pool.exit(old, { code: 0 })
    }
    assert.deepEqual([pool.last('rollout.succeeded')?.type, process?.isTerminated], ['rollout.succeeded', false])

    pool.feed({ type: 'stop', actor: 'api' })
    assert.ok(process?.isTerminated)
    assert.equal(Number(pool.deadlines.get('term:1')?.dueAt) - pool.at, 1000)
    pool.passNextDeadline()
    assert.ok(process.isKilled)
  })

  test('does not begin to write during a stop, nor where its successor waits for its end', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    pool.feed({ type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'it is due' })
    pool.becomeReady(2)
    pool.feed({ type: 'stop', actor: 'api' })
    pool.feed({ type: 'worker-drained', worker: 1, heapBytes: MB })
    assert.deepEqual([pool.processes.get(1)?.writesHeap, pool.processes.get(1)?.isTerminated], [undefined, true])

    const stopFirst = simulate({ workers: 1, options: { ...OPTIONS, rollout: { order: 'stop-first' } } })
    stopFirst.settle()
    stopFirst.feed({ type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'it is due' })
    stopFirst.feed({ type: 'worker-drained', worker: 1, heapBytes: MB })
    assert.ok(stopFirst.processes.get(1)?.isTerminated)
  })

  test('keeps its time while it writes, whatever it reports of its memory', () => {
    const { pool } = drained(1000 * MB)
    const before = pool.deadlines.get('drain:1')
    pool.feed({ type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'it is due again' })
    assert.deepEqual(pool.deadlines.get('drain:1'), before)
  })

  test('is killed if its heap takes too much memory, and is no fault of the app, however it ends then', () => {
    const { pool, process } = drained(100 * MB)
    pool.feed({ type: 'heap-too-large', worker: 2 })
    assert.ok(!pool.processes.get(2)?.isKilled, 'it serves')
    pool.feed({ type: 'heap-too-large', worker: 1 })
    assert.ok(process?.isKilled)
    pool.exit(1, { signal: 'SIGKILL' })
    const { cause, message } = pool.last('worker.exited')
    assert.deepEqual([cause, /was killed, as writing its heap took half of the free memory/.test(message)], [
      'memory-limit',
      true
    ])

    for (const end of [{ signal: 'SIGKILL', isOutOfMemory: true }, { signal: 'SIGABRT' }]) {
      const other = drained(100 * MB)
      other.pool.exit(1, end)
      assert.equal(other.pool.last('worker.exited').cause, 'memory-limit')
    }
  })
})
