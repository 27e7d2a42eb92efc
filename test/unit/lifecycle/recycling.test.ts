import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { requestLimit } from '../../../server/lifecycle/recycling.ts'
import { OPTIONS, simulate } from '../../support/simulation.ts'

const due = (
  worker: number
) => ({ type: 'worker-due', worker, cause: 'memory-limit', message: `worker ${worker} is too large` } as const)

function running ({ workers = 2, options = OPTIONS } = {}) {
  const pool = simulate({ workers, options })
  pool.settle()
  return pool
}

describe('recycling', () => {
  test('starts the new worker first, and the old one drains once that is ready', () => {
    const pool = running()
    pool.feed(due(1))
    assert.deepEqual([pool.serving(), pool.processes.get(1)?.isDraining, pool.state.slots[0].candidate], [[1, 2], false,
      3])
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual([pool.serving(), pool.processes.get(1)?.isDraining], [[3, 2], true])
    pool.settle()
    const { cause, actor, rollout, message } = pool.last('worker.exited')
    assert.deepEqual([cause, actor, rollout], ['memory-limit', 'system', null])
    assert.match(message, /too large/)
    assert.equal(pool.last('worker.restarted'), undefined, 'it is no death')
  })

  test('never touches two slots at once, and forgets none', () => {
    const pool = running({ workers: 3 })
    for (const worker of [1, 2, 3]) pool.feed(due(worker))
    assert.equal(pool.processes.size, 4)
    pool.feed({ type: 'worker-ready', worker: 4 })
    assert.equal(pool.processes.size, 4, 'the next one waits until the old one is gone')
    pool.settle()
    assert.deepEqual(pool.serving(), [4, 5, 6])
  })

  test('happens by age, up to a tenth earlier', () => {
    const pool = running({ workers: 1, options: { ...OPTIONS, recycle: { maxAgeMs: 30_000 } } })
    const readyAt = pool.at
    pool.passNextDeadline()
    assert.equal(pool.at - readyAt, 28_500)
    pool.settle()
    assert.deepEqual([pool.last('worker.exited').cause, pool.serving()], ['max-age', [2]])
    const limit = (maxRequests: number, random: number) => requestLimit({ maxRequests }, random)
    for (const random of [0, 0.3, 0.999]) assert.ok(limit(1000, random) > 899 && limit(1000, random) <= 1000)
    assert.deepEqual([limit(1, 0.9), limit(0, 0.9)], [1, 0])
  })

  test('by an age that is set while workers serve counts from when they became ready, and one that is lifted ends what has not begun', () => {
    const pool = running({ workers: 2 })
    const recycle = (maxAgeMs: number) =>
      pool.feed({ type: 'configure', options: { ...OPTIONS, recycle: { maxAgeMs } } })
    assert.equal(pool.deadlines.has('age:1'), false)
    const readyAt = Date.parse(String(pool.state.workers[1].readyAt))
    recycle(3_600_000)
    assert.equal(pool.deadlines.get('age:1')?.dueAt, readyAt + 3_420_000)
    recycle(0)
    assert.deepEqual([pool.deadlines.has('age:1'), pool.deadlines.has('age:2')], [false, false])
    recycle(1)
    pool.passNextDeadline()
    pool.passNextDeadline()
    assert.deepEqual([pool.state.recycling?.worker, pool.state.workers[2].due?.cause], [1, 'max-age'])
    recycle(0)
    assert.deepEqual([pool.state.recycling?.worker, pool.state.workers[2].due], [1, null], 'what has begun goes on')
  })

  test('by memory is forgotten where the limit is another one before it has begun', () => {
    const pool = running({ workers: 2 })
    for (const worker of [1, 2]) pool.feed(due(worker))
    pool.feed({ type: 'configure', options: OPTIONS })
    assert.equal(pool.state.workers[2].due?.cause, 'memory-limit')
    pool.feed({ type: 'configure', options: { ...OPTIONS, recycle: { maxAgeMs: 0, maxRssBytes: 1e9 } } })
    assert.deepEqual([pool.state.recycling?.worker, pool.state.workers[2].due], [1, null])
  })

  test('does not forget one that has reached its limit before it was ready', () => {
    const pool = simulate({ workers: 1 })
    pool.feed(due(1))
    assert.equal(pool.state.recycling, null)
    pool.settle()
    assert.deepEqual([pool.last('worker.exited').cause, pool.serving()], ['memory-limit', [2]])
  })

  test('waits for a rollout to end', () => {
    const pool = running()
    pool.feed({ type: 'restart-worker', worker: 2, actor: 'api' })
    pool.feed(due(1))
    assert.equal(pool.state.recycling, null)
    pool.settle()
    assert.equal(pool.last('worker.recycling').worker, 1)
    assert.ok(
      pool.events.findIndex(({ type }) => type === 'rollout.succeeded') < pool.events.findIndex(({ type }) =>
        type === 'worker.recycling'
      )
    )
  })

  for (const [name, command, cause] of [['a restart', { type: 'rollout', kind: 'restart' }, 'restart'], ['an upgrade', {
    type: 'upgrade',
    execPath: null
  }, 'upgrade'], ['a stop', { type: 'stop' }, 'shutdown'], ['a scale-down of its slot', { type: 'scale', workers: 1 },
    'scale-down']] as const)
  {
    test(`makes way for ${name}`, () => {
      const pool = running()
      pool.feed(due(2))
      assert.equal(pool.feed({ ...command, actor: 'api' }), null)
      assert.equal(pool.processes.get(3)?.isDraining, true)
      assert.equal(pool.state.recycling, null)
      pool.exit(3, { code: 0 })
      assert.equal(pool.last('worker.exited').cause, cause)
      pool.settle()
    })
  }

  test('lets the old worker go on if the new one fails, and tries again later', () => {
    const pool = running()
    pool.feed(due(1))
    pool.exit(3, { code: 1 })
    assert.deepEqual([pool.serving(), pool.ready()], [[1, 2], 2])
    assert.match(pool.last('worker.recycle-failed').message, /worker 1 \(slot 1\) is not recycled/)
    const before = pool.at
    while (pool.state.slots[0].candidate === null) assert.ok(pool.passNextDeadline())
    assert.equal(pool.at - before, 30_000)
    pool.settle()
    assert.deepEqual(pool.serving(), [4, 2])
  })

  test('gives the slot to the new worker at once when the old one dies meanwhile', () => {
    const pool = running()
    pool.feed(due(1))
    pool.exit(1, { code: 1 })
    assert.deepEqual([pool.serving(), pool.processes.size], [[3, 2], 2])
    assert.equal(pool.last('worker.exited').cause, 'crash')
    pool.settle()
    assert.equal(pool.ready(), 2)
  })
})

