import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, orphan, simulate } from '../../support/simulation.ts'
import type { Orphan } from '../../../server/lifecycle/state.ts'
import type { StrategyWish } from '../../../server/lifecycle/rollout/strategy.ts'

type Pool = ReturnType<typeof simulate>

const STOP_FIRST = Object.freeze({ order: 'stop-first' as const })

function stopFirst (
  { workers = 2, rollout = {}, orphans }: { workers?: number, rollout?: StrategyWish, orphans?: Orphan[] } = {}
) {
  const pool = simulate({ workers, orphans, options: { ...OPTIONS, rollout: { ...STOP_FIRST, ...rollout } } })
  if (!orphans) pool.settle()
  return pool
}

/** What live processes there are, by slot. */
const living = (pool: Pool) => Object.values(pool.state.workers).map(({ id, slot, state }) => `${slot}: ${id} ${state}`)

/** It drains, and ends. */
function end (pool: Pool, worker: number) {
  pool.feed({ type: 'worker-drained', worker })
  pool.exit(worker, { code: 0 })
}

describe('rollout.order stop-first', () => {
  for (const kind of ['restart', 'deploy', 'rollback'] as const) {
    test(`a ${kind} ends the old worker of a slot before it starts the new one, slot by slot`, () => {
      const pool = stopFirst()
      pool.feed({ type: 'rollout', kind, ...(kind !== 'restart' && { release: NEW_RELEASE }), actor: 'test' })
      assert.deepEqual(living(pool), ['1: 1 draining', '2: 2 ready'])
      assert.deepEqual(pool.rollout?.steps.map(({ state, oldWorker }) => [state, oldWorker]), [['stopping', 1], [
        'pending',
        null
      ]])
      end(pool, 1)
      assert.deepEqual(living(pool), ['2: 2 ready', '1: 3 starting'])
      pool.feed({ type: 'worker-ready', worker: 3 })
      assert.deepEqual(living(pool), ['2: 2 draining', '1: 3 ready'])
      end(pool, 2)
      pool.feed({ type: 'worker-ready', worker: 4 })
      const { state, steps } = pool.last('rollout.succeeded').detail
      assert.deepEqual([state, steps.map((step) => [step.oldWorker, step.newWorker])], ['succeeded', [[1, 3], [2, 4]]])
    })
  }

  test('the drain deadline holds, and then SIGTERM\'s and SIGKILL\'s', () => {
    const pool = stopFirst({ workers: 1 })
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    const startedAt = pool.at
    while (!pool.processes.get(1)?.isKilled) assert.ok(pool.passNextDeadline())
    assert.equal(pool.at - startedAt, 35_000)
    assert.deepEqual(living(pool), ['1: 1 stopping'])
    pool.exit(1, { signal: 'SIGKILL' })
    assert.deepEqual(living(pool), ['1: 2 starting'])
  })

  test('with a larger surge as many slots are without a worker at a time', () => {
    const pool = stopFirst({ workers: 4, rollout: { surge: 2 } })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
    assert.equal(snapshotOf(pool.state).readyWorkers, 2)
  })

  test('a new worker that fails gives its slot back to the old release, once it has gone', () => {
    const pool = stopFirst()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
    end(pool, 1)
    while (pool.state.workers[3].state === 'starting') pool.passNextDeadline()
    assert.deepEqual([living(pool), pool.last('rollout.failed').detail.state], [['2: 2 ready', '1: 3 draining'],
      'failed'])
    end(pool, 3)
    assert.deepEqual([living(pool), pool.state.workers[4].release], [['2: 2 ready', '1: 4 starting'], 'r1'])
  })

  test('what was replaced goes back old release by old release, stop first too', () => {
    const pool = stopFirst()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
    end(pool, 1)
    pool.feed({ type: 'worker-ready', worker: 3 })
    end(pool, 2)
    pool.exit(4, { code: 1 })
    assert.deepEqual(living(pool), ['1: 3 draining', '2: 5 starting'])
    pool.settle()
    assert.equal(pool.last('rollout.rolled-back')?.type, 'rollout.rolled-back')
    assert.deepEqual(Object.values(pool.state.workers).map(({ release, state }) => [release, state]), [['r1', 'ready'],
      ['r1', 'ready']])
  })

  test('an abort while the old worker drains starts its own release again, and a pause leaves no slot without a worker', () => {
    for (const [verb, release] of [['abort', 'r1'], ['pause', 'r2']] as const) {
      const pool = stopFirst({ workers: 1 })
      pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
      pool.feed({ type: verb, rollout: 1, actor: 'test' })
      end(pool, 1)
      pool.feed({ type: 'worker-ready', worker: 2 })
      assert.deepEqual([living(pool), pool.state.workers[2].release, snapshotOf(pool.state).readyWorkers], [[
        '1: 2 ready'
      ], release, 1], verb)
    }
  })

  test('held after a failure, the slot serves its old release until it is retried', () => {
    const pool = stopFirst({ workers: 1, rollout: { onFailure: 'hold' } })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
    end(pool, 1)
    pool.exit(2, { code: 1 })
    pool.settle()
    assert.deepEqual([living(pool), pool.state.workers[3].release, pool.rollout?.state], [['1: 3 ready'], 'r1', 'held'])
    pool.feed({ type: 'retry', rollout: 1, actor: 'test' })
    end(pool, 3)
    assert.deepEqual([living(pool), pool.state.workers[4].release], [['1: 4 starting'], 'r2'])
  })

  for (const [what, happen] of [['is ending by an exception',
    (pool) => pool.feed({ type: 'worker-crashing', worker: 1, errorName: 'Error', errorMessage: 'boom' })], ['hangs',
    (pool) => pool.feed({ type: 'worker-silent', worker: 1, message: 'silent' })], ['is killed by an operator',
    (pool) => pool.feed({ type: 'kill-worker', worker: 1, actor: 'test' })], ['is recycled',
    (pool) => pool.feed({ type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'large' })]] as [string,
      (pool: Pool) => void][])
  {
    test(`one that ${what} is replaced when it has gone`, () => {
      const pool = stopFirst({ workers: 1 })
      happen(pool)
      assert.deepEqual(Object.keys(pool.state.workers), ['1'])
      pool.exit(1, { code: 1 })
      assert.deepEqual(living(pool), ['1: 2 starting'])
      pool.settle()
      assert.deepEqual([living(pool), pool.state.recycling], [['1: 2 ready'], null])
    })
  }

  test('one that hung and answers again has its slot back, as nobody else was started', () => {
    const pool = stopFirst({ workers: 1 })
    pool.feed({ type: 'worker-silent', worker: 1, message: 'silent' })
    pool.feed({ type: 'worker-answered', worker: 1 })
    assert.deepEqual([pool.serving(), living(pool)], [[1], ['1: 1 ready']])
    assert.match(pool.last('worker.responsive').message, /it keeps its slot$/)
  })

  test('recycling goes on with the next one only when the first is replaced', () => {
    const pool = stopFirst()
    for (const worker of [1, 2]) pool.feed({ type: 'worker-due', worker, cause: 'memory-limit', message: 'large' })
    end(pool, 1)
    assert.deepEqual(living(pool), ['2: 2 ready', '1: 3 starting'])
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual(living(pool), ['2: 2 draining', '1: 3 ready'])
  })

  test('the workers of a dead master make way one after the other', () => {
    const pool = stopFirst({ orphans: [orphan({ id: 1 }), orphan({ id: 2 })] })
    assert.deepEqual(living(pool), ['1: 1 draining', '2: 2 ready'])
    end(pool, 1)
    assert.deepEqual(living(pool), ['2: 2 ready', '1: 3 starting'])
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual(living(pool), ['2: 2 draining', '1: 3 ready'])
    end(pool, 2)
    pool.feed({ type: 'worker-ready', worker: 4 })
    assert.deepEqual([snapshotOf(pool.state).state, pool.ready()], ['running', 2])
  })

  test('canaries and upgrades, which have two live side by side, are refused', () => {
    const pool = stopFirst()
    const canary = { type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test',
      strategy: { canary: { workers: 1 } } } as const
    assert.equal(pool.feed(canary)?.code, 'not-possible')
    assert.match(String(pool.feed(canary)?.message), /^canary: expected none with rollout\.order "stop-first"/)
    assert.match(String(pool.feed({ type: 'upgrade', execPath: null, actor: 'test' })?.message),
      /rollout\.order is "stop-first": restart the master instead$/)
    assert.equal(pool.feed({ ...canary, strategy: { ...canary.strategy, order: 'start-first' } }), null)
  })

  test('one deploy alone can be stop-first', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test', strategy: STOP_FIRST })
    assert.deepEqual(living(pool), ['1: 1 draining'])
    pool.settle()
    assert.deepEqual([living(pool), pool.last('rollout.succeeded')?.type], [['1: 2 ready'], 'rollout.succeeded'])
  })
})
