import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NEW_RELEASE, simulate } from '../../support/simulation.ts'

const deploy = { type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' } as const
const restart = { type: 'rollout', kind: 'restart', actor: 'api' } as const
const isOld = ({ release }: { release: string }) => release === 'r1'

function ready (workers = 2) {
  const pool = simulate({ workers })
  pool.settle()
  return pool
}

const releases = (pool: ReturnType<typeof ready>) => pool.serving().map((id) => pool.state.workers[id]?.release ?? null)

describe('rolling deploy', () => {
  test('replaces one slot at a time, new before old', () => {
    const pool = ready(2)
    pool.feed(deploy)
    assert.deepEqual([...pool.processes.keys()], [1, 2, 3])
    assert.equal(pool.processes.get(1)?.isDraining, false)
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.equal(pool.processes.get(1)?.isDraining, true)
    assert.equal(pool.processes.get(2)?.isDraining, false)
    assert.equal(pool.last('worker.draining').cause, 'deploy')
    assert.deepEqual([...pool.processes.keys()], [1, 2, 3, 4])
    pool.settle()
    assert.deepEqual(releases(pool), ['r2', 'r2'])
    assert.equal(pool.state.release.id, 'r2')
    assert.deepEqual(pool.last('rollout.succeeded').detail.progress, { total: 2, replaced: 2 })
    assert.equal(pool.state.rollout, null)
  })

  test('ends only when the last old worker is gone', () => {
    const pool = ready(1)
    pool.feed(deploy)
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.equal(pool.rollout?.state, 'rolling')
    pool.exit(1, { code: 0 })
    assert.equal(pool.last('rollout.succeeded').detail.steps[0].state, 'done')
  })

  test('fails when the new worker dies: the old ones serve on, untouched', () => {
    const pool = ready(2)
    pool.feed(deploy)
    pool.exit(3, { code: 1 })
    const failed = pool.last('rollout.failed')
    assert.equal(failed.message, 'worker 3 (slot 1) exited with code 1 before it was ready')
    assert.equal(failed.detail.steps[0].state, 'failed')
    assert.deepEqual(pool.serving(), [1, 2])
    assert.deepEqual([...pool.processes.values()].map(({ isDraining }) => isDraining), [false, false])
    assert.equal(pool.state.release.id, 'r1')
    assert.equal(pool.state.rollout, null)
  })

  test('fails when the new worker is not ready in time, and says which option that is', () => {
    const pool = ready(1)
    pool.feed(deploy)
    while (pool.state.rollout) pool.passNextDeadline()
    assert.match(pool.last('rollout.failed').message,
      /^worker 2 \(slot 1\) was not ready within 30 s \(option ready\.timeoutMs\)$/)
    assert.deepEqual(pool.serving(), [1])
  })

  test('takes back what was already replaced, new before old again', () => {
    const pool = ready(3)
    pool.feed(deploy)
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.feed({ type: 'worker-ready', worker: 5 })
    pool.exit(6, { code: 1 })
    assert.equal(pool.rollout?.state, 'rolling-back')
    assert.equal(pool.processes.get(4)?.isDraining, false)
    pool.settle()
    assert.deepEqual(releases(pool), ['r1', 'r1', 'r1'])
    assert.equal(pool.last('rollout.rolled-back').detail.progress.replaced, 0)
    assert.deepEqual(pool.last('rollout.rolled-back').detail.steps.map(({ state }) => state), ['reverted', 'reverted',
      'failed'])
    assert.equal(pool.last('worker.draining').cause, 'rollback')
  })

  test('brings a slot that waits to go back onto the old release, should its worker die meanwhile', () => {
    const pool = ready(3)
    pool.feed(deploy)
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.feed({ type: 'worker-ready', worker: 5 })
    pool.exit(6, { code: 1 })
    pool.exit(5, { signal: 'SIGKILL' })
    assert.equal([...pool.processes.values()].at(-1)?.release, 'r1')
  })

  test('leaves a slot on the new release where the old one will not come back', () => {
    const pool = ready(2)
    pool.feed(deploy)
    pool.feed({ type: 'worker-ready', worker: 3 })
    pool.exit(4, { code: 1 })
    const back = Math.max(...pool.processes.keys())
    pool.exit(back, { code: 1 })
    assert.equal(pool.state.rollout, null)
    assert.deepEqual(releases(pool), ['r2', 'r1'])
    assert.equal(pool.state.slots[0].release, 'r2')
  })

  test('fails when a worker that it has already put into service crashes, but not when somebody kills it', () => {
    for (const [exit, outcome] of [[{ code: 1 }, 'rollout.rolled-back'], [{ signal: 'SIGKILL' },
      'rollout.succeeded']] as const)
    {
      const pool = ready(2)
      pool.feed(deploy)
      pool.feed({ type: 'worker-ready', worker: 3 })
      pool.exit(3, exit)
      pool.settle()
      assert.ok(pool.last(outcome), `${JSON.stringify(exit)} ends in ${outcome}`)
      assert.deepEqual(releases(pool), outcome === 'rollout.rolled-back' ? ['r1', 'r1'] : ['r2', 'r2'])
    }
  })

  test('replaces a worker that dies meanwhile on its own slot\'s release', () => {
    const pool = ready(2)
    pool.feed(deploy)
    pool.exit(2, { signal: 'SIGKILL' })
    assert.equal(pool.processes.get(4)?.release, 'r1')
    pool.exit(1, { signal: 'SIGKILL' })
    assert.equal(pool.processes.get(5)?.release, 'r1')
    pool.settle()
    assert.deepEqual(releases(pool), ['r2', 'r2'])
    assert.equal(pool.processes.size, 2)
  })

  test('brings a slot in a backoff onto the new release without waiting for it', () => {
    const pool = ready(1)
    pool.exit(1, { code: 1 })
    pool.exit(2, { code: 1 })
    pool.feed(deploy)
    pool.settle()
    assert.deepEqual(releases(pool), ['r2'])
    assert.equal(pool.state.slots[0].retryAt, null)
    assert.equal([...pool.deadlines.keys()].includes('retry:1'), false)
  })
})

describe('restart-all', () => {
  test('has every new worker ready before any old one drains', () => {
    const pool = ready(3)
    pool.feed(restart)
    assert.equal(pool.processes.size, 6)
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.feed({ type: 'worker-ready', worker: 5 })
    assert.equal([...pool.processes.values()].some(({ isDraining }) => isDraining), false)
    pool.feed({ type: 'worker-ready', worker: 6 })
    assert.deepEqual(pool.serving(), [4, 5, 6])
    pool.settle()
    assert.deepEqual([...pool.processes.keys()], [4, 5, 6])
    assert.equal(pool.last('rollout.succeeded').detail.from, 'r1')
  })

  test('changes nothing when one of them dies: the others go again', () => {
    const pool = ready(2)
    pool.feed(restart)
    pool.feed({ type: 'worker-ready', worker: 3 })
    pool.exit(4, { code: 1 })
    pool.settle()
    assert.deepEqual(pool.serving(), [1, 2])
    assert.deepEqual([...pool.processes.keys()], [1, 2])
    assert.ok(pool.last('rollout.failed'))
  })

  test('of one worker replaces that one alone', () => {
    const pool = ready(2)
    pool.feed({ type: 'restart-worker', worker: 2, actor: 'api' })
    pool.settle()
    assert.deepEqual(pool.serving(), [1, 3])
    assert.equal(pool.feed({ type: 'restart-worker', worker: 2, actor: 'api' })?.code, 'not-found')
  })
})

describe('one at a time', () => {
  test('a second rollout and a single restart are refused, naming the one that runs', () => {
    const pool = ready(2)
    pool.feed(deploy)
    const before = pool.events.length
    for (const command of [deploy, restart, { type: 'restart-worker', worker: 1, actor: 'api' }] as const) {
      const refusal = pool.feed(command)
      assert.deepEqual([refusal?.code, refusal?.message, refusal?.details], ['rollout-running',
        'rollout 1 (deploy) is running', { rollout: 1 }])
    }
    assert.equal(pool.events.length, before)
  })

  test('a stop ends a rollout as failed, and everything drains', () => {
    const pool = ready(2)
    pool.feed(deploy)
    pool.feed({ type: 'stop', actor: 'signal' })
    assert.equal(pool.last('rollout.failed').message, 'the master is stopping')
    pool.settle()
    assert.equal(pool.isFinished, true)
  })

  test('a release that never works leaves every slot on the old one', () => {
    const pool = ready(4)
    for (let time = 0; time < 3; time++) {
      pool.feed(deploy)
      pool.settle({ isHealthy: isOld })
    }
    assert.deepEqual(releases(pool), ['r1', 'r1', 'r1', 'r1'])
    assert.deepEqual(pool.serving(), [1, 2, 3, 4])
  })
})
