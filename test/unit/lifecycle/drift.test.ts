import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, simulate } from '../../support/simulation.ts'
import type { Drift, LifecycleOptions } from '../../../server/lifecycle/state.ts'

const DRIFT: Record<string, Drift> = {
  r1: { kind: 'code', count: 7, files: ['/srv/r1/a.js', '/srv/r1/b.js'], since: null, by: null }
}
const HOLD: LifecycleOptions = { ...OPTIONS, releases: { onDrift: 'hold' } }
const due = (
  worker: number
) => ({ type: 'worker-due', worker, cause: 'memory-limit', message: `worker ${worker} is too large` } as const)

/** All slots serve, and then files change. */
function drifted ({ workers = 2, options = OPTIONS } = {}) {
  const pool = simulate({ workers, options })
  pool.settle()
  assert.equal(pool.last('worker.drifted'), undefined)
  pool.drift = DRIFT
  return pool
}

const rows = (pool: ReturnType<typeof simulate>) =>
  snapshotOf(pool.state).workers.map(({ id, state, drifted }) => [id, state, drifted])

describe('a release that has drifted', () => {
  for (const [name, act] of [['a death', (pool) => pool.exit(1, { signal: 'SIGKILL' })], ['an exception',
    (pool) => pool.feed({ type: 'worker-crashing', worker: 1, errorName: 'Error', errorMessage: 'no' })], ['a hang',
    (pool) => pool.feed({ type: 'worker-silent', worker: 1, message: 'it hangs' })], ['an operator\'s kill',
    (pool) => pool.feed({ type: 'kill-worker', worker: 1, actor: 'api' })], ['recycling', (pool) => pool.feed(due(1))],
    ['a restart of one', (pool) => pool.feed({ type: 'restart-worker', worker: 1, actor: 'api' })], ['a scale-up',
    (pool) => pool.feed({ type: 'scale', workers: 3, actor: 'api' })]] as [string,
      (pool: ReturnType<typeof simulate>) => void][])
  {
    test(`marks the worker that is forked after ${name}`, () => {
      const pool = drifted()
      act(pool)
      const event = pool.last('worker.drifted')
      assert.deepEqual([event.worker, event.release, event.detail], [3, 'r1', DRIFT.r1])
      assert.match(event.message,
        /^worker 3 \(slot [13]\) does not run what r1 was: files of r1 changed after its deploy: \/srv\/r1\/a\.js, \/srv\/r1\/b\.js and 5 more$/)
      pool.settle()
      assert.deepEqual(rows(pool).filter(([, , isDrifted]) => isDrifted), [[3, 'ready', true]])
    })
  }

  test('marks all workers of a restart, and none of a deploy', () => {
    const pool = drifted()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
    pool.settle()
    assert.deepEqual(rows(pool), [[3, 'ready', true], [4, 'ready', true]])
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.settle()
    assert.deepEqual(rows(pool), [[5, 'ready', false], [6, 'ready', false]])
  })

  test('marks a replacement that comes after a backoff by what is so then', () => {
    const pool = drifted({ workers: 1 })
    pool.drift = {}
    pool.exit(1, { code: 1 })
    pool.exit(2, { code: 1 })
    assert.equal(pool.state.slots[0].serving, null)
    pool.drift = DRIFT
    pool.passNextDeadline()
    assert.deepEqual(rows(pool), [[3, 'starting', true]])
  })
})

