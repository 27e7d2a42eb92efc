import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OPTIONS, simulate } from '../../support/simulation.ts'

type Pool = ReturnType<typeof simulate>

const APP = 'http://localhost:3000'

function say (pool: Pool, worker: number, isIdle: boolean = false) {
  pool.feed({ type: 'worker-active', worker, resources: ['Timeout'], isIdle })
}

function listen (pool: Pool, worker: number, url: string = APP) {
  pool.feed({ type: 'worker-listening', worker, url, isFixed: true })
}

/** A deck whose one worker has been taken for no server. */
function bot (options = OPTIONS) {
  const pool = simulate({ workers: 1, options })
  pool.wait(5000)
  say(pool, 1, true)
  return pool
}

describe('an app that listens on nothing', () => {
  test('counts as ready once it has only waited for a while; that is said once, with the option', () => {
    const pool = simulate({ workers: 2 })
    for (const worker of [1, 2]) say(pool, worker)
    assert.equal(pool.ready(), 0)
    pool.wait(5000)
    for (const worker of [1, 2]) say(pool, worker, true)
    assert.equal(pool.ready(), 2)
    const [said, ...others] = pool.events.filter(({ type }) => type === 'worker.no-server')
    assert.deepEqual(others, [])
    assert.match(said.message,
      /^worker 1 \(slot 1\) does not listen after 5 s and counts as ready\. .*ready\.signal: online .*ready\.signal: listening/)
  })

  test('is not judged so soon where it listens meanwhile or where an earlier app of the data folder has listened', () => {
    for (const prepare of [(pool: Pool) => listen(pool, 1), (pool: Pool) => listen(pool, 2)]) {
      const pool = simulate({ workers: 2 })
      prepare(pool)
      say(pool, 1, true)
      assert.equal(pool.ready(), 0)
    }
    const pool = simulate({ workers: 1, start: { hasListened: true } })
    say(pool, 1, true)
    assert.equal(pool.ready(), 0, 'but at the end of its time')
    pool.passNextDeadline()
    assert.deepEqual([pool.ready(), pool.at], [1, 31_000])
  })

  test('is waited for to its end with ready.signal: listening, and has failed then', () => {
    const pool = bot({ ...OPTIONS, ready: { ...OPTIONS.ready, signal: 'listening' } })
    assert.equal(pool.ready(), 0)
    pool.passNextDeadline()
    assert.equal(pool.last('worker.draining').cause, 'boot-failure')
  })

  test('its successors have to be alive for 5 seconds before the old one goes, busy or not', () => {
    const pool = bot()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    const startedAt = pool.at
    pool.wait(250)
    say(pool, 2)
    assert.deepEqual(pool.serving(), [1])
    pool.passNextDeadline()
    assert.deepEqual([pool.serving(), pool.at - startedAt], [[2], 5000])
    assert.equal(pool.types().filter((type) => type === 'worker.no-server').length, 1)
  })

  test('one that dies within these has failed, and the old one stays', () => {
    const pool = bot()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    say(pool, 2)
    pool.exit(2, { code: 1 })
    assert.deepEqual([pool.serving(), pool.last('rollout.failed')?.type], [[1], 'rollout.failed'])
  })

  test('one that listens after all is a server from then on: its successors are waited for', () => {
    const pool = bot()
    listen(pool, 1)
    pool.feed({ type: 'worker-ready', worker: 1 })
    assert.match(pool.last('worker.listens-late').message,
      /^worker 1 \(slot 1\) listens after 5 s, but counted as ready before\. .*ready\.signal: listening/)
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    say(pool, 2, true)
    pool.wait(20_000)
    say(pool, 2, true)
    assert.deepEqual(pool.serving(), [1])
    listen(pool, 2)
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.deepEqual(pool.serving(), [2])
  })

  test('one that listens late while its successor starts already has that waited for too', () => {
    const pool = bot()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    say(pool, 2)
    listen(pool, 1)
    pool.passNextDeadline()
    assert.deepEqual([pool.serving(), pool.state.workers[2].state], [[1], 'starting'])
  })

  test('where one slot alone listens, the others are judged at the end of their time as before', () => {
    const pool = simulate({ workers: 2 })
    listen(pool, 1)
    pool.feed({ type: 'worker-ready', worker: 1 })
    say(pool, 2, true)
    assert.equal(pool.ready(), 1)
    pool.passNextDeadline()
    while (pool.ready() < 2) assert.ok(pool.passNextDeadline())
    pool.exit(2, { signal: 'SIGKILL' })
    say(pool, 3)
    pool.passNextDeadline()
    assert.equal(pool.ready(), 2, 'and the next one of its slot after 5 seconds')
  })
})
