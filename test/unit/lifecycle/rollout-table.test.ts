import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NEW_RELEASE, simulate, verdict, type Fed } from '../../support/simulation.ts'
import type { Steering } from '../../../server/config/steering.ts'
import type { StrategyWish } from '../../../server/lifecycle/rollout/strategy.ts'

type Pool = ReturnType<typeof simulate>

const SIZE = 3
const NEXT = Object.freeze({ ...NEW_RELEASE, id: 'r2' })
const deploy = (strategy: StrategyWish = {}, more: { release?: undefined } = {}): Fed => ({ type: 'rollout',
  kind: 'deploy', release: NEXT, actor: 'api', strategy, ...more })
const CANARY = { canary: { workers: 1, durationMs: 5000 } }

/** How a rollout comes to each of its steps. Workers 1 to 3 are the old ones, 4 is the first new one. */
const STEPS = {
  preparing: (pool) => {
    pool.feed(deploy({}, { release: undefined }))
  },
  starting: (pool) => {
    pool.feed(deploy())
  },
  soaking (pool) {
    pool.feed(deploy({ minReadyMs: 1000 }))
    pool.feed({ type: 'worker-ready', worker: 4 })
  },
  'canary starting': (pool) => {
    pool.feed(deploy(CANARY))
  },
  canary (pool) {
    pool.feed(deploy(CANARY))
    pool.feed({ type: 'worker-ready', worker: 4 })
  },
  // Slot 1 is served by worker 4, worker 1 drains, worker 5 starts for slot 2.
  rolling (pool) {
    pool.feed(deploy())
    pool.feed({ type: 'worker-ready', worker: 4 })
  },
  paused (pool) {
    STEPS.rolling(pool)
    steer(pool, 'pause')
  },
  held (pool) {
    pool.feed(deploy({ onFailure: 'hold' }))
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.exit(5, { code: 1 })
  },
  // Slot 1 waits for a worker of the old release, which starts.
  aborting (pool) {
    STEPS.rolling(pool)
    pool.exit(5, { code: 1 })
  }
} as Record<string, (pool: Pool) => void>

const EVENTS = { 'an old worker dies': (pool) => pool.exit(3, { signal: 'SIGKILL' }),
  'the new worker crashes': (pool) => pool.exit(newest(pool), { code: 1 }),
  'the new worker is killed': (pool) => pool.exit(newest(pool), { signal: 'SIGKILL' }),
  'not ready in time': (pool) => pool.feed({ type: 'deadline-passed', deadline: 'ready', id: newest(pool) }),
  'judged bad': (pool) => pool.feed({ type: 'judged', rollout: 1, verdict: verdict(false) }),
  pause: (pool) => steer(pool, 'pause'), resume: (pool) => steer(pool, 'resume'), abort: (pool) => steer(pool, 'abort'),
  promote: (pool) => steer(pool, 'promote'), retry: (pool) => steer(pool, 'retry'),
  'scale up': (pool) => pool.feed({ type: 'scale', workers: SIZE + 2, actor: 'api' }),
  'scale down': (pool) => pool.feed({ type: 'scale', workers: 1, actor: 'api' }),
  'second deploy': (pool) => pool.feed(deploy()),
  SIGTERM: (pool) => pool.feed({ type: 'stop', actor: 'signal' }) } as Record<string, (pool: Pool) => unknown>

function steer (pool: Pool, type: Steering) {
  return pool.feed({ type, rollout: 1, actor: 'api' })
}

/** `pool`: the worker that was forked last */
function newest (pool: Pool) {
  return Math.max(...pool.processes.keys())
}

function assertBounds (pool: Pool) {
  const { slots, workers } = pool.state
  const { rollout } = pool
  const holding = Object.values(workers).filter(({ state }) => state === 'starting' || state === 'ready').length
  assert.ok(holding <= slots.length + 1, `${holding} workers for ${slots.length} slots`)
  const served = slots.filter(({ number }) =>
    Object.values(workers).some(({ slot, state }) => slot === number && state === 'ready')
  )
  if (pool.state.phase !== 'stopping')
    assert.ok(served.length >= Math.min(slots.length, SIZE) - 1, 'at most the one that died is missing')
  for (const { number, release, serving } of slots) {
    if (serving !== null && rollout?.state !== 'rolling-back')
      assert.equal(workers[serving].release, release, `slot ${number}`)
  }
}

