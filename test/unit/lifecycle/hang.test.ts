import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, simulate } from '../../support/simulation.ts'

const silent = (worker: number) => ({ type: 'worker-silent', worker, message: `worker ${worker} is silent` } as const)

function running (options: Parameters<typeof simulate>[0] = {}) {
  const pool = simulate(options)
  pool.settle()
  return pool
}

describe('a worker whose loop does not answer', () => {
  test('is unresponsive, replaced at once, and killed when its stack is known', () => {
    const pool = running()
    pool.feed(silent(1))
    assert.equal(pool.state.workers[1].state, 'unresponsive')
    assert.deepEqual(pool.serving(), [3, 2])
    const process = pool.processes.get(1)
    assert.ok(process?.isStuck && !process.isKilled)
    const view = snapshotOf(pool.state)
    assert.deepEqual(view.workers.map(({ id, state }) => [id, state]), [[1, 'unresponsive'], [3, 'starting'], [2,
      'ready']])
    assert.equal(view.readyWorkers, 1)

    pool.feed({ type: 'stack-captured', worker: 1 })
    assert.ok(process.isKilled)
    pool.exit(1, { signal: 'SIGKILL' })
    const exited = pool.last('worker.exited')
    assert.deepEqual([exited.cause, exited.actor, exited.signal], ['hung', 'system', 'SIGKILL'])
  })

  test('is killed in the end although its stack never comes', () => {
    const pool = running()
    pool.feed(silent(1))
    while (!pool.processes.get(1)?.isKilled) assert.ok(pool.passNextDeadline())
    assert.ok(pool.at < 60_000)
  })

  test('counts as a death for the restart policy, but its replacement never waits', () => {
    const pool = running({ workers: 1 })
    for (let deaths = 0; deaths < 6; deaths++) {
      pool.feed(silent(pool.serving()[0]))
      pool.settle()
    }
    assert.deepEqual([pool.state.slots[0].retryAt, pool.ready(), pool.state.slots[0].restarts], [null, 1, 6])
    assert.ok(pool.last('worker.crash-looping'))
  })

  test('that answers again serves on until its replacement is ready, and is drained then', () => {
    const pool = running()
    pool.feed(silent(1))
    pool.feed({ type: 'worker-answered', worker: 1 })
    assert.equal(pool.state.workers[1].state, 'ready')
    assert.equal(snapshotOf(pool.state).readyWorkers, 2)
    pool.feed({ type: 'stack-captured', worker: 1 })
    assert.ok(!pool.processes.get(1)?.isKilled, 'the stack comes too late to kill it')
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.equal(pool.state.workers[1].state, 'draining')
    pool.settle()
    assert.deepEqual([pool.last('worker.exited').cause, pool.serving()], ['hung', [3, 2]])
  })

  test('that answers again goes on serving if its replacement comes to nothing', () => {
    const pool = running({ workers: 1 })
    pool.feed(silent(1))
    pool.feed({ type: 'worker-answered', worker: 1 })
    pool.exit(2, { code: 1 })
    assert.equal(pool.state.workers[1].state, 'ready')
    assert.equal(snapshotOf(pool.state).readyWorkers, 1)
  })

  test('that answers again and then ends by itself did not end by its hang', () => {
    const pool = running()
    pool.feed(silent(1))
    pool.feed({ type: 'worker-answered', worker: 1 })
    pool.exit(1, { code: 1 })
    assert.equal(pool.last('worker.exited').cause, 'crash')
  })

  test('that answers again while the master stops is drained like the others', () => {
    const pool = running()
    pool.feed(silent(1))
    pool.feed({ type: 'stop', actor: 'signal' })
    pool.feed({ type: 'worker-answered', worker: 1 })
    assert.equal(pool.state.workers[1].state, 'draining')
    pool.settle()
    assert.ok(pool.isFinished)
  })

  test('while it starts or drains has another deadline, and is left to that', () => {
    const pool = simulate()
    pool.feed(silent(1))
    assert.equal(pool.state.workers[1].state, 'starting')
    pool.settle()
    pool.feed({ type: 'restart-worker', worker: 1, actor: 'api' })
    pool.feed({ type: 'worker-ready', worker: 3 })
    pool.feed(silent(1))
    assert.equal(pool.state.workers[1].state, 'draining')
  })

  test('on a new release fails the deploy that brought it', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.feed({ type: 'worker-ready', worker: 3 })
    pool.feed(silent(3))
    pool.settle()
    assert.match(pool.last('rollout.rolled-back').message, /silent/)
    assert.deepEqual(pool.state.slots.map(({ release }) => release), ['r1', 'r1'])
  })
})

describe('an operator who kills a worker', () => {
  test('ends it at once, whatever runs, and the next one starts in the same moment without a backoff', () => {
    const pool = running({ workers: 1 })
    for (let kills = 0; kills < 4; kills++) {
      const [victim] = pool.serving()
      assert.equal(pool.feed({ type: 'kill-worker', worker: victim, actor: 'token' }), null)
      assert.ok(pool.processes.get(victim)?.isKilled)
      assert.notEqual(pool.serving()[0], victim)
      pool.settle()
      const { cause, actor } = pool.last('worker.exited')
      assert.deepEqual([cause, actor], ['operator', 'token'])
    }
    assert.equal(pool.last('worker.restarted'), undefined)
    assert.equal(pool.ready(), 1)
  })

  test('does not fail a deploy by it, and may during one', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.feed({ type: 'worker-ready', worker: 3 })
    pool.feed({ type: 'kill-worker', worker: 3, actor: 'token' })
    pool.settle()
    assert.ok(pool.last('rollout.succeeded'))
  })

  test('is told of a worker that is gone', () => {
    assert.equal(running().feed({ type: 'kill-worker', worker: 99, actor: 'token' })?.code, 'not-found')
  })
})
