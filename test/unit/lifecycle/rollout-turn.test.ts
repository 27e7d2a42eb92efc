import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { needsTurn, type Plan } from '../../../server/lifecycle/rollout/turn.ts'
import { NEW_RELEASE, OPTIONS, simulate } from '../../support/simulation.ts'
import { fake } from '../../support/fake.ts'
import type { Rollout } from '../../../server/lifecycle/state.ts'
import type { RolloutStep } from '../../../server/api/shapes.ts'

const ASKED = { type: 'rollout', kind: 'deploy', source: { path: '/srv/next' }, actor: 'ada',
  awaitsTurn: true } as const
const RELEASE = { ...NEW_RELEASE, id: 'r2' }

/** A rollout that other apps come before. */
function waiting (order: object = {}, how: Parameters<typeof simulate>[0] = {}) {
  const pool = simulate({ workers: 2, ...how })
  pool.settle()
  pool.feed({ ...ASKED, ...order })
  pool.feed({ type: 'rollout-waits', rollout: 1, apps: ['shop', 'mail'] })
  return pool
}

describe('a rollout that waits for its turn', () => {
  test('says whom it waits for, and nothing of it begins or runs out of time; then it goes on as any other', () => {
    const pool = waiting()
    assert.equal(pool.asking, 1)
    assert.equal(pool.last('rollout.step').message, 'waits for its turn: shop and mail are being rolled out')
    assert.deepEqual([pool.rollout?.state, pool.rollout?.waitingFor, pool.rollout?.progress], ['preparing', ['shop',
      'mail'], { total: 2, replaced: 0 }])
    assert.equal('plan' in (pool.rollout ?? {}), false, 'what is to be prepared is nobody\'s business')
    assert.deepEqual([pool.prepared, [...pool.deadlines.keys()].filter((key) => key.startsWith('progress'))], [null,
      []])
    pool.feed({ type: 'rollout-turn-came', rollout: 1 })
    assert.deepEqual([pool.prepared, pool.rollout?.waitingFor, pool.last('rollout.step').message], [{
      path: '/srv/next'
    }, null, 'its turn has come'])
    pool.feed({ type: 'release-prepared', rollout: 1, release: RELEASE })
    assert.ok(pool.deadlines.has('progress:0'))
    pool.settle()
    assert.equal(pool.state.release.id, 'r2')
  })

  test('says nothing of that where its turn comes at once', () => {
    const pool = simulate({ workers: 2 })
    pool.settle()
    pool.feed({ ...ASKED, kind: 'restart' })
    pool.feed({ type: 'rollout-turn-came', rollout: 1 })
    assert.deepEqual(pool.events.filter(({ message }) => /turn/.test(String(message))), [])
    assert.equal(pool.rollout?.steps.length, 2)
  })

  test('is aborted without having begun, and a turn that comes late begins nothing', () => {
    for (const kind of ['deploy', 'restart']) {
      const pool = waiting({ kind })
      assert.equal(pool.feed({ type: 'abort', rollout: 1, actor: 'ada' }), null)
      assert.equal(pool.state.rollout, null)
      assert.deepEqual([pool.last('rollout.rolled-back').message, pool.last('rollout.rolled-back').detail.waitingFor], [
        'aborted by ada',
        null
      ])
      pool.feed({ type: 'rollout-turn-came', rollout: 1 })
      pool.feed({ type: 'rollout-waits', rollout: 1, apps: ['shop'] })
      assert.deepEqual([pool.state.rollout, pool.prepared, [...pool.processes.keys()]], [null, null, [1, 2]])
    }
  })

  test('may be paused meanwhile, and then begins nothing that the pause forbids', () => {
    const pool = waiting({ kind: 'restart' })
    pool.feed({ type: 'pause', rollout: 1, actor: 'ada' })
    pool.feed({ type: 'rollout-turn-came', rollout: 1 })
    assert.deepEqual([pool.rollout?.state, pool.rollout?.pausedIn, [...pool.processes.keys()]], ['paused', 'rolling', [
      1,
      2
    ]])
    pool.feed({ type: 'resume', rollout: 1, actor: 'ada' })
    pool.settle()
    assert.deepEqual(pool.serving(), [3, 4])
  })

  test('a restart is one of the slots that there were when it was asked for', () => {
    const pool = waiting({ kind: 'restart' })
    pool.feed({ type: 'scale', workers: 3, actor: 'ada' })
    pool.settle()
    pool.feed({ type: 'rollout-turn-came', rollout: 1 })
    pool.settle()
    assert.deepEqual([pool.state.rollout, pool.serving()], [null, [4, 5, 3]])
  })

  test('a rollback, and the restart of one worker, wait for nobody', () => {
    const pool = waiting({ kind: 'rollback', source: { release: 'r0' } })
    assert.deepEqual([pool.asking, pool.prepared, pool.rollout?.waitingFor], [null, { release: 'r0' }, null])
    const other = simulate({ workers: 2 })
    other.settle()
    other.feed({ type: 'restart-worker', worker: 1, actor: 'ada' })
    assert.equal(other.rollout?.state, 'rolling')
  })

  test('begins at once where the guard has seen a crash loop, so that no other app keeps that from going back', () => {
    const pool = simulate({ workers: 2, options: { ...OPTIONS, rollout: { guardMs: 300_000 } } })
    pool.settle()
    pool.feed({ type: 'rollout', kind: 'deploy', release: RELEASE, actor: 'ada' })
    pool.settle()
    pool.feed({ ...ASKED, kind: 'restart' })
    pool.feed({ type: 'rollout-waits', rollout: 2, apps: ['shop'] })
    for (let death = 0; death < 8; death++) {
      while (pool.state.slots[0].serving === null) pool.passNextDeadline()
      pool.feed({ type: 'worker-ready', worker: pool.serving()[0] })
      pool.exit(pool.serving()[0], { code: 1 })
    }
    assert.deepEqual([pool.state.guard?.isTripped, pool.rollout?.state, pool.rollout?.waitingFor], [true, 'rolling',
      null])
  })
})

test('a rollout leaves its turn to others once it only waits: for old workers, its canary, an operator; or where it is over', () => {
  const rollout = fake<Rollout>({ id: 1, plan: null, canaryEndsAt: null, pausedAt: null, steps: [],
    progress: { total: 2, replaced: 0 } })
  const steps = fake<RolloutStep[]>([{}, {}])
  assert.equal(needsTurn(rollout, 1), true)
  assert.equal(needsTurn({ ...rollout, steps, progress: { total: 2, replaced: 1 } }, 1), true)
  assert.equal(needsTurn({ ...rollout, plan: fake<Plan>({}), pausedAt: 'now' }, 1), true,
    'a pause does not take it out of the row')
  for (const [what, other] of Object.entries({
    'only drains': { ...rollout, steps, progress: { total: 2, replaced: 2 } },
    'compares its canary': { ...rollout, canaryEndsAt: 'soon' },
    'is paused or held': { ...rollout, pausedAt: 'now' },
    'is another one': { ...rollout, id: 2 },
    'is over': null
  })) assert.equal(needsTurn(other, 1), false, what)
})
