import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, simulate } from '../../support/simulation.ts'
import type { LifecycleOptions } from '../../../server/lifecycle/state.ts'

type Pool = ReturnType<typeof simulate>

function jobs (policy: 'always' | 'on-failure' | 'never',
  { workers = 1, ...more }: { workers?: number } & Pick<LifecycleOptions, 'rollout' | 'recycle'> = {})
{
  return simulate({ workers, options: { ...OPTIONS, restart: { ...OPTIONS.restart, policy }, ...more } })
}

const rows = (pool: Pool) =>
  snapshotOf(pool.state).workers.map(({ slot, id, state }) => `${slot} ${id ?? '-'} ${state}`)

describe('restart.policy', () => {
  for (const [policy, exit, outcome] of [['always', { code: 0 }, ['crash', '1 2 starting']], ['on-failure', { code: 0 },
    ['finished', '1 - finished']], ['on-failure', { code: 1 }, ['crash', '1 2 starting']], ['on-failure', {
    signal: 'SIGTERM'
  }, ['killed', '1 2 starting']], ['never', { code: 0 }, ['finished', '1 - finished']], ['never', { code: 3 }, [
    'finished',
    '1 - finished'
  ]], ['never', { signal: 'SIGKILL' }, ['killed', '1 - finished']], ['never', { signal: 'SIGSEGV' }, ['crash',
    '1 - finished']], ['never', { code: 1, error: { errorName: 'Error', errorMessage: 'boom', stack: null } }, ['crash',
    '1 - finished']]] as const)
  {
    test(`${policy}: a worker that ends by ${JSON.stringify(exit)} has the cause ${outcome[0]}, and its slot is ${outcome[1]}`, () => {
      const pool = jobs(policy)
      pool.settle()
      pool.processes.delete(1)
      pool.feed({ type: 'worker-exited', worker: 1, code: null, signal: null, ...exit })
      assert.deepEqual([pool.last('worker.exited').cause, rows(pool)[0]], outcome)
    })
  }

  test('says of a finished slot how it has ended, once, and does not count it as a restart', () => {
    const pool = jobs('on-failure', { workers: 2 })
    pool.settle()
    pool.exit(2, { code: 0 })
    const [said, ...others] = pool.events.filter(({ type }) => type === 'slot.finished')
    assert.deepEqual(others, [])
    assert.equal(said.message,
      'slot 2 is finished: worker 2 exited with code 0 (option restart.policy: on-failure); a restart or a deploy starts it again')
    const { readyWorkers, finishedWorkers, workers } = snapshotOf(pool.state)
    assert.deepEqual([readyWorkers, finishedWorkers, workers[1].restarts, workers[1].finished?.succeeded], [1, 1, 0,
      true])
    assert.equal(pool.types().includes('worker.restarted'), false)
  })

  test('a job that ends before it is ready is finished too, and the start is over with the last one', () => {
    const pool = jobs('on-failure', { workers: 2 })
    assert.equal(snapshotOf(pool.state).state, 'starting')
    for (const worker of [1, 2]) pool.exit(worker, { code: 0 })
    assert.equal(snapshotOf(pool.state).state, 'running')
    assert.equal(pool.last('worker.exited').message, 'worker 2 (slot 2) exited with code 0')
    assert.equal(pool.isFinished, false, 'the master stays')
  })

  test('a job that has no time to answer counts as ready after its time, and is not ended', () => {
    const pool = jobs('on-failure')
    pool.passNextDeadline()
    assert.equal(pool.ready(), 1)
  })

  for (const kind of ['restart', 'deploy'] as const) {
    test(`a ${kind} starts finished slots again, and has succeeded when their jobs are done or ready`, () => {
      const pool = jobs('on-failure', { workers: 2 })
      for (const worker of [1, 2]) pool.exit(worker, { code: 0 })
      pool.feed({ type: 'rollout', kind, ...(kind === 'deploy' && { release: NEW_RELEASE }), actor: 'test' })
      pool.exit(3, { code: 0 })
      pool.feed({ type: 'worker-ready', worker: 4 })
      pool.settle()
      assert.equal(pool.last('rollout.succeeded')?.type, 'rollout.succeeded')
      assert.deepEqual(rows(pool), ['1 - finished', '2 4 ready'])
      assert.deepEqual(pool.state.slots.map(({ release }) => release), kind === 'deploy' ? ['r2', 'r2'] : ['r1', 'r1'])
    })
  }

  test('a job of a new release that fails fails the deploy, and the finished slot stays on the old one', () => {
    const pool = jobs('on-failure')
    pool.exit(1, { code: 0 })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
    pool.exit(2, { code: 1 })
    assert.equal(pool.last('rollout.failed').detail.state, 'failed')
    assert.deepEqual([rows(pool), pool.state.slots[0].release], [['1 - finished'], 'r1'])
  })

  test('a canary that has done its work passes', () => {
    const pool = jobs('on-failure', { workers: 2 })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test',
      strategy: { canary: { workers: 1, durationMs: 1000 } } })
    pool.exit(3, { code: 0 })
    assert.equal(pool.rollout?.state, 'canary')
    pool.feed({ type: 'promote', rollout: 1, actor: 'test' })
    pool.settle()
    assert.equal(pool.last('rollout.succeeded')?.type, 'rollout.succeeded')
    assert.deepEqual(rows(pool), ['1 - finished', '2 4 ready'])
  })

  test('never: one that hangs, and answers again before it is killed, has its slot back', () => {
    const pool = jobs('never')
    pool.settle()
    pool.feed({ type: 'worker-silent', worker: 1, message: 'silent' })
    assert.deepEqual(pool.serving(), [0])
    pool.feed({ type: 'worker-answered', worker: 1 })
    assert.deepEqual([pool.serving(), rows(pool)], [[1], ['1 1 ready']])
  })

  test('one that finishes while its replacement by recycling starts ends that too', () => {
    const pool = jobs('on-failure', { recycle: { maxAgeMs: 0 } })
    pool.settle()
    pool.feed({ type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'large' })
    pool.exit(1, { code: 0 })
    pool.settle()
    assert.deepEqual([rows(pool), pool.state.recycling], [['1 - finished'], null])
  })

  test('the next master starts no job again that was done, unless its ends bring another one now', () => {
    const finished = {
      1: { at: '2026-01-01T00:00:00.000Z', worker: 1, release: 'r1', cause: 'finished', code: 0, succeeded: true }
    }
    for (const [policy, expected] of [['on-failure', ['1 - finished', '2 2 starting']], ['always', ['1 2 starting',
      '2 3 starting']]] as const)
    {
      const pool = simulate({ workers: 0, options: { ...OPTIONS, restart: { ...OPTIONS.restart, policy } },
        start: { nextWorker: 2 } })
      pool.feed({ type: 'start', workers: 2, finished, actor: 'system' })
      assert.deepEqual(rows(pool), expected)
    }
  })
})
