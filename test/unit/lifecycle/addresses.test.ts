import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { listAddresses } from '../../../server/lifecycle/addresses.ts'
import { OPTIONS, simulate } from '../../support/simulation.ts'
import type { LifecycleOptions } from '../../../server/lifecycle/state.ts'

const APP = 'http://localhost:3000'

type Pool = ReturnType<typeof simulate>

function listen (pool: Pool, worker: number, ...urls: string[]) {
  for (const url of urls) pool.feed({ type: 'worker-listening', worker, url, isFixed: true })
}

function boot (pool: Pool, worker: number, ...urls: string[]) {
  listen(pool, worker, ...urls)
  pool.feed({ type: 'worker-ready', worker })
}

/** One worker that serves on the app's address. */
function running (options: LifecycleOptions = OPTIONS) {
  const pool = simulate({ workers: 1, options })
  boot(pool, 1, APP)
  return pool
}

describe('addresses', () => {
  test('one that all workers share is listed once, and stays while one of them listens; then the last ones stand', () => {
    const pool = simulate({ workers: 2 })
    boot(pool, 1, APP)
    boot(pool, 2, APP)
    listen(pool, 1, 'tcp://127.0.0.1:4001')
    assert.deepEqual(listAddresses(pool.state), [APP, 'tcp://127.0.0.1:4001'])
    pool.feed({ type: 'worker-closed', worker: 1, url: 'tcp://127.0.0.1:4001' })
    assert.deepEqual(listAddresses(pool.state), [APP])
    for (const worker of [1, 2]) pool.exit(worker, { code: 1 })
    assert.deepEqual(listAddresses(pool.state), [APP], 'while the next ones start')
    for (const worker of [3, 4]) pool.exit(worker, { code: 1 })
    assert.deepEqual(listAddresses(pool.state), [APP])
  })

  test('a worker that listens without end fills nothing, and each address is told once', () => {
    const pool = simulate({ workers: 1 })
    for (let port = 1; port <= 1000; port++) listen(pool, 1, `tcp://127.0.0.1:${port}`, `tcp://127.0.0.1:${port}`)
    assert.equal(listAddresses(pool.state).length, 32)
    assert.equal(pool.types().filter((type) => type === 'worker.listening').length, 32)
  })

  test('a new worker of a restart is ready once it listens where its predecessor does', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.equal(pool.state.workers[2].state, 'starting')
    listen(pool, 2, 'https://localhost:3000')
    assert.equal(pool.state.workers[2].state, 'ready', 'with TLS or without')
    assert.equal([...pool.deadlines.values()].some(({ deadline }) => deadline === 'addresses'), false)
  })

  test('a program of another language may take its time for the next port, also for one that came after it was ready', () => {
    const pool = simulate({ workers: 1,
      start: { release: { id: 'r1', createdAt: '', entry: '/srv/r1/app', path: '/srv/r1', runtime: 'other' } } })
    boot(pool, 1, APP)
    pool.feed({ type: 'worker-listening', worker: 1, url: 'http://localhost:3001', isFixed: true })
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    boot(pool, 2, 'http://localhost:3000')
    assert.equal(pool.state.workers[2].state, 'starting')
    assert.equal([...pool.deadlines.values()].some(({ deadline }) => deadline === 'addresses'), false)
    pool.feed({ type: 'worker-listening', worker: 2, url: 'http://localhost:3001', isFixed: true })
    assert.equal(pool.state.workers[2].state, 'ready')
  })

  test('one that was opened late is waited for as long as its predecessor has it, and given up in the end without a failure', () => {
    const LATE = 'http://localhost:9090'
    const pool = running()
    listen(pool, 1, LATE)
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    boot(pool, 2, APP)
    assert.equal(pool.state.workers[2].state, 'starting')
    listen(pool, 2, LATE)
    assert.equal(pool.state.workers[2].state, 'ready')

    const moved = running()
    listen(moved, 1, LATE)
    moved.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    boot(moved, 2, APP)
    moved.passNextDeadline()
    assert.deepEqual(moved.serving(), [2])
    assert.match(moved.last('worker.ready').message,
      /^nobody listens on http:\/\/localhost:9090 yet, as the worker before it did/)

    const alone = running()
    listen(alone, 1, LATE)
    alone.exit(1, { signal: 'SIGKILL' })
    boot(alone, 2, APP)
    assert.equal(alone.ready(), 1, 'nobody serves there any more')
  })

  test('one that listens elsewhere fails the restart three seconds later, and the old worker stays', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    const startedAt = pool.at
    boot(pool, 2, 'http://localhost:4000')
    pool.passNextDeadline()
    assert.equal(pool.at - startedAt, 3000)
    const { state, reason } = pool.last('rollout.failed').detail
    assert.deepEqual([state, reason], ['failed',
      'worker 2 (slot 1) listens on http://localhost:4000, but the worker before it on http://localhost:3000 (option ready.addresses: same)'])
    assert.deepEqual(pool.serving(), [1])
  })

  test('where its time to get ready is shorter than that, the reason is the same', () => {
    const pool = running({ ...OPTIONS, ready: { signal: 'listening', timeoutMs: 1000 } })
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    boot(pool, 2, 'http://localhost:4000')
    pool.passNextDeadline()
    assert.match(pool.last('rollout.failed').message, /listens on http:\/\/localhost:4000, but/)
  })

  test('an address that the worker was given, or has for itself, binds nobody; with "any" none does', () => {
    const pool = simulate({ workers: 1 })
    pool.feed({ type: 'worker-listening', worker: 1, url: 'http://localhost:34567', isFixed: false })
    pool.feed({ type: 'worker-ready', worker: 1 })
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.deepEqual(pool.serving(), [2])

    const free = running({ ...OPTIONS, ready: { ...OPTIONS.ready, addresses: 'any' } })
    free.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    boot(free, 2, 'http://localhost:4000')
    assert.deepEqual(free.serving(), [2])
  })

  test('with the last worker there the address is made free; whoever does not take it then has moved', () => {
    const pool = running()
    pool.exit(1, { signal: 'SIGKILL' })
    for (const worker of [2, 3]) {
      boot(pool, worker, 'http://localhost:4000')
      assert.equal(pool.ready(), 0)
      pool.passNextDeadline()
      if (pool.serving()[0] === 0) pool.passNextDeadline()
    }
    boot(pool, 4, 'http://localhost:4000')
    assert.deepEqual([pool.serving(), pool.ready()], [[4], 1])
  })

  describe('a path that is named after its process', () => {
    const start = (pool: Pool, worker: number) => {
      pool.feed({ type: 'worker-forked', worker, pid: 4000 + worker })
      boot(pool, worker, `unix:/tmp/runtimes/${4000 + worker}/socket`)
    }

    test('is not expected of the next worker once its own has ended', () => {
      const pool = simulate({ workers: 1 })
      start(pool, 1)
      pool.exit(1, { signal: 'SIGKILL' })
      if (pool.serving()[0] === 0) pool.passNextDeadline()
      start(pool, 2)
      assert.deepEqual([pool.serving(), pool.ready()], [[2], 1])
    })

    test('nor where the old worker ends first', () => {
      const pool = simulate({ workers: 1, options: { ...OPTIONS, rollout: { order: 'stop-first' } } })
      start(pool, 1)
      pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
      pool.exit(1, { code: 0 })
      start(pool, 2)
      assert.deepEqual([pool.serving(), pool.ready(), pool.last('rollout.succeeded')?.type], [[2], 1,
        'rollout.succeeded'])
    })

    test('keeps the old worker while it serves, and the reason says what to set', () => {
      const pool = simulate({ workers: 1 })
      start(pool, 1)
      pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
      start(pool, 2)
      pool.passNextDeadline()
      assert.match(pool.last('rollout.failed').message, /rollout\.order: stop-first/)
      assert.deepEqual(pool.serving(), [1])
    })
  })

  test('while another worker listens there it is never given up', () => {
    const pool = simulate({ workers: 2 })
    for (const worker of [1, 2]) boot(pool, worker, APP)
    pool.exit(1, { signal: 'SIGKILL' })
    for (let death = 0; death < 4; death++) {
      boot(pool, pool.serving()[0], 'http://localhost:4000')
      while (pool.serving()[0] !== 0 && pool.state.workers[pool.serving()[0]].report) pool.passNextDeadline()
      while (pool.serving()[0] === 0) pool.passNextDeadline()
    }
    assert.equal(pool.ready(), 1)
  })
})

