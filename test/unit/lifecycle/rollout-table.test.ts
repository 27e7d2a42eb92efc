import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { happen } from '../../support/happenings.ts'
import { simulate, verdict, type Simulation } from '../../support/simulation.ts'

const SIZE = 3

/** How a rollout comes to each of its steps. Workers 1 to 3 are the old ones, 4 is the first new one. */
const STEPS: Record<string, string> = {
  preparing: 'deploy unprepared',
  starting: 'deploy',
  soaking: 'deploy soak; 4 ready',
  'canary starting': 'deploy canary',
  canary: 'deploy canary; 4 ready',
  // Slot 1 is served by worker 4, worker 1 drains, worker 5 starts for slot 2.
  rolling: 'deploy; 4 ready',
  paused: 'deploy; 4 ready; pause',
  held: 'deploy hold; 4 ready; 5 exits 1',
  // Slot 1 waits for a worker of the old release, which starts.
  aborting: 'deploy; 4 ready; 5 exits 1'
}

/** N is the worker that was forked last. */
const EVENTS: Record<string, string> = { 'an old worker dies': '3 exits SIGKILL', 'the new worker crashes': 'N exits 1',
  'the new worker is killed': 'N exits SIGKILL', 'an operator kills it': 'N killed',
  'not ready in time': 'deadline-passed deadline=ready id=N', 'judged bad': 'judged bad', pause: 'pause',
  resume: 'resume', abort: 'abort', promote: 'promote', retry: 'retry', 'scale up': `scale ${SIZE + 2}`,
  'scale down': 'scale 1', 'second deploy': 'deploy', SIGTERM: 'stop' }

function assertBounds (pool: Simulation) {
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
function finish (pool: Simulation) {
  for (let round = 0; round < 100; round++) {
    pool.settle()
    if (pool.isFinished || (!pool.state.rollout && pool.processes.size === pool.state.slots.length)) return
    const { rollout } = pool
    if (rollout?.state === 'preparing') happen(pool, 'prepared r2')
    if (['paused', 'held'].includes(String(rollout?.state))) happen(pool, 'resume')
    const order = pool.judgements.pop()
    if (order && rollout) pool.feed({ type: 'judged', rollout: order.rollout, verdict: verdict(true, order.isFinal) })
    if (pool.state.rollout) pool.passNextDeadline()
  }
}

function play (step: string, event: string) {
  const pool = simulate({ workers: SIZE })
  pool.settle()
  for (const what of STEPS[step].split('; ')) happen(pool, what)
  assertBounds(pool)
  const refusal = happen(pool, EVENTS[event].replace('N', String(Math.max(...pool.processes.keys()))))
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
an operator kills it     | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Sr2 | Rr1
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