describe('a release of whose folder other files have changed', () => {
  type Drifts = Record<string, Drift>
  const FOLDER: Drifts = {
    r1: { kind: 'folder', count: 3, files: ['.next/BUILD_ID', 'app.db'], since: null, by: null }
  }
  const UNKNOWN: Drifts = { r1: { kind: 'unknown', count: 0, files: [], since: null, by: null } }
  const CAVEAT =
    'r1 may not be what it was: 3 files of its folder have changed since its deploy: .next/BUILD_ID, app.db and 1 more'
  const NOT_KNOWN =
    'r1 may not be what it was: it is not known whether files of its folder have changed since its deploy'

  /** A deploy has replaced one of two workers. */
  function halfDeployed (options: LifecycleOptions = OPTIONS) {
    const pool = simulate({ workers: 2, options })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.feed({ type: 'worker-ready', worker: 3 })
    return pool
  }

  for (const options of [OPTIONS, HOLD]) {
    test(`comes back after a failed deploy, which says so, with releases.onDrift ${options.releases?.onDrift ?? 'mark'}`, () => {
      for (const [drift, caveat] of [[FOLDER, CAVEAT], [UNKNOWN, NOT_KNOWN]] as const) {
        const pool = halfDeployed(options)
        pool.drift = drift
        pool.settle({ isHealthy: ({ release }) => release === 'r1' })
        const { release, message } = pool.last('rollout.rolled-back')
        assert.ok(release === 'r2' && message.endsWith(`; ${caveat}`), message)
        assert.deepEqual(pool.state.slots.map((slot) => slot.release), ['r1', 'r1'])
      }
    })
  }

  test('says nothing of it where no slot goes back', () => {
    const pool = simulate({ workers: 2 })
    pool.settle()
    pool.drift = FOLDER
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.settle({ isHealthy: ({ release }) => release === 'r1' })
    assert.doesNotMatch(pool.last('rollout.failed').message, /may not be/)
  })

  test('can be rolled back to, with a warning', () => {
    const pool = halfDeployed()
    pool.settle()
    pool.drift = FOLDER
    pool.feed({ type: 'rollout', kind: 'rollback', source: { release: 'r1' }, actor: 'api' })
    pool.feed({ type: 'release-prepared', rollout: 2, release: { ...NEW_RELEASE, id: 'r1' } })
    pool.settle()
    const { message, detail } = pool.last('rollout.succeeded')
    assert.deepEqual([message, detail.warnings, pool.state.release.id], [CAVEAT, [CAVEAT], 'r1'])
  })

  test('marks its next workers, and no worker where nothing is known', () => {
    for (const [drift, isMarked] of [[FOLDER, true], [UNKNOWN, false]] as const) {
      const pool = simulate({ workers: 1, options: HOLD })
      pool.settle()
      pool.drift = drift
      pool.exit(1, { signal: 'SIGKILL' })
      assert.equal(pool.last('worker.drifted')?.message, isMarked
        ? 'worker 2 (slot 1) may not run what r1 was: 3 files of its folder have changed since its deploy: .next/BUILD_ID, app.db and 1 more'
        : undefined)
      pool.settle()
      assert.deepEqual(rows(pool), [[2, 'ready', isMarked]])
    }
  })
})

