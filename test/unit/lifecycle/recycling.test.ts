import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requestLimit } from '../../../server/lifecycle/recycling.ts'
import { OPTIONS, simulate, type Simulation } from '../../support/simulation.ts'
import { stories } from '../../support/stories.ts'
import type { Refusal } from '../../../server/lifecycle/state.ts'

const recycle = (recycle: { maxAgeMs: number, maxRssBytes?: number }) => (pool: Simulation): Refusal | null =>
  pool.feed({ type: 'configure', options: { ...OPTIONS, recycle } })

stories('recycling', `
starts the new worker first, and the old one drains once that is ready
  2 workers; 1 due  | [1 ready, 3 starting] [2 ready]
  3 ready           | [1 draining, 3 ready] [2 ready]
  settle            | worker.exited 1 cause=memory-limit actor=system rollout=none "…large…"; no worker.restarted
never touches two slots at once, and forgets none
  3 workers; 1,2,3 due; 4 ready  | [1 draining, 4 ready] [2 ready] [3 ready]
  settle            | [4 ready] [5 ready] [6 ready]
happens by age, up to a tenth earlier
  1 worker with an age; next  | after 28500 ms; [1 ready, 2 starting]
  settle            | worker.exited 1 cause=max-age; [2 ready]
by an age that is set while workers serve counts from when they became ready, and one that is lifted ends what has not begun
  2 workers; wait 10 s  | no age:1
  an age of 1 h     | age:1 in 3410 s
  no age            | no age:1; no age:2
  an age of 1 ms; next; next  | recycling = 1; due = 1 2; state.workers.2.due.cause = max-age
  no age            | recycling = 1; state.workers.2.due = none
by memory is forgotten where the limit is another one before it has begun
  2 workers; 1,2 due; the same limits  | recycling = 1; due = 1 2
  another memory limit           | recycling = 1; state.workers.2.due = none
does not forget one that has reached its limit before it was ready
  1 worker starting; 1 due       | recycling = none
  settle            | worker.exited 1 cause=memory-limit; [2 ready]
waits for a rollout to end
  2 workers; 2 restarted; 1 due  | recycling = none; no worker.recycling
  3 ready; 2 exits 0             | rollout.succeeded; worker.recycling 1
makes way for a restart
  2 workers; 2 due; restart; 3 exits 0  | drain 3; worker.exited 3 cause=restart; recycling = none
makes way for an upgrade
  2 workers; 2 due; upgrade; 3 exits 0  | drain 3; worker.exited 3 cause=upgrade; recycling = none
makes way for a stop
  2 workers; 2 due; stop; 3 exits 0     | drain 3; worker.exited 3 cause=shutdown; recycling = none
makes way for a scale-down of its slot
  2 workers; 2 due; scale 1; 3 exits 0  | drain 3; worker.exited 3 cause=scale-down; recycling = none
lets the old worker go on if the new one fails, and tries again later
  2 workers; 1 due; 3 exits 1  | [1 ready] [2 ready]; worker.recycle-failed 1 "worker 1 (slot 1) is not recycled…"
  until worker.recycling 1     | after 30 s
  settle            | [4 ready] [2 ready]
gives the slot to the new worker at once when the old one dies meanwhile
  2 workers; 1 due; 1 exits 1  | [3 starting] [2 ready]; worker.exited 1 cause=crash
  settle            | ready = 2
`, { starts: { 'an age': { options: { recycle: { maxAgeMs: 30_000 } } } },
  acts: { 'an age of 1 h': recycle({ maxAgeMs: 3_600_000 }), 'no age': recycle({ maxAgeMs: 0 }),
    'an age of 1 ms': recycle({ maxAgeMs: 1 }), 'another memory limit': recycle({ maxAgeMs: 0, maxRssBytes: 1e9 }),
    'the same limits': (pool) => pool.feed({ type: 'configure', options: OPTIONS }) } })

test('a worker is due at its number of requests or up to a tenth earlier, and never where there is no limit', () => {
  const limit = (maxRequests: number, random: number) => requestLimit({ maxRequests }, random)
  for (const random of [0, 0.3, 0.999]) assert.ok(limit(1000, random) > 899 && limit(1000, random) <= 1000)
  assert.deepEqual([limit(1, 0.9), limit(0, 0.9)], [1, 0])
})

