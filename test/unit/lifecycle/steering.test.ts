import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { strategyOf } from '../../../server/lifecycle/rollout/strategy.ts'
import { NEW_RELEASE, OPTIONS, simulate, verdict } from '../../support/simulation.ts'
import type { Steering } from '../../../server/config/steering.ts'
import type { Drift, LifecycleOptions } from '../../../server/lifecycle/state.ts'

const GUARDED: LifecycleOptions = { ...OPTIONS, rollout: { guardMs: 300_000 } }
const HOLD_DRIFT: LifecycleOptions = { ...OPTIONS, releases: { onDrift: 'hold' } }
const DRIFT: Record<string, Drift> = {
  r1: { kind: 'code', count: 1, files: ['/srv/r1/app.js'], since: null, by: null }
}
const CANARY = { canary: { workers: 1, durationMs: 60_000 } }

/** Slots that serve, and a rollout of r2 among them. */
function deploying ({ size = 3, strategy = {}, options = OPTIONS } = {}) {
  const pool = simulate({ workers: size, options })
  pool.settle()
  pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api', strategy })
  return pool
}

type Pool = ReturnType<typeof simulate>
const steer = (pool: Pool, type: Steering) => pool.feed({ type, rollout: 1, actor: 'api' })
const steps = (pool: Pool) => pool.state.rollout?.steps.map(({ state }) => state)
const slots = (pool: Pool) => pool.state.slots.map(({ release }) => release)

/** The clocks pass until this one has. */
function passUntil (pool: Pool, clock: string) {
  while (pool.deadlines.has(clock)) pool.passNextDeadline()
}

