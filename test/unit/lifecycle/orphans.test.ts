import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, orphan, simulate } from '../../support/simulation.ts'
import type { Orphan } from '../../../server/lifecycle/state.ts'

type Pool = ReturnType<typeof simulate>

const GONE = { code: null, signal: null }
const rowOf = (pool: Pool, id: number) => snapshotOf(pool.state).workers.find((row) => row.id === id)
const of = (pool: Pool, id: number) => pool.events.filter(({ worker }) => worker === id)
const exitOf = (pool: Pool, id: number) => of(pool, id).find(({ type }) => type === 'worker.exited')!

describe('orphans', () => {
  test('one that serves goes on until its slot has a ready worker, and counts as ready until then', () => {
    const pool = simulate({ workers: 2, orphans: [orphan({ id: 1 }), orphan({ id: 2 })] })
    assert.deepEqual(pool.serving(), [3, 4])
    assert.equal(snapshotOf(pool.state).readyWorkers, 2)
    assert.equal(snapshotOf(pool.state).state, 'starting')
    assert.equal(rowOf(pool, 1)?.orphan, true)
    assert.deepEqual(of(pool, 1).map(({ type, cause, slot, pid }) => [type, cause, slot, pid]), [['worker.orphaned',
      'master-lost', 1, 1001]])

    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual([rowOf(pool, 1)?.state, rowOf(pool, 2)?.state], ['draining', 'ready'])
    assert.equal(snapshotOf(pool.state).readyWorkers, 2)
    pool.settle()
    assert.deepEqual(of(pool, 1).map(({ type }) => type), ['worker.orphaned', 'worker.draining', 'worker.exited'])
    assert.equal(exitOf(pool, 1).cause, 'master-lost')
    assert.equal(snapshotOf(pool.state).state, 'running')
    assert.deepEqual([...pool.processes.keys()], [3, 4])
  })

  test('one that does not drain is terminated and killed after the usual times', () => {
    const pool = simulate({ workers: 1, orphans: [orphan({ id: 1 })] })
    pool.feed({ type: 'worker-ready', worker: 2 })
    const process = pool.processes.get(1)
    const drainedAt = pool.at
    pool.passNextDeadline()
    assert.deepEqual([pool.at - drainedAt, process?.isTerminated], [30_000, true])
    pool.passNextDeadline()
    assert.deepEqual([pool.at - drainedAt, process?.isKilled], [35_000, true])
  })

  for (const exit of [GONE, { code: 1, signal: null }]) {
    test(`one that was starting is on its way out from the first moment, and ends with its master: ${JSON.stringify(exit)}`, () => {
      const pool = simulate({ workers: 1, orphans: [orphan({ id: 1, state: 'starting', readyAt: null })] })
      assert.equal(rowOf(pool, 1)?.state, 'draining')
      assert.equal(pool.processes.get(1)?.isDraining, true)
      assert.ok(pool.deadlines.has('drain:1'))
      assert.equal(snapshotOf(pool.state).readyWorkers, 0)
      pool.exit(1, exit)
      assert.equal(exitOf(pool, 1).cause, 'master-lost')
    })
  }

  for (const state of ['draining', 'stopping'] as const) {
    test(`one that was ${state} is told once more, watched, and ends for the reason that the dead master had`, () => {
      const pool = simulate({ workers: 1,
        orphans: [orphan({ id: 1, state, intent: { cause: 'deploy', actor: 'api', rollout: 7 } })] })
      assert.equal(pool.processes.get(1)?.isDraining, true)
      assert.ok(pool.deadlines.has('drain:1'))
      pool.settle()
      const { cause, actor, rollout } = exitOf(pool, 1)
      assert.deepEqual([cause, actor, rollout], ['deploy', 'api', 7])
    })
  }

  const ends: [string, Partial<Orphan>, string][] = [['nobody saw', { exit: GONE }, 'master-lost'], ['a signal brought',
    { exit: { code: null, signal: 'SIGKILL' } }, 'killed'], ['an error brought', {
    exit: { code: 1, signal: null, error: { errorName: 'Error', errorMessage: 'boom', stack: null } }
  }, 'crash'], ['of its own accord, with nobody to serve for', { exit: { code: 0, signal: null } }, 'master-lost'], [
    'that left only a crash note',
    { exit: { ...GONE, error: { errorName: 'Error', errorMessage: 'boom', stack: null } } },
    'crash'
  ], ['before it was ready', { state: 'starting', readyAt: null, exit: { code: 1, signal: null } }, 'master-lost'], [
    'that was meant',
    { state: 'stopping', intent: { cause: 'scale-down', actor: 'api', rollout: null },
      exit: { code: 0, signal: null } },
    'scale-down'
  ]]
  for (const [how, fields, cause] of ends) {
    test(`an end ${how}, between two masters, is told once, with cause ${cause}`, () => {
      const pool = simulate({ workers: 1, orphans: [orphan({ id: 1, ...fields })] })
      assert.deepEqual(of(pool, 1).map(({ type }) => type), ['worker.exited'])
      assert.equal(exitOf(pool, 1).cause, cause)
      assert.deepEqual([...pool.processes.keys()], [2])
      assert.equal(pool.state.slots[0].restarts, 0, 'it is the old master\'s loss')
    })
  }

  test('one that dies before its replacement is ready leaves the slot unserved, and counts against nobody', () => {
    const pool = simulate({ workers: 2, orphans: [orphan({ id: 1 }), orphan({ id: 2 })] })
    pool.exit(1, { signal: 'SIGKILL' })
    assert.equal(exitOf(pool, 1).cause, 'killed')
    assert.equal(snapshotOf(pool.state).readyWorkers, 1)
    assert.deepEqual(pool.serving(), [3, 4], 'its replacement is starting already')
    assert.equal(pool.types().includes('worker.restarted'), false)
    assert.equal(pool.state.slots[0].record.attempt, 0)
  })

  test('it goes on while its replacement never gets ready; the slot shows both, and the retries', () => {
    const pool = simulate({ workers: 1, orphans: [orphan({ id: 1 })] })
    for (let death = 0; death < 6; death++) {
      pool.exit(pool.serving()[0], { code: 1 })
      const { readyWorkers, state, workers } = snapshotOf(pool.state)
      assert.deepEqual([readyWorkers, state], [1, 'starting'])
      assert.deepEqual(workers[0].id, 1)
      assert.deepEqual([workers[0].state, workers[1].state], ['ready',
        pool.serving()[0] === 0 ? 'backoff' : 'starting'])
      if (pool.serving()[0] === 0) pool.passNextDeadline()
    }
    assert.equal(pool.types().filter((type) => type === 'worker.crash-looping').length, 1)
    assert.equal(pool.processes.get(1)?.isDraining, false)
    pool.settle()
    assert.deepEqual([...pool.processes.keys()], pool.serving())
  })

  test('a replacement that is not ready in time is replaced itself, and the orphan goes on', () => {
    const pool = simulate({ workers: 1, orphans: [orphan({ id: 1 })] })
    pool.passNextDeadline()
    assert.equal(of(pool, 2).find(({ type }) => type === 'worker.draining')?.cause, 'boot-failure')
    assert.equal(rowOf(pool, 1)?.state, 'ready')
  })

  test('all of a slot go once it has one ready worker, and none of another slot', () => {
    const pool = simulate({ workers: 2,
      orphans: [orphan({ id: 1, slot: 1 }), orphan({ id: 2, slot: 1, release: 'r2' }), orphan({ id: 3, slot: 2 })] })
    assert.equal(snapshotOf(pool.state).readyWorkers, 2, 'two on one slot count once')
    pool.feed({ type: 'worker-ready', worker: 4 })
    assert.deepEqual([1, 2, 3].map((id) => rowOf(pool, id)?.state), ['draining', 'draining', 'ready'])
  })

  test('those of slots that are no longer wanted help until every slot has its worker', () => {
    const pool = simulate({ workers: 1, orphans: [orphan({ id: 1 }), orphan({ id: 2 }), orphan({ id: 3 })] })
    assert.deepEqual(pool.serving(), [4])
    assert.equal(snapshotOf(pool.state).desiredWorkers, 1)
    assert.equal(snapshotOf(pool.state).readyWorkers, 1)
    assert.deepEqual([1, 2, 3].map((id) => rowOf(pool, id)?.state), ['ready', 'ready', 'ready'])
    pool.settle()
    assert.deepEqual([...pool.processes.keys()], [4])
    assert.deepEqual([2, 3].map((id) => exitOf(pool, id).cause), ['master-lost', 'master-lost'])
  })

  test('a scale-down while they serve leaves them until the smaller cluster is whole, a scale-up until the larger one is', () => {
    const orphans = [orphan({ id: 1 }), orphan({ id: 2 })]
    const smaller = simulate({ workers: 2, orphans })
    smaller.feed({ type: 'scale', workers: 1, actor: 'api' })
    assert.deepEqual([rowOf(smaller, 2)?.state, rowOf(smaller, 4)?.state], ['ready', 'draining'])
    smaller.settle()
    assert.deepEqual([...smaller.processes.keys()], [3])
    assert.deepEqual([exitOf(smaller, 2).cause, exitOf(smaller, 4).cause], ['master-lost', 'scale-down'])

    const larger = simulate({ workers: 1, orphans })
    larger.feed({ type: 'scale', workers: 2, actor: 'api' })
    larger.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual([rowOf(larger, 1)?.state, rowOf(larger, 2)?.state], ['draining', 'ready'])
  })

  test('a deploy while they serve lets the orphan of a slot go as soon as the new release serves there, whatever the other slots do', () => {
    const pool = simulate({ workers: 2, orphans: [orphan({ id: 1 }), orphan({ id: 2 })] })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    const { candidate } = pool.state.slots[0]
    pool.feed({ type: 'worker-ready', worker: Number(candidate) })
    assert.equal(pool.serving()[0], candidate)
    assert.deepEqual([rowOf(pool, 1)?.state, rowOf(pool, 2)?.state], ['draining', 'ready'])
    assert.equal(snapshotOf(pool.state).state, 'starting')
    pool.settle()
    assert.equal(pool.last('rollout.succeeded').release, 'r2')
    assert.deepEqual([...pool.processes.keys()], pool.serving())
  })

  test('a deploy of a release that does not start leaves them until the old release is back', () => {
    const pool = simulate({ workers: 2, orphans: [orphan({ id: 1 }), orphan({ id: 2 })] })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.exit(pool.state.slots[0].candidate ?? 0, { code: 1 })
    assert.ok(pool.last('rollout.failed'))
    assert.equal(snapshotOf(pool.state).readyWorkers, 2)
    pool.settle()
    assert.deepEqual(pool.state.slots.map(({ release }) => release), ['r1', 'r1'])
    assert.deepEqual([...pool.processes.keys()], pool.serving())
  })

  test('none can be restarted by itself, and what is asked in vain changes nothing', () => {
    const pool = simulate({ workers: 1, orphans: [orphan({ id: 1 })] })
    assert.equal(pool.feed({ type: 'restart-worker', worker: 1, actor: 'api' })?.code, 'not-found')
    assert.equal(rowOf(pool, 1)?.state, 'ready')
  })

  test('a stop drains them too, those on their way keep their reason, and it ends with the last of them', () => {
    const pool = simulate({ workers: 1,
      orphans: [orphan({ id: 1 }),
        orphan({ id: 2, state: 'draining', intent: { cause: 'deploy', actor: 'api', rollout: 3 } })] })
    pool.feed({ type: 'stop', actor: 'signal' })
    assert.equal(pool.processes.get(1)?.isDraining, true)
    pool.exit(3, { code: 0 })
    pool.exit(2, { code: 0 })
    assert.equal(pool.isFinished, false)
    pool.exit(1, { code: 0 })
    assert.equal(pool.isFinished, true)
    assert.deepEqual([1, 2, 3].map((id) => exitOf(pool, id).cause), ['shutdown', 'deploy', 'shutdown'])
  })

  test('the time that one was up counts from its own start, and a clock that was set back makes it 0', () => {
    const before = simulate({ workers: 1, orphans: [orphan({ id: 1, startedAt: new Date(-59_000).toISOString() })] })
    before.exit(1, { code: 0 })
    assert.equal(exitOf(before, 1).uptimeMs, 60_000)
    const ahead = simulate({ workers: 1, orphans: [orphan({ id: 1, startedAt: new Date(3_600_000).toISOString() })] })
    ahead.exit(1, { code: 0 })
    assert.equal(exitOf(ahead, 1).uptimeMs, 0)
  })
})