describe('apps that do not listen', () => {
  const SILENT = { type: 'worker-active' as const, worker: 1, resources: ['PipeWrap', 'Timeout'] }

  test('one that has something to do counts as ready when its time is over, which is said of the first worker alone', () => {
    const pool = simulate({ workers: 2 })
    for (const worker of [1, 2]) pool.feed({ ...SILENT, worker })
    pool.passNextDeadline()
    pool.passNextDeadline()
    assert.equal(pool.ready(), 2)
    assert.equal(pool.types().filter((type) => type === 'worker.no-server').length, 1)
  })

  for (const [what, ready, also] of [['has nothing but its channel', {},
    (pool) => pool.feed({ ...SILENT, resources: ['PipeWrap', 'TTYWrap'] })], ['is to be asked over HTTP', {
    path: '/health'
  }], ['is to say that it is ready', { signal: 'message' }], ['listens on something', {},
    (pool) => listen(pool, 1, APP)]] as [string, Partial<LifecycleOptions['ready']>, ((pool: Pool) => void)?][])
  {
    test(`one that ${what} is not ready`, () => {
      const pool = simulate({ workers: 1, options: { ...OPTIONS, ready: { ...OPTIONS.ready, ...ready } } })
      pool.feed(SILENT)
      also?.(pool)
      pool.passNextDeadline()
      assert.equal(pool.last('worker.draining').cause, 'boot-failure')
    })
  }

  test('a release that does not listen any more where the one before did never replaces it', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'test' })
    pool.feed({ ...SILENT, worker: 2 })
    pool.passNextDeadline()
    assert.equal(pool.last('rollout.failed').detail.state, 'failed')
    assert.deepEqual(pool.serving(), [1])
  })
})
