import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NEW_RELEASE, simulate, verdict, type Fed } from '../../support/simulation.ts'

function deploying (order?: Partial<Fed & { type: 'rollout' }>, size: number = 1) {
  const pool = simulate({ workers: size })
  pool.settle()
  pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'ada', ...order })
  return pool
}

const timeOf = ({ at }: { at: number }) => new Date(at).toISOString()

test('a step tells when its worker began, was ready, took the slot over, and when the old one had gone', () => {
  const pool = deploying({ strategy: { minReadyMs: 5000 } })
  const startedAt = timeOf(pool)
  pool.wait(700)
  const readyAt = timeOf(pool)
  pool.feed({ type: 'worker-ready', worker: 2 })
  while (pool.rollout?.steps[0].state === 'soaking') pool.passNextDeadline()
  const promotedAt = timeOf(pool)
  pool.wait(1200)
  pool.exit(1, { code: 0 })
  const [step] = pool.last('rollout.succeeded').detail.steps
  assert.deepEqual({ ...step }, { slot: 1, state: 'done', oldWorker: 1, newWorker: 2, from: 'r1', isCanary: false,
    startedAt, readyAt, promotedAt, drainedAt: timeOf(pool), revertingAt: null, finishedAt: timeOf(pool) })
  assert.equal(Date.parse(promotedAt) - Date.parse(readyAt), 5000)
})

test('a step that goes back tells since when, and ends when the old release serves again', () => {
  const pool = deploying({}, 2)
  pool.feed({ type: 'worker-ready', worker: 3 })
  pool.exit(1, { code: 0 })
  pool.wait(3000)
  const revertingAt = timeOf(pool)
  pool.feed({ type: 'abort', rollout: 1, actor: 'ada' })
  assert.deepEqual(pool.rollout?.steps.map((step) => [step.state, step.revertingAt, step.finishedAt === null]), [[
    'reverting',
    revertingAt,
    true
  ], ['reverted', revertingAt, false]])
  pool.wait(400)
  pool.settle()
  const { steps } = pool.last('rollout.rolled-back').detail
  assert.deepEqual([steps[0].state, steps[0].revertingAt, steps[0].finishedAt], ['reverted', revertingAt, timeOf(pool)])
})

test('the timeline tells what happened to the rollout as a whole and who did it, and not each step', () => {
  const pool = deploying({ note: 'faster totals', client: 'cli',
    strategy: { canary: { workers: 1, durationMs: 60_000 }, onFailure: 'hold' } }, 2)
  pool.feed({ type: 'worker-ready', worker: 3 })
  pool.feed({ type: 'pause', rollout: 1, actor: 'grace' })
  pool.feed({ type: 'resume', rollout: 1, actor: 'ada' })
  pool.feed({ type: 'judged', rollout: 1, verdict: verdict(false) })
  pool.feed({ type: 'abort', rollout: 1, actor: 'grace' })
  pool.settle()
  const { timeline, client, abortedBy } = pool.last('rollout.rolled-back').detail
  assert.deepEqual([client, abortedBy], ['cli', 'grace'])
  assert.deepEqual(timeline.filter(({ passed }) => passed !== null).map(({ type, passed }) => [type, passed]), [[
    'rollout.judged',
    false
  ]])
  assert.deepEqual(timeline.map(({ type, actor, message }) => [type, actor, message]), [['rollout.started', 'ada',
    'faster totals'], ['rollout.step', null, 'canary of 1 of 2 slots for a minute'], ['rollout.paused', 'grace',
    'paused by grace'], ['rollout.resumed', 'ada', 'resumed by ada'], ['rollout.judged', null, 'passed: false'], [
    'rollout.held',
    null,
    'passed: false; retry or abort it'
  ], ['rollout.rolling-back', 'grace', 'aborted by grace'], ['rollout.rolled-back', null, 'aborted by grace']])
})

test('what both sides did is kept over the whole time, evenly and bounded', () => {
  const pool = deploying({ strategy: { canary: { workers: 1, durationMs: 60 * 60_000 } } })
  pool.feed({ type: 'worker-ready', worker: 2 })
  for (let look = 0; look < 500; look++)
    pool.feed({ type: 'judged', rollout: 1,
      verdict: { ...verdict(true, false), at: new Date(look * 5000).toISOString() } })
  const times = pool.rollout?.comparisons?.map(({ at }) => Date.parse(at) / 5000) ?? []
  assert.equal(times.length, 60)
  assert.deepEqual([times[0], times.at(-1)], [0, 499])
  const gaps = times.slice(1).map((time, index) => time - times[index])
  assert.ok(Math.max(...gaps) <= 16, `at most twice the 8 that 500 looks leave: ${gaps}`)
  assert.deepEqual(pool.rollout?.comparison, pool.rollout?.comparisons?.at(-1))
})

test('a rollout that is steered without end keeps the last of it, and no message without end', () => {
  const pool = deploying({ note: 'n'.repeat(9000) })
  assert.equal(pool.rollout?.timeline?.[0].message?.length, 500)
  for (let time = 0; time < 200; time++)
    for (const type of ['pause', 'resume'] as const) pool.feed({ type, rollout: 1, actor: 'ada' })
  assert.equal(pool.rollout?.timeline?.length, 100)
})