/** Everything goes on as it should, and whoever is asked lets it. */
function finish (pool: Pool) {
  for (let round = 0; round < 100; round++) {
    pool.settle()
    if (pool.isFinished || (!pool.state.rollout && pool.processes.size === pool.state.slots.length)) return
    const { rollout } = pool
    if (rollout?.state === 'preparing') pool.feed({ type: 'release-prepared', rollout: 1, release: NEXT })
    if (['paused', 'held'].includes(String(rollout?.state))) steer(pool, 'resume')
    const order = pool.judgements.pop()
    if (order && rollout) pool.feed({ type: 'judged', rollout: order.rollout, verdict: verdict(true, order.isFinal) })
    if (pool.state.rollout) pool.passNextDeadline()
  }
}

function play (step: string, event: string) {
  const pool = simulate({ workers: SIZE })
  pool.settle()
  STEPS[step](pool)
  assertBounds(pool)
  const refusal = EVENTS[event](pool)
  assertBounds(pool)
  finish(pool)
  const end = pool.events.findLast(({ type }) =>
    ['rollout.succeeded', 'rollout.rolled-back', 'rollout.failed'].includes(type)
  )
  const outcome = `${refusal ? '!' : ' '}${
    { 'rollout.succeeded': 'S', 'rollout.rolled-back': 'R', 'rollout.failed': 'F' }[String(end?.type)]
  }`
  if (pool.isFinished) return ` ${outcome.trim()}`
  assert.deepEqual([pool.state.rollout, pool.ready(), pool.processes.size], [null, pool.state.slots.length,
    pool.state.slots.length])
  const running = new Set([...pool.state.slots, ...Object.values(pool.state.workers)].map(({ release }) => release))
  assert.ok(!running.has('r1') || !running.has('r2') || outcome === ' F', `two releases run: ${[...running]}`)
  return `${outcome}${[...running].join('+')}`
}

// S succeeded, R rolled back, F failed, and the release that runs in the end; ! the event was refused.
const TABLE = `
step            | preparing | starting | soaking | canary starting | canary | rolling | paused | held   | aborting
an old worker dies       | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Rr1
the new worker crashes   | Sr2 | Fr1 | Fr1 | Fr1 | Fr1 | Rr1 | Rr1 | Sr2 | Fr2+r1
the new worker is killed | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Rr1
not ready in time        | Sr2 | Fr1 | Sr2 | Fr1 | Sr2 | Rr1 | Rr1 | Sr2 | Fr2+r1
judged bad               | Sr2 | Fr1 | Fr1 | Fr1 | Fr1 | Rr1 | Rr1 | Sr2 | Rr1
pause                    | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | !Sr2 | !Sr2 | !Rr1
resume                   | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | Sr2 | Sr2 | !Rr1
abort                    | Rr1 | Rr1 | Rr1 | Rr1 | Rr1 | Rr1 | Rr1 | Rr1 | !Rr1
promote                  | !Sr2 | !Sr2 | !Sr2 | Sr2 | Sr2 | !Sr2 | !Sr2 | !Sr2 | !Rr1
retry                    | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | Sr2 | !Rr1
scale up                 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Rr1
scale down               | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Rr1
second deploy            | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Sr2 | !Rr1
SIGTERM                  | F | F | F | F | F | F | F | F | F`

const [head, ...rows] = TABLE.trim().split('\n').map((line) => line.split('|').map((cell) => cell.trim()))

describe('every step of a rollout, and what may happen at it', () => {
  test('the table knows them all', () => {
    assert.deepEqual(head.slice(1), Object.keys(STEPS))
    assert.deepEqual(rows.map(([event]) => event), Object.keys(EVENTS))
  })

  for (const [event, ...outcomes] of rows) {
    for (const [index, expected] of outcomes.entries()) {
      const step = head[index + 1]
      test(`${step}: ${event}`, () => assert.equal(play(step, event).trim(), expected))
    }
  }
})