describe('a limit that workers reach as soon as they serve', () => {
  const MB = 1024 ** 2
  const limits = { maxRssBytes: 100 * MB, maxAgeMs: 0, maxRequests: 0 }

  function running (workers: number = 2) {
    const pool = simulate({ workers, options: { ...OPTIONS, recycle: limits } })
    pool.settle()
    return pool
  }

  function beDue (pool: Simulation, worker: number, cause: 'memory-limit' | 'max-requests' | 'app-request', mb = 0) {
    pool.feed({ type: 'worker-due', worker, cause, message: 'it is due', rssBytes: mb * MB })
  }

  /** For so long, with workers that are due 5 s after they are ready. */
  function runFor (pool: Simulation, minutes: number, servedMs = 5000) {
    const until = pool.at + minutes * 60_000
    while (pool.at < until) {
      pool.wait(servedMs)
      for (const id of pool.serving()) beDue(pool, id, 'memory-limit', 250)
      const next = Math.min(...[...pool.deadlines.values()].map(({ dueAt }) => dueAt))
      if (next <= pool.at) pool.passNextDeadline()
      pool.settle()
    }
  }
  const count = (pool: Simulation, type: string) => pool.types().filter((each) => each === type).length

  test('is told once, with what to set, and slows recycling down while all go on serving', () => {
    const pool = running()
    runFor(pool, 1)
    const atFirst = count(pool, 'worker.recycling')
    runFor(pool, 59)
    const inAll = count(pool, 'worker.recycling')
    assert.ok(atFirst <= 6 && inAll >= 14 && inAll <= 20, `${atFirst} in the first minute, ${inAll} in an hour`)
    const { cause, message } = pool.last('recycling.slowed')
    assert.deepEqual([pool.ready(), count(pool, 'recycling.slowed'), cause, message], [2, 1, 'memory-limit',
      'the limit recycle.maxRssBytes is 100 MB, but the app holds 250 MB soon after its start: set it to 393216000 (375 MB) or more, or to 0 for no limit; until then a worker is recycled only every few minutes, and at once above 375 MB'])
  })

  test('holds at what is set in its place: a worker above that is recycled without a wait', () => {
    const pool = running(1)
    const grow = (ms: number, mb: number) => {
      pool.wait(ms)
      const [id] = pool.serving()
      beDue(pool, id, 'memory-limit', mb)
      pool.settle()
      return pool.serving()[0] !== id
    }
    const told = () => count(pool, 'recycling.slowed')
    for (let n = 0; n < 6; n++) assert.equal(grow(5000, 250), n < 5)
    beDue(pool, pool.serving()[0], 'max-requests')
    assert.deepEqual([grow(10_000, 375), grow(25_000, 376), told()], [false, true, 1], 'over 375 MB')
    assert.deepEqual([grow(5000, 250), grow(5000, 600), told()], [false, true, 2], 'as soon as it serves')
    assert.match(pool.last('recycling.slowed').message, /set it to 943718400 \(900 MB\) or more/)
    assert.deepEqual([grow(5000, 600), grow(26_000, 901), told()], [false, true, 2])
    beDue(pool, pool.serving()[0], 'max-requests')
    assert.equal(grow(31_000, 101), true, 'one that waits for another limit')
  })

  test('begins anew with another limit', () => {
    const pool = running()
    runFor(pool, 10)
    const before = count(pool, 'worker.recycling')
    pool.feed({ type: 'configure', options: { ...OPTIONS, recycle: { ...limits, maxRssBytes: 200 * MB } } })
    assert.equal(pool.deadlines.has('recycle-pace:0'), false)
    runFor(pool, 1)
    // Two that have served for long, five without a wait, and one that has waited.
    assert.equal(count(pool, 'worker.recycling') - before, 8)
  })

  test('is none where workers have served for a while, or the app asks for it', () => {
    const pool = running()
    runFor(pool, 20, 31_000)
    for (let n = 0; n < 20; n++) {
      beDue(pool, pool.serving()[0], 'app-request')
      pool.settle()
    }
    assert.ok(count(pool, 'worker.recycling') > 30)
    assert.equal(pool.last('recycling.slowed'), undefined)
  })

  for (const [cause, limit, message] of [['max-age', { maxAgeMs: 3 },
    /^the limit recycle\.maxAgeMs is 3, so workers are replaced almost as soon as they serve: set it to 600000 /], [
    'max-requests',
    { maxRequests: 10 },
    /^the limit recycle\.maxRequests is 10, and a worker begins that many within 2 s: set it to 1500 or more/
  ]] as const)
    test(`may be ${cause}`, () => {
      const pool = simulate({ workers: 2, options: { ...OPTIONS, standby: 2, recycle: { ...limits, ...limit } } })
      pool.settle()
      for (let n = 0; n < 40 && !pool.last('recycling.slowed'); n++) {
        pool.wait(2000)
        if (cause === 'max-age') pool.passNextDeadline()
        else beDue(pool, pool.serving()[0], cause)
        pool.settle()
      }
      assert.match(pool.last('recycling.slowed').message, message)
      assert.deepEqual([pool.state.recycling, pool.ready()], [null, 2])
    })
})