describe('a limit that workers reach as soon as they serve', () => {
  const limits = { maxRssBytes: 100 * 1024 ** 2, maxAgeMs: 0, maxRequests: 0 }

  /**
   * For so long, with workers that are due 5 s after they are ready.
   * @returns when one was recycled, in seconds since the first
   */
  function runFor (pool: ReturnType<typeof running>, minutes: number, servedMs = 5000): number[] {
    const until = pool.at + minutes * 60_000
    const times: number[] = []
    while (pool.at < until) {
      const seen = pool.events.length
      pool.wait(servedMs)
      for (const id of pool.serving()) pool.feed({ ...due(Number(id)), rssBytes: 250 * 1024 ** 2 })
      const next = Math.min(...[...pool.deadlines.values()].map(({ dueAt }) => dueAt))
      if (next <= pool.at) pool.passNextDeadline()
      pool.settle()
      if (pool.events.slice(seen).some(({ type }) => type === 'worker.recycling')) times.push(pool.at)
    }
    return times.map((time) => Math.round((time - times[0]) / 1000))
  }
  const recyclings = (pool: ReturnType<typeof running>) =>
    pool.types().filter((type) => type === 'worker.recycling').length

  test('is told once, with what to set, and slows recycling down while all go on serving', () => {
    const pool = running({ options: { ...OPTIONS, recycle: limits } })
    runFor(pool, 1)
    assert.ok(recyclings(pool) <= 6, `${recyclings(pool)} in the first minute`)
    runFor(pool, 59)
    assert.ok(recyclings(pool) >= 14 && recyclings(pool) <= 20, `${recyclings(pool)} in an hour`)
    assert.equal(pool.ready(), 2)
    assert.equal(pool.types().filter((type) => type === 'recycling.slowed').length, 1)
    const { cause, message } = pool.last('recycling.slowed')
    assert.deepEqual([cause, message], ['memory-limit',
      'the limit recycle.maxRssBytes is 100 MB, but the app holds 250 MB soon after its start: set it to 393216000 (375 MB) or more, or to 0 for no limit; until then a worker is recycled only every few minutes, and at once above 375 MB'])
  })

  test('holds at what is set in its place: a worker above that is recycled without a wait', () => {
    const pool = running({ workers: 1, options: { ...OPTIONS, recycle: limits } })
    const grow = (ms: number, MB: number) => {
      pool.wait(ms)
      const [id] = pool.serving()
      pool.feed({ ...due(Number(id)), rssBytes: MB * 1024 ** 2 })
      pool.settle()
      return pool.serving()[0] !== id
    }
    const told = () => pool.events.filter(({ type }) => type === 'recycling.slowed').length
    for (let n = 0; n < 6; n++) assert.equal(grow(5000, 250), n < 5)
    const maxRequests = { ...due(Number(pool.serving()[0])), cause: 'max-requests' as const }
    pool.feed(maxRequests)
    assert.deepEqual([grow(10_000, 375), grow(25_000, 376), told()], [false, true, 1], 'over 375 MB')
    assert.deepEqual([grow(5000, 250), grow(5000, 600), told()], [false, true, 2], 'as soon as it serves')
    assert.match(pool.last('recycling.slowed').message, /set it to 943718400 \(900 MB\) or more/)
    assert.deepEqual([grow(5000, 600), grow(26_000, 901), told()], [false, true, 2])
    pool.feed(maxRequests)
    assert.equal(grow(31_000, 101), true, 'one that waits for another limit')
  })

  test('begins anew with another limit', () => {
    const pool = running({ options: { ...OPTIONS, recycle: limits } })
    runFor(pool, 10)
    const before = recyclings(pool)
    pool.feed({ type: 'configure', options: { ...OPTIONS, recycle: { ...limits, maxRssBytes: 200 * 1024 ** 2 } } })
    assert.equal(pool.deadlines.has('recycle-pace:0'), false)
    runFor(pool, 1)
    // Two that have served for long, five without a wait, and one that has waited.
    assert.equal(recyclings(pool) - before, 8)
  })

  test('is none where workers have served for a while, or the app asks for it', () => {
    const pool = running({ options: { ...OPTIONS, recycle: limits } })
    runFor(pool, 20, 31_000)
    for (let n = 0; n < 20; n++) {
      pool.feed({ ...due(Number(pool.serving()[0])), cause: 'app-request' })
      pool.settle()
    }
    assert.ok(recyclings(pool) > 30)
    assert.equal(pool.last('recycling.slowed'), undefined)
  })

  for (const [cause, recycle, message] of [['max-age', { ...limits, maxAgeMs: 3 },
    /^the limit recycle\.maxAgeMs is 3, so workers are replaced almost as soon as they serve: set it to 600000 /], [
    'max-requests',
    { ...limits, maxRequests: 10 },
    /^the limit recycle\.maxRequests is 10, and a worker begins that many within 2 s: set it to 1500 or more/
  ]] as const) {
    test(`may be ${cause}`, () => {
      const pool = running({ options: { ...OPTIONS, standby: 2, recycle } })
      for (let n = 0; n < 40 && !pool.last('recycling.slowed'); n++) {
        pool.wait(2000)
        if (cause === 'max-age') pool.passNextDeadline()
        else pool.feed({ ...due(Number(pool.serving()[0])), cause })
        pool.settle()
      }
      assert.match(pool.last('recycling.slowed').message, message)
      assert.deepEqual([pool.state.recycling, pool.ready()], [null, 2])
    })
  }
})
