import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, simulate } from '../../support/simulation.ts'

type Pool = ReturnType<typeof simulate>

const HEAVY = Object.freeze({ bootCost: { cpuMs: 9000, activeMs: 9000 }, cpus: 2 })

const states = (pool: Pool) => snapshotOf(pool.state).workers.map(({ slot, state }) => `${slot} ${state}`)
const starting = (pool: Pool) =>
  Object.values(pool.state.workers).filter(({ state }) => state === 'starting').map(({ id }) => id)

describe('the time to get ready', () => {
  test('is longer by what a worker has spent waiting for a CPU, and by that alone', () => {
    const pool = simulate({ workers: 1 })
    const begunAt = pool.at
    pool.passNextDeadline({ starvedMs: 20_000 })
    pool.passNextDeadline({ starvedMs: 5000 })
    assert.deepEqual([starting(pool), pool.at - begunAt], [[1], 50_000])
    pool.passNextDeadline()
    assert.equal(pool.at - begunAt, 55_000)
    assert.equal(pool.last('worker.draining').message,
      'worker 1 (slot 1) was not ready within 30 s (option ready.timeoutMs) and another 25 s, in which it waited for a CPU')
  })

  test('is ten times the limit at most', () => {
    const pool = simulate({ workers: 1 })
    const begunAt = pool.at
    while (pool.state.workers[1]?.state === 'starting') pool.passNextDeadline({ starvedMs: 30_000 })
    assert.equal(pool.at - begunAt, 300_000)
  })

  test('is as long for the new workers of a rollout, which does not fail for want of progress meanwhile', () => {
    const pool = simulate({ workers: 1, options: { ...OPTIONS, rollout: { progressDeadlineMs: 35_000 } } })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'test' })
    const isWaiting = () => pool.state.workers[2]?.state === 'starting'
    for (let more = 0; more < 3 && isWaiting();) {
      const [next] = [...pool.deadlines.values()].sort((a, b) => a.dueAt - b.dueAt)
      if (next.deadline === 'ready') more++
      pool.passNextDeadline(next.deadline === 'ready' ? { starvedMs: 30_000 } : {})
    }
    assert.ok(isWaiting())
    pool.settle()
    assert.equal(pool.last('rollout.succeeded').detail.state, 'succeeded')
  })

  test('begins anew for a worker that was on standby', () => {
    const pool = simulate({ workers: 1, options: { ...OPTIONS, standby: 1 } })
    pool.settle()
    const standby = Object.values(pool.state.workers).find(({ slot }) => slot === null)?.id ?? 0
    pool.exit(1, { code: 1 })
    while (pool.state.workers[standby]?.state === 'starting') pool.passNextDeadline({ starvedMs: 30_000 })
    assert.match(pool.last('worker.draining').message, /another 270 s/)
  })
})

describe('a worker that was never ready', () => {
  test('is not waited for as one that drains: it has no connections', () => {
    const pool = simulate({ workers: 1 })
    pool.passNextDeadline()
    assert.equal(Number(pool.deadlines.get('drain:1')?.dueAt) - pool.at, 1000)
  })

  test('is waited for where it listens, as somebody may be served; also where that was on its way when it was told to go', () => {
    const listening = { type: 'worker-listening', worker: 1, url: 'http://localhost:3000', isFixed: true } as const
    for (const order of ['before', 'after']) {
      const pool = simulate({ workers: 2, options: { ...OPTIONS, ready: { ...OPTIONS.ready, signal: 'message' } } })
      if (order === 'before') pool.feed(listening)
      pool.feed({ type: 'stop', actor: 'test' })
      if (order === 'after') pool.feed(listening)
      assert.deepEqual([1, 2].map((id) => Number(pool.deadlines.get(`drain:${id}`)?.dueAt) - pool.at), [30_000, 1000],
        order)
    }
  })

  test('is not waited for where it listens but is held back until its app has answered', () => {
    const pool = simulate({ workers: 1, options: { ...OPTIONS, ready: { ...OPTIONS.ready, path: '/health' } } })
    pool.feed({ type: 'worker-listening', worker: 1, url: 'http://localhost:3000', isFixed: true })
    pool.feed({ type: 'stop', actor: 'test' })
    assert.equal(Number(pool.deadlines.get('drain:1')?.dueAt) - pool.at, 1000)
  })
})