describe('a trial', () => {
  test('that was held begins anew when it is resumed, and is judged', () => {
    const pool = deploying({ strategy: { ...CANARY, onFailure: 'hold' } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.wait(10_000)
    pool.feed({ type: 'judged', rollout: 1, verdict: verdict(false, false) })
    assert.deepEqual([pool.rollout?.state, pool.deadlines.has('canary:0')], ['held', false])
    assert.match(pool.last('rollout.held').message, /^passed: false; retry, resume or abort it/)
    pool.wait(90_000)
    steer(pool, 'resume')
    assert.equal(pool.state.rollout?.canaryEndsAt, new Date(pool.at + 60_000).toISOString())
    assert.ok(pool.deadlines.has('judge:0'))
    passUntil(pool, 'canary:0')
    assert.equal(pool.judgements.at(-1)?.isFinal, true)
  })

  test('that passes with a flaw has one warning of it, however often that is seen', () => {
    const pool = deploying({ strategy: CANARY })
    pool.feed({ type: 'worker-ready', worker: 4 })
    for (const isFinal of [false, false, true])
      pool.feed({ type: 'judged', rollout: 1, verdict: { ...verdict(true, isFinal), warning: 'failed at first' } })
    assert.deepEqual([pool.rollout?.warnings, pool.rollout?.verdicts], [['failed at first'], [verdict(true)]])
  })

  test('that is held stands still, and says how both sides did until then, also the canary that crashed', () => {
    const pool = deploying({ strategy: { ...CANARY, onFailure: 'hold' } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.wait(2000)
    pool.exit(4, { code: 1 })
    const heldAt = new Date(pool.at).toISOString()
    const { isFinal, canary, baseline } = pool.judgements.at(-1)!
    assert.deepEqual([pool.rollout?.pausedAt, isFinal, canary, baseline], [heldAt, false, [4], [1, 2, 3]])
    const { message: _, ...found } = verdict(true, false)
    pool.feed({ type: 'judged', rollout: 1, verdict: verdict(true, false) })
    pool.wait(600_000)
    assert.deepEqual([pool.rollout?.pausedAt, pool.rollout?.state, pool.rollout?.verdicts], [heldAt, 'held', []])
    assert.deepEqual([pool.rollout?.comparison?.canary, pool.rollout?.comparison?.baseline], [found.canary,
      found.baseline])
    steer(pool, 'retry')
    assert.deepEqual([pool.rollout?.pausedAt, pool.rollout?.comparison], [null, null])
  })

  test('of a canary that was killed while it was paused begins anew', () => {
    const pool = deploying({ strategy: CANARY })
    pool.feed({ type: 'worker-ready', worker: 4 })
    steer(pool, 'pause')
    pool.exit(4, { signal: 'SIGKILL' })
    pool.wait(120_000)
    steer(pool, 'resume')
    assert.deepEqual([steps(pool), pool.judgements], [['starting', 'pending', 'pending'], []])
    pool.feed({ type: 'worker-ready', worker: 5 })
    assert.equal(pool.state.rollout?.canaryEndsAt, new Date(pool.at + 60_000).toISOString())
  })

  test('may last longer than a rollout may stand still, also when a canary was killed in it', () => {
    const pool = deploying({ strategy: { canary: { workers: 1, durationMs: 900_000 }, progressDeadlineMs: 10_000 } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.exit(4, { signal: 'SIGKILL' })
    pool.feed({ type: 'worker-ready', worker: 5 })
    passUntil(pool, 'canary:0')
    assert.equal(pool.judgements.at(-1)?.isFinal, true)
    assert.equal(pool.rollout?.state, 'canary')
  })

  test('is no soak: what is left of that comes after it', () => {
    const pool = deploying({ strategy: { canary: { workers: 1, durationMs: 1000 }, minReadyMs: 60_000 } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    passUntil(pool, 'canary:0')
    pool.feed({ type: 'judged', rollout: 1, verdict: verdict(true) })
    assert.deepEqual([steps(pool)?.[0], pool.processes.get(1)?.isDraining], ['soaking', false])
    assert.equal(Number(pool.deadlines.get('soak:4')?.dueAt) - pool.at, 59_000)
  })

  test('is meant by whoever names its duration', () => {
    assert.deepEqual(
      strategyOf('deploy', 4, { canary: { workers: 0, durationMs: 30_000 } }, { canary: { durationMs: 1000 } }).canary,
      { workers: 1, durationMs: 1000 }
    )
    assert.equal(
      strategyOf('deploy', 4, { canary: { workers: 2, durationMs: 30_000 } }, { canary: { workers: 0 } }).canary,
      null
    )
    assert.equal(strategyOf('deploy', 4, { canary: { workers: 0, durationMs: 30_000 } }).canary, null)
  })
})

describe('a rollout that comes no further', () => {
  test('does not count the time that it waits on purpose', () => {
    const pool = deploying({ strategy: { minReadyMs: 60_000, progressDeadlineMs: 30_000 } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    passUntil(pool, 'soak:4')
    assert.deepEqual([pool.rollout?.state, steps(pool)?.[0]], ['rolling', 'draining'])
  })

  test('while it goes back leaves what serves, and nothing behind', () => {
    const pool = deploying({ strategy: { progressDeadlineMs: 20_000 } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.exit(5, { code: 1 })
    const late = pool.state.slots[0].candidate ?? 0
    assert.equal(pool.rollout?.state, 'rolling-back')
    passUntil(pool, 'progress:0')
    assert.match(pool.last('rollout.failed').message, /exited with code 1/)
    assert.deepEqual([pool.state.slots[0].candidate, slots(pool), pool.processes.get(late)?.isDraining], [null, ['r2',
      'r1', 'r1'], true])
    pool.settle()
    assert.deepEqual([pool.ready(), pool.processes.size], [3, 3])
    pool.feed({ type: 'stop', actor: 'signal' })
    pool.settle()
    assert.equal(pool.isFinished, true)
  })
})

describe('files of the old release that have changed, where that is to hold', () => {
  test('are not gone back to: what serves goes on', () => {
    const pool = deploying({ options: HOLD_DRIFT })
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.drift = DRIFT
    pool.exit(5, { code: 1 })
    assert.deepEqual([pool.state.rollout, slots(pool), pool.last('worker.drifted')], [null, ['r2', 'r1', 'r1'],
      undefined])
    assert.equal(pool.last('rollout.failed').detail.steps[0].state, 'failed')
  })

  test('end a rollback to them, and say which', () => {
    const pool = deploying({ options: HOLD_DRIFT })
    pool.settle()
    pool.drift = DRIFT
    for (const [rollout, release] of [[2, undefined], [3, { ...NEW_RELEASE, id: 'r1' }]] as const) {
      pool.feed({ type: 'rollout', kind: 'rollback', release, source: { release: 'r1' }, actor: 'api' })
      pool.feed({ type: 'release-prepared', rollout, release: { ...NEW_RELEASE, id: 'r1' } })
      assert.match(pool.last('rollout.failed').message,
        /^r1 cannot come back: files of r1 changed after its deploy: \/srv\/r1\/app\.js$/)
      assert.deepEqual([pool.last('rollout.failed').rollout, pool.state.rollout, slots(pool), pool.processes.size], [
        rollout,
        null,
        ['r2', 'r2', 'r2'],
        3
      ])
    }
  })

  test('stop a deploy on the way, if they are its own', () => {
    const pool = deploying({ options: HOLD_DRIFT, strategy: { onFailure: 'hold' } })
    pool.drift = { r2: { kind: 'code', count: 1, files: ['/srv/r2/app.js'], since: null, by: null } }
    pool.feed({ type: 'worker-ready', worker: 4 })
    assert.deepEqual([pool.rollout?.state, steps(pool)], ['held', ['draining', 'pending', 'pending']])
    pool.drift = {}
    steer(pool, 'retry')
    pool.settle()
    assert.equal(pool.last('rollout.succeeded').release, 'r2')
  })
})

describe('files of the new release that change during its trial, where that is to hold', () => {
  test('end it, as no canary that died may come back on them', () => {
    const pool = deploying({ options: HOLD_DRIFT, strategy: CANARY })
    pool.feed({ type: 'worker-ready', worker: 4 })
    steer(pool, 'pause')
    pool.exit(4, { signal: 'SIGKILL' })
    assert.equal(steps(pool)?.[0], 'pending')
    pool.drift = { r2: { kind: 'code', count: 1, files: ['/srv/r2/app.js'], since: null, by: null } }
    steer(pool, 'resume')
    assert.deepEqual([pool.state.rollout, pool.processes.size], [null, 3])
    assert.match(pool.last('rollout.failed').message, /^files of r2 changed/)
  })
})

describe('the guard of a deploy', () => {
  /** One slot crashes until something is done about it. */
  function loop (pool: Pool) {
    for (let step = 0; step < 100 && !pool.state.rollout; step++) {
      const { serving } = pool.state.slots[0]
      if (serving === null) pool.passNextDeadline()
      else {
        pool.feed({ type: 'worker-ready', worker: serving })
        pool.exit(serving, { code: 1 })
      }
    }
  }

  for (const [name, act] of [['nothing else', () => {}], ['a restart',
    (pool) => pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })], ['the restart of one worker',
    (pool) => pool.feed({ type: 'restart-worker', worker: pool.serving()[0], actor: 'api' })], ['a deploy that fails',
    (pool) => {
      pool.feed({ type: 'rollout', kind: 'deploy', release: { entry: '/srv/r3/app.js', path: '/srv/r3' },
        actor: 'api' })
      pool.exit(Math.max(...pool.processes.keys()), { code: 1 })
    }]] as [string, (pool: Pool) => void][])
  {
    test(`goes back from a crash loop, after ${name}`, () => {
      const pool = deploying({ size: 2, options: GUARDED })
      pool.settle()
      act(pool)
      pool.settle()
      loop(pool)
      assert.deepEqual([pool.state.rollout?.kind, pool.state.rollout?.actor, pool.prepared], ['rollback', 'guard', {
        release: 'r1'
      }])
      assert.equal(pool.state.guard?.isTripped, true, 'a master that ends now leaves the rest to the next one')
      pool.feed({ type: 'release-prepared', rollout: pool.state.rollout!.id, release: { ...NEW_RELEASE, id: 'r1' } })
      pool.settle()
      assert.deepEqual([pool.state.release.id, pool.state.rollout, pool.state.guard], ['r1', null, null])
    })
  }

  test('goes back once: where that fails too, it is over', () => {
    const pool = deploying({ size: 2, options: GUARDED })
    pool.settle()
    loop(pool)
    pool.feed({ type: 'release-not-prepared', rollout: Number(pool.state.rollout?.id), reason: 'it is gone' })
    assert.deepEqual([pool.state.rollout, pool.state.guard], [null, null])
    loop(pool)
    assert.equal(pool.state.rollout, null)
  })

  test('whose rollback was cut short by the end of its master goes on with it under the next one, while that starts, and late', () => {
    for (const endsAt of [new Date(61_000).toISOString(), new Date(0).toISOString()]) {
      const next = simulate({ workers: 2, guard: { release: 'r1', from: 'r7', rollout: 4, isTripped: true, endsAt } })
      assert.deepEqual([next.state.phase, next.state.rollout?.actor, next.prepared], ['starting', 'guard', {
        release: 'r7'
      }])
      next.feed({ type: 'release-prepared', rollout: next.state.rollout!.id, release: { ...NEW_RELEASE, id: 'r7' } })
      next.settle()
      assert.deepEqual([next.state.phase, next.state.release.id, next.state.guard], ['running', 'r7', null])
    }
  })

  test('goes on under the next master, for what is left of its time and for the same release alone', () => {
    const guard = { release: 'r1', from: 'r7', rollout: 4, isTripped: false, endsAt: new Date(61_000).toISOString() }
    const next = simulate({ workers: 1, guard })
    assert.equal(Number(next.deadlines.get('guard:0')?.dueAt) - next.at, 60_000)
    next.settle()
    loop(next)
    assert.deepEqual([next.state.rollout?.actor, next.prepared], ['guard', { release: 'r7' }])
    for (const other of [{ ...guard, release: 'r2' }, { ...guard, endsAt: new Date(0).toISOString() }])
      assert.equal(simulate({ guard: other }).state.guard, null)
    const upgraded = simulate()
    upgraded.settle()
    upgraded.feed({ type: 'take-over', orphans: [], nextWorker: 9, guard })
    assert.deepEqual(upgraded.state.guard, guard)
  })

  test('that has seen a crash loop during another rollout waits for its end', () => {
    const pool = deploying({ size: 2, options: GUARDED })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'deploy', source: {}, actor: 'api' })
    for (let death = 0; death < 8; death++) {
      while (pool.state.slots[0].serving === null) pool.passNextDeadline()
      pool.feed({ type: 'worker-ready', worker: pool.serving()[0] })
      pool.exit(pool.serving()[0], { code: 1 })
    }
    assert.equal(pool.state.guard?.isTripped, true)
    passUntil(pool, 'guard:0')
    pool.feed({ type: 'release-not-prepared', rollout: 2, reason: 'no room' })
    assert.deepEqual([pool.state.rollout?.kind, pool.prepared], ['rollback', { release: 'r1' }])
  })

  test('has nothing more to say once another release has been rolled out', () => {
    const pool = deploying({ size: 2, options: GUARDED })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'rollback', release: { ...NEW_RELEASE, id: 'r1' }, actor: 'api' })
    pool.settle()
    assert.deepEqual([slots(pool), pool.state.guard, pool.deadlines.has('guard:0')], [['r1', 'r1'], null, false])
  })
})