describe('releases.onDrift: hold', () => {
  for (const [name, act] of [['a death', (pool) => pool.exit(1, { signal: 'SIGKILL' })], ['an exception', (pool) => {
    pool.feed({ type: 'worker-crashing', worker: 1, errorName: 'Error', errorMessage: 'no' })
    pool.exit(1, { code: 1 })
  }], ['a hang', (pool) => {
    pool.feed({ type: 'worker-silent', worker: 1, message: 'it hangs' })
    pool.settle()
  }], ['an operator\'s kill', (pool) => {
    pool.feed({ type: 'kill-worker', worker: 1, actor: 'api' })
    pool.settle()
  }]] as [string, (pool: ReturnType<typeof simulate>) => void][]) {
    test(`holds the slot after ${name}, until the files are back`, () => {
      const pool = drifted({ options: HOLD })
      act(pool)
      assert.deepEqual(rows(pool), [[null, 'held', true], [2, 'ready', false]])
      const event = pool.last('slot.held')
      assert.deepEqual([event.slot, event.release, event.detail], [1, 'r1', DRIFT.r1])
      const heldAt = pool.at
      for (let look = 0; look < 3; look++) assert.ok(pool.passNextDeadline())
      assert.equal(pool.at - heldAt, 6000)
      assert.equal(pool.types().filter((type) => type === 'slot.held').length, 1, 'it is said once')
      pool.drift = {}
      pool.passNextDeadline()
      assert.equal(pool.last('slot.resumed').slot, 1)
      pool.settle()
      assert.deepEqual(rows(pool), [[3, 'ready', false], [2, 'ready', false]])
      assert.equal(pool.state.slots[0].blocked, null)
    })
  }

  test('a deploy ends it', () => {
    const pool = drifted({ options: HOLD })
    pool.exit(1, { code: 1 })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.settle()
    assert.deepEqual(rows(pool), [[3, 'ready', false], [4, 'ready', false]])
    assert.deepEqual([pool.state.slots[0].blocked, pool.state.release.id], [null, 'r2'])
    assert.equal(pool.deadlines.has('retry:1'), false)
    assert.equal(pool.last('rollout.succeeded').release, 'r2')
  })

  test('a deploy that fails leaves the slot waiting', () => {
    const pool = drifted({ options: HOLD })
    pool.exit(1, { code: 1 })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.settle({ isHealthy: ({ release }) => release === 'r1' })
    assert.equal(pool.last('rollout.failed').release, 'r2')
    assert.deepEqual(rows(pool), [[null, 'held', true], [2, 'ready', false]])
    assert.ok(pool.deadlines.has('retry:1'))
  })

  test('a scale-up waits, and a scale-down or a stop takes the slot away', () => {
    const pool = drifted({ options: HOLD })
    pool.feed({ type: 'scale', workers: 3, actor: 'api' })
    assert.deepEqual(rows(pool)[2], [null, 'held', true])
    pool.feed({ type: 'scale', workers: 2, actor: 'api' })
    assert.deepEqual([rows(pool).length, pool.deadlines.has('retry:3')], [2, false])
    pool.exit(1, { code: 1 })
    pool.feed({ type: 'stop', actor: 'api' })
    pool.settle()
    assert.equal(pool.isFinished, true)
  })

  for (const command of [{ type: 'rollout', kind: 'restart', actor: 'api' }, { type: 'restart-worker', worker: 1,
    actor: 'api' }, { type: 'upgrade', execPath: null, actor: 'api' }] as const)
  {
    test(`refuses ${'kind' in command ? command.kind : command.type}, and says why`, () => {
      const pool = drifted({ options: HOLD })
      const { code, message, details } = pool.feed(command)!
      assert.deepEqual([code, details], ['drifted', { release: 'r1', ...DRIFT.r1 }])
      assert.match(message,
        /files of r1 changed after its deploy: \/srv\/r1\/a\.js.* and 5 more \(option releases\.onDrift: hold\); deploy, or restore them/)
      assert.equal(pool.processes.size, 2)
    })
  }

  test('does not begin to recycle, says so once, and does it when the files are back', () => {
    const pool = drifted({ options: HOLD })
    pool.feed(due(1))
    for (let look = 0; look < 3; look++) pool.feed({ type: 'deadline-passed', deadline: 'recycle', id: 0 })
    assert.equal(pool.types().filter((type) => type === 'worker.recycle-failed').length, 1)
    assert.match(pool.last('worker.recycle-failed').message,
      /^worker 1 \(slot 1\) is not recycled: files of r1 changed/)
    assert.equal(pool.processes.size, 2)
    pool.drift = {}
    pool.feed({ type: 'deadline-passed', deadline: 'recycle', id: 0 })
    pool.settle()
    assert.deepEqual(pool.serving(), [3, 2])
  })

  test('whatever happens, nothing is forked on changed files, and all slots serve again once they are back', () => {
    const actions = fc.array(
      fc.record({
        act: fc.constantFrom('exit', 'crashing', 'silent', 'due', 'kill', 'change', 'restore', 'scale', 'restart',
          'deadline', 'settle'),
        pick: fc.nat(10)
      }),
      { minLength: 1, maxLength: 40 }
    )
    fc.assert(fc.property(actions, (schedule) => {
      const pool = simulate({ workers: 3, options: HOLD })
      pool.settle()
      for (const { act, pick } of schedule) {
        const before = pool.state.nextWorker
        const alive = [...pool.processes.keys()]
        const worker = alive[pick % alive.length]
        if (act === 'change') pool.drift = DRIFT
        else if (act === 'restore') pool.drift = {}
        else if (act === 'settle') pool.settle()
        else if (act === 'deadline') pool.passNextDeadline()
        else if (act === 'scale') pool.feed({ type: 'scale', workers: 1 + pick % 4, actor: 'api' })
        else if (act === 'restart') pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
        else if (worker === undefined) continue
        else if (act === 'exit') pool.exit(worker, { signal: 'SIGKILL' })
        else if (act === 'crashing')
          pool.feed({ type: 'worker-crashing', worker, errorName: 'Error', errorMessage: 'no' })
        else if (act === 'silent') pool.feed({ type: 'worker-silent', worker, message: 'it hangs' })
        else if (act === 'due') pool.feed(due(worker))
        else pool.feed({ type: 'kill-worker', worker, actor: 'api' })
        const isRolling = pool.types().findLast((type) =>
          /^rollout\.(started|succeeded|failed)$/.test(type)
        ) === 'rollout.started'
        if ('r1' in pool.drift && !isRolling) assert.equal(pool.state.nextWorker, before, act)
        for (const slot of pool.state.slots)
          assert.ok(slot.serving !== null || slot.retryAt !== null, 'no slot is forgotten')
      }
      pool.drift = {}
      for (let n = 0; n < 60; n++) {
        pool.settle()
        if (pool.ready() === pool.state.slots.length && !pool.state.rollout && !pool.state.recycling) break
        assert.ok(pool.passNextDeadline())
      }
      assert.equal(pool.ready(), pool.state.slots.length)
      assert.ok(pool.state.slots.every(({ blocked }) => blocked === null))
    }), { numRuns: 300 })
  })
})
