import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NEW_RELEASE, simulate } from '../../support/simulation.ts'
import type { Steering } from '../../../server/config/steering.ts'

const deploy = { type: 'rollout', kind: 'deploy', actor: 'api' } as const
const prepared = { type: 'release-prepared', rollout: 1, release: { ...NEW_RELEASE, id: 'r2' }, hasHook: true } as const
const steer = (type: Steering) => ({ type, rollout: 1, actor: 'ada' })

/** A deploy whose release is prepared, and which has a hook. */
function hooked (workers = 2) {
  const pool = simulate({ workers })
  pool.settle()
  pool.feed(deploy)
  pool.feed(prepared)
  return pool
}

describe('the hook of a deploy', () => {
  test('runs once the release is prepared, and nothing is replaced before it has passed', () => {
    const pool = hooked()
    assert.deepEqual(pool.hook, { rollout: 1, release: 'r2', from: 'r1', isEnding: false })
    assert.deepEqual([pool.rollout?.state, pool.rollout?.to, pool.rollout?.hook?.state], ['preparing', 'r2', 'running'])
    assert.equal(pool.last('rollout.step').message, 'running beforeDeploy')
    assert.deepEqual([...pool.processes.keys()], [1, 2])
    pool.endHook()
    assert.deepEqual([pool.rollout?.state, pool.rollout?.hook?.state], ['rolling', 'passed'])
    assert.deepEqual([...pool.processes.keys()], [1, 2, 3])
    pool.settle()
    assert.equal(pool.state.release.id, 'r2')
    assert.equal(pool.types().filter((type) => type === 'rollout.succeeded').length, 1)
  })

  test('fails it with its reason and its output, and every worker serves on', () => {
    const pool = hooked()
    pool.endHook({ passed: false, reason: 'beforeDeploy exited with code 3 after 120 ms: no table',
      output: 'migrating\nno table' })
    const { message, detail } = pool.last('rollout.failed')
    assert.equal(message, 'beforeDeploy exited with code 3 after 120 ms: no table')
    assert.deepEqual([detail.to, detail.steps, detail.hook.state, detail.hook.output], ['r2', [], 'failed',
      'migrating\nno table'])
    assert.deepEqual(pool.serving(), [1, 2])
    assert.deepEqual([...pool.processes.values()].map(({ isDraining }) => isDraining), [false, false])
    assert.equal(pool.state.release.id, 'r1')
    assert.equal(pool.feed(deploy), null)
  })

  test('runs for no restart and for no rollback', () => {
    for (const order of [{ ...deploy, kind: 'rollback', source: { release: 'r2' } }, { ...deploy,
      kind: 'restart' }] as const)
    {
      const pool = simulate()
      pool.settle()
      pool.feed(order)
      pool.feed(prepared)
      assert.equal(pool.hook, null)
      assert.equal(pool.rollout?.state, 'rolling')
    }
  })

  test('begins after a pause, not during it', () => {
    const pool = simulate()
    pool.settle()
    pool.feed(deploy)
    pool.feed(steer('pause'))
    pool.feed(prepared)
    assert.equal(pool.hook, null)
    assert.deepEqual([pool.rollout?.state, pool.rollout?.hook?.state], ['paused', 'due'])
    pool.feed(steer('resume'))
    assert.deepEqual(pool.hook, { rollout: 1, release: 'r2', from: 'r1', isEnding: false })
    assert.equal(pool.rollout?.state, 'preparing')
  })

  test('goes on during a pause, and the workers wait for its end', () => {
    const pool = hooked()
    pool.feed(steer('pause'))
    pool.endHook()
    assert.deepEqual([pool.rollout?.state, pool.rollout?.pausedIn], ['paused', 'rolling'])
    assert.deepEqual([...pool.processes.keys()], [1, 2])
    pool.feed(steer('resume'))
    assert.deepEqual([...pool.processes.keys()], [1, 2, 3])
  })

  test('is ended by an abort, and only then the next deploy may begin', () => {
    const pool = hooked()
    pool.feed(steer('abort'))
    assert.equal(pool.hook?.isEnding, true)
    assert.equal(pool.rollout?.state, 'rolling-back')
    assert.equal(pool.feed(deploy)?.code, 'rollout-running')
    pool.endHook({ passed: false, reason: 'beforeDeploy was ended', output: 'half' })
    const { message, detail } = pool.last('rollout.rolled-back')
    assert.deepEqual([message, detail.hook.state, detail.hook.output], ['aborted by ada', 'ended', null])
    assert.deepEqual(pool.serving(), [1, 2])
    assert.equal(pool.feed(deploy), null)
  })

  test('that passes although it was to end changes nothing', () => {
    const pool = hooked()
    pool.feed(steer('abort'))
    pool.endHook({ passed: true })
    assert.ok(pool.last('rollout.rolled-back'))
    assert.deepEqual([...pool.processes.keys()], [1, 2])
  })

  test('is ended by a stop, and nobody waits for it', () => {
    const pool = hooked()
    pool.feed({ type: 'stop', actor: 'signal' })
    assert.equal(pool.hook?.isEnding, true)
    assert.equal(pool.last('rollout.failed').detail.hook.state, 'ended')
    pool.settle()
    assert.equal(pool.isFinished, true)
    pool.endHook({ passed: false, reason: 'beforeDeploy was ended' })
    assert.equal(pool.types().filter((type) => type === 'rollout.failed').length, 1)
  })

  test('keeps no worker from being replaced or added, and what is new joins the deploy', () => {
    const pool = hooked()
    pool.exit(2, { signal: 'SIGKILL' })
    pool.settle()
    pool.feed({ type: 'scale', workers: 3, actor: 'api' })
    pool.settle()
    assert.deepEqual(pool.serving().map((id) => pool.state.workers[id].release), ['r1', 'r1', 'r1'])
    pool.endHook()
    pool.settle()
    assert.deepEqual(pool.serving().map((id) => pool.state.workers[id].release), ['r2', 'r2', 'r2'])
  })
})
