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

  const GOOD = { requests: 400, failed: 2 }
  const ONLY_5XX = { after: { requests: 60, failed: 60 }, before: GOOD, last: { requests: 4, failed: 0 } }
  const figures = (failed: number) => ({ workers: 1, requests: 20, errorRate: failed / 20, p99Ms: 1 })

  /** A deploy is over, and the guard hears what was answered. */
  function heard (answers = ONLY_5XX, pool: Pool = deploying({ size: 2, options: GUARDED })) {
    pool.settle()
    pool.feed({ type: 'answers-counted', release: 'r2', ...answers })
    return pool
  }

  /** The guard has one worker of r1 serve beside the others. */
  function tryReturn (pool: Pool, { before, after }: { before: number, after: number }) {
    const { id } = pool.state.rollout ?? { id: 0 }
    pool.feed({ type: 'release-prepared', rollout: id, release: { ...NEW_RELEASE, id: 'r1' } })
    pool.settle()
    assert.deepEqual([pool.rollout?.state, steps(pool)], ['canary', ['ready', 'pending']])
    pool.feed({ type: 'judged', rollout: id,
      verdict: { ...verdict(true, false), canary: figures(before), baseline: figures(after) } })
    pool.settle()
  }

  test('goes back from a release that answers hardly anything but 5xx, once the one before does better', () => {
    const pool = heard()
    assert.match(pool.last('rollout.started').message,
      /^r2 answered 60 of 60 requests by 5xx after rollout 1, r1 2 of 400 requests before$/)
    tryReturn(pool, { before: 0, after: 20 })
    assert.match(pool.last('rollout.judged').message,
      /^r1 answers 0 of 20 requests by 5xx, r2 20 of 20 requests in the same time$/)
    assert.deepEqual([slots(pool), pool.last('rollout.succeeded').actor, pool.state.guard], [['r1', 'r1'], 'guard',
      null])
  })

  for (const [name, figuresThen] of [['both fail', { before: 20, after: 20 }], ['both are well again', { before: 0,
    after: 2 }]] as const)
  {
    test(`stays where ${name} once the one before serves beside it: what both need is to blame`, () => {
      const pool = heard()
      tryReturn(pool, figuresThen)
      assert.deepEqual([slots(pool), pool.last('rollout.failed').actor, pool.state.guard, pool.ready()], [['r2', 'r2'],
        'guard', null, 2])
    })
  }

  for (const [name, answers] of Object.entries({ 'too few requests': { after: { requests: 10, failed: 10 } },
    'one answer in ten good': { after: { requests: 100, failed: 90 } },
    'a release before that failed as well': { before: { requests: 400, failed: 20 } },
    'too few requests before': { before: { requests: 19, failed: 0 } },
    'a release before that failed in its last seconds': { last: { requests: 3, failed: 1 } } }))
    test(`stays with ${name}`, () => assert.equal(heard({ ...ONLY_5XX, ...answers }).state.rollout, null))

  test('asks only until it knows, and not at all where it is off', () => {
    const pool = heard({ ...ONLY_5XX, after: { requests: 30, failed: 30 } })
    assert.equal(pool.deadlines.has('answers:0'), true)
    heard({ ...ONLY_5XX, after: { requests: 30, failed: 0 } }, pool)
    assert.deepEqual([pool.deadlines.has('answers:0'), pool.deadlines.has('guard:0')], [false, true])
    const off = heard(ONLY_5XX, deploying({ options: { ...OPTIONS, rollout: { guardMs: 0 } } as any }))
    assert.deepEqual([off.state.rollout, off.deadlines.has('answers:0')], [null, false])
  })

  test('adds to what the master before has counted, and tries the return anew if that ended meanwhile', () => {
    const seen = heard({ ...ONLY_5XX, after: { requests: 30, failed: 30 } }).state.guard
    const nextOf = (guard: Pool['state']['guard']) =>
      simulate({ guard, start: { release: { ...NEW_RELEASE, id: 'r2', createdAt: '' } } })
    const none = { requests: 0, failed: 0 }
    const next = heard({ after: { requests: 25, failed: 25 }, before: none, last: none }, nextOf(seen))
    assert.match(String(next.state.rollout?.note), /^r2 answered 55 of 55 .* 2 of 400 requests before$/)
    tryReturn(nextOf(next.state.guard), { before: 0, after: 20 })
  })

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