describe('workers that take much CPU to start', () => {
  test('start as many at a time as there are CPUs for them, and are shown as queued until then', () => {
    const pool = simulate({ workers: 4, start: HEAVY })
    assert.deepEqual(states(pool), ['1 starting', '2 starting', '3 queued', '4 queued'])
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.deepEqual(states(pool), ['1 starting', '2 ready', '3 starting', '4 queued'])
    pool.settle()
    assert.deepEqual([pool.ready(), pool.state.phase], [4, 'running'])
  })

  for (const [what, start, count] of [['that is not known', { cpus: 1 }, 4], ['that is short', { cpus: 1,
    bootCost: { cpuMs: 999, activeMs: 999 } }, 4], ['that is one third waiting for something else', { cpus: 2,
    bootCost: { cpuMs: 2000, activeMs: 3000 } }, 3], ['that keeps two CPUs busy each', { cpus: 2,
    bootCost: { cpuMs: 8000, activeMs: 4000 } }, 1]] as const)
  {
    test(`of a start ${what} ${count} of 4 are begun at once`, () => {
      assert.equal(starting(simulate({ workers: 4, start })).length, count)
    })
  }

  test('are known by the one that was ready last, without what it has waited for a CPU', () => {
    const pool = simulate({ workers: 1, start: { cpus: 1 } })
    pool.wait(10_000)
    pool.feed({ type: 'worker-ready', worker: 1, boot: { cpuMs: 4000, starvedMs: 6000 } })
    assert.deepEqual(pool.last('worker.ready').detail, { boot: { cpuMs: 4000, activeMs: 4000 } })
    pool.feed({ type: 'scale', workers: 4, actor: 'test' })
    assert.equal(starting(pool).length, 1)
  })

  for (const kind of ['restart', 'deploy'] as const) {
    test(`take turns in a ${kind} too`, () => {
      const pool = simulate({ workers: 4, start: HEAVY, options: { ...OPTIONS, rollout: { surge: 4 } } })
      pool.settle()
      pool.feed({ type: 'rollout', kind, ...(kind === 'deploy' && { release: NEW_RELEASE }), actor: 'test' })
      assert.equal(starting(pool).length, 2)
      pool.feed({ type: 'worker-ready', worker: starting(pool)[0] })
      assert.equal(starting(pool).length, 2)
      pool.settle()
      assert.equal(pool.last('rollout.succeeded').detail.state, 'succeeded')
    })
  }
})

describe('where no worker has ever been ready', () => {
  const start = { hasBeenReady: false }

  test('the first one starts alone, and the others once it is ready', () => {
    const pool = simulate({ workers: 3, start })
    assert.deepEqual(states(pool), ['1 starting', '2 queued', '3 queued'])
    pool.feed({ type: 'worker-ready', worker: 1 })
    assert.deepEqual(states(pool), ['1 ready', '2 starting', '3 starting'])
    pool.settle()
    assert.equal(pool.state.phase, 'running')
  })

  test('one that fails is tried again alone, by the usual backoff', () => {
    const pool = simulate({ workers: 3, start })
    for (const worker of [1, 2]) pool.exit(worker, { code: 1 })
    assert.deepEqual(states(pool), ['1 backoff', '2 queued', '3 queued'])
    pool.passNextDeadline()
    assert.deepEqual(states(pool), ['1 starting', '2 queued', '3 queued'])
    pool.settle()
    assert.equal(pool.ready(), 3)
  })

  test('all start at once with start.first all, where programs end by themselves, and beside workers that a master has left', () => {
    assert.equal(starting(simulate({ workers: 3, start, options: { ...OPTIONS, start: { first: 'all' } } })).length, 3)
    assert.equal(
      starting(
        simulate({ workers: 3, start, options: { ...OPTIONS, restart: { ...OPTIONS.restart, policy: 'never' } } })
      ).length,
      3
    )
  })
})

describe('hooks.beforeStart', () => {
  test('comes before the first worker, with which the start goes on; until then nothing is rolled out', () => {
    const pool = simulate({ workers: 2, hasHook: true })
    assert.deepEqual([states(pool), pool.hook?.release], [['1 queued', '2 queued'], 'r1'])
    assert.equal(pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })?.code, 'starting')
    assert.equal(pool.feed({ type: 'scale', workers: 3, actor: 'test' }), null)
    assert.deepEqual(states(pool), ['1 queued', '2 queued', '3 queued'])
    pool.feed({ type: 'start-hook-passed' })
    assert.deepEqual(states(pool), ['1 starting', '2 starting', '3 starting'])
  })

  test('a stop during it ends the start', () => {
    const pool = simulate({ workers: 2, hasHook: true })
    pool.feed({ type: 'stop', actor: 'test' })
    assert.equal(pool.isFinished, true)
    pool.feed({ type: 'start-hook-passed' })
    assert.equal(pool.processes.size, 0)
  })
})

describe('the turn of an app among those of its host', () => {
  test('comes before its first worker, and nothing is rolled out until then', () => {
    const pool = simulate({ workers: 2, awaitsTurn: 'others start first' })
    assert.deepEqual(states(pool), ['1 queued', '2 queued'])
    assert.deepEqual(pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' }), { code: 'starting',
      message: 'others start first' })
    assert.equal(pool.feed({ type: 'scale', workers: 3, actor: 'test' }), null)
    pool.feed({ type: 'turn-came' })
    assert.deepEqual(states(pool), ['1 starting', '2 starting', '3 starting'])
  })

  test('a stop before it ends the start', () => {
    const pool = simulate({ workers: 2, awaitsTurn: 'others start first' })
    pool.feed({ type: 'stop', actor: 'test' })
    assert.equal(pool.isFinished, true)
    pool.feed({ type: 'turn-came' })
    assert.equal(pool.processes.size, 0)
  })

  test('brings what is known of the release by then, and the hook that has waited for it', () => {
    const pool = simulate({ workers: 1, awaitsTurn: 'its secrets are not known' })
    const { release } = pool.state
    pool.feed({ type: 'turn-came', release: { ...release, environmentChanged: true }, hasHook: true })
    assert.deepEqual([pool.state.release.environmentChanged, pool.state.releases[release.id].environmentChanged,
      states(pool)], [true, true, ['1 queued']])
    pool.feed({ type: 'start-hook-passed' })
    assert.deepEqual(states(pool), ['1 starting'])
  })
})
