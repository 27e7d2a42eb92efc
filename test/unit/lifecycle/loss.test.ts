import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OPTIONS, simulate } from '../../support/simulation.ts'
import type { LifecycleOptions } from '../../../server/lifecycle/state.ts'

const OPEN = { requests: 3, connections: 1, isReported: false }

describe('what the end of a worker has ended with it', () => {
  test('is told of one whose drain deadline was over, in its exit and as a warning of the rollout', () => {
    const pool = draining()
    pool.passNextDeadline()
    pool.exit(1, { code: 0, unfinished: OPEN })
    assert.equal(pool.last('worker.exited').message,
      'worker 1 (slot 1) ended, as another worker replaces it, with 3 requests and 1 connection still open')
    assert.deepEqual(pool.last('worker.exited').detail, { endedRequests: 3, endedConnections: 1 })
    assert.deepEqual(pool.last('rollout.succeeded').detail.warnings, [
      'worker 1 (slot 1) ended with 3 requests and 1 connection still open, as it had not drained within 30 s (option drain.deadlineMs)'
    ])
  })

  test('is nothing that is known of a program that has ended by the signal that it was told by', () => {
    const pool = draining()
    pool.exit(1, { signal: 'SIGTERM', isAsTold: true })
    const { cause, message, detail } = pool.last('worker.exited')
    assert.deepEqual([cause, message, detail], ['restart', 'worker 1 (slot 1) ended, as another worker replaces it',
      null])
  })

  test('is told with the signal that it was to end by, where it had to be killed', () => {
    const pool = draining({ ...OPTIONS, stop: { termGraceMs: 5000, signal: 'SIGQUIT' } })
    pool.passNextDeadline()
    pool.passNextDeadline()
    pool.exit(1, { signal: 'SIGKILL' })
    assert.match(pool.last('worker.exited').message,
      /^worker 1 \(slot 1\) was killed, as it had not ended 5 s after SIGQUIT \(option stop\.termGraceMs\)/)
  })

  test('is nothing once it has drained, also after the deadline, whatever its last report was', () => {
    for (const isLate of [false, true]) {
      const pool = draining()
      if (isLate) pool.passNextDeadline()
      pool.feed({ type: 'worker-drained', worker: 1 })
      pool.exit(1, { signal: 'SIGKILL', unfinished: { ...OPEN, isReported: true } })
      assert.equal(pool.last('worker.exited').detail, null)
      assert.deepEqual(pool.last('rollout.succeeded').detail.warnings, [])
    }
  })

  test('is told of SIGKILL while it serves, by its last report; a crash tells of its error', () => {
    const pool = simulate({ workers: 2 })
    pool.settle()
    pool.exit(1, { signal: 'SIGKILL', unfinished: { requests: 0, connections: 2, isReported: true } })
    assert.equal(pool.last('worker.exited').message,
      'worker 1 (slot 1) was ended by SIGKILL, with 2 connections still open, by its last report')
    pool.exit(2, { signal: 'SIGABRT', unfinished: { ...OPEN, isReported: true } })
    assert.equal(pool.last('worker.exited').message, 'worker 2 (slot 2) was ended by SIGABRT (it aborted itself)')
  })

  test('names five of the processes that live on, and all of them in its detail', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    const left = Array.from({ length: 7 }, (_, index) => ({ name: 'helper', pid: index + 1, startTime: 'boot:1' }))
    pool.exit(1, { code: 1, left })
    assert.match(pool.last('worker.exited').message,
      /; processes that it started still run: helper \(pid 1\), .*helper \(pid 5\) …$/)
    assert.deepEqual(pool.last('worker.exited').detail.leftProcesses.at(-1), { name: 'helper', pid: 7 })
  })
})

/** A rollout has replaced worker 1, which drains. */
function draining (options?: LifecycleOptions) {
  const pool = simulate({ workers: 1, options })
  pool.settle()
  pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
  pool.becomeReady(2)
  return pool
}
