import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { OPTIONS, simulate } from '../../support/simulation.ts'

describe('pool', () => {
  test('runs once every slot has a ready worker', () => {
    const pool = simulate({ workers: 2 })
    pool.feed({ type: 'worker-ready', worker: 1 })
    assert.equal(pool.state.phase, 'starting')
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.equal(pool.state.phase, 'running')
    assert.equal(snapshotOf(pool.state).readyWorkers, 2)
  })

  test('replaces a killed worker at once, and the next death in a row after 100 ms, 200 ms, 400 ms', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    const delays: number[] = []
    for (let death = 0; death < 4; death++) {
      pool.exit(pool.serving()[0], { signal: 'SIGKILL' })
      delays.push(pool.last('worker.restarted').detail.delayMs)
      if (Number(delays.at(-1)) > 0) pool.passNextDeadline()
      pool.settle()
    }
    assert.deepEqual(delays, [0, 100, 200, 400])
    assert.equal(pool.last('worker.exited').cause, 'killed')
    assert.equal(snapshotOf(pool.state).workers[0].restarts, 4)
  })

  test('shows a slot that waits out its backoff, with the time of the next try', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    pool.exit(1, { code: 1 })
    pool.exit(2, { code: 1 })
    const [row] = snapshotOf(pool.state).workers
    assert.equal(row.state, 'backoff')
    assert.equal(row.id, null)
    assert.equal(Date.parse(String(row.retryAt)), pool.at + 100)
  })

  test('says crash-looping when the intensity is exceeded, goes on trying, and forgives after a minute up', () => {
    const pool = simulate({ workers: 1 })
    for (let death = 0; death < 6; death++) {
      pool.exit(pool.serving()[0], { code: 1 })
      if (pool.serving()[0] === 0) pool.passNextDeadline()
    }
    assert.equal(pool.types().filter((type) => type === 'worker.crash-looping').length, 1)
    assert.equal(snapshotOf(pool.state).workers[0].crashLooping, true)
    pool.settle()
    assert.equal(pool.ready(), 1)
    assert.equal(snapshotOf(pool.state).workers[0].crashLooping, true)
    pool.passNextDeadline()
    assert.equal(pool.types().at(-1), 'worker.recovered')
    assert.equal(snapshotOf(pool.state).workers[0].crashLooping, false)
    pool.exit(pool.serving()[0], { code: 1 })
    assert.equal(pool.last('worker.restarted').detail.delayMs, 0)
  })

  test('tells a death before readiness from a crash, and an unexpected exit 0 from a wanted one', () => {
    const pool = simulate({ workers: 1 })
    pool.exit(1, { code: 1 })
    assert.equal(pool.last('worker.exited').cause, 'boot-failure')
    pool.settle()
    pool.exit(pool.serving()[0], { code: 0 })
    assert.equal(pool.last('worker.exited').cause, 'crash')
    assert.equal(pool.last('worker.exited').code, 0)
  })

  test('replaces a worker that is not ready in time; the message names worker, slot, time and option', () => {
    const pool = simulate({ workers: 1 })
    pool.passNextDeadline()
    assert.equal(pool.last('worker.draining').message,
      'worker 1 (slot 1) was not ready within 30 s (option ready.timeoutMs)')
    assert.deepEqual(pool.serving(), [2])
    pool.settle()
    assert.equal(pool.events.find(({ type }) => type === 'worker.exited')?.cause, 'boot-failure')
  })

  test('a worker whose app is asked says with its end what it last answered, or that nobody could be asked', () => {
    const ready = { signal: 'listening' as const, timeoutMs: 500, path: '/health', warmup: ['/'] }
    const pool = simulate({ workers: 2, options: { ...OPTIONS, ready } })
    pool.feed({ type: 'worker-probed', worker: 1, text: 'GET /health answered 500' })
    pool.feed({ type: 'worker-probed', worker: 1, text: 'GET /health answered 503 (no cache)' })
    pool.passNextDeadline()
    assert.equal(pool.last('worker.draining').message,
      'worker 1 (slot 1) was not ready within 500 ms (option ready.timeoutMs): GET /health answered 503 (no cache)')
    pool.passNextDeadline()
    assert.equal(pool.last('worker.draining').message,
      'worker 2 (slot 2) was not ready within 500 ms (option ready.timeoutMs): nobody could be asked for /health, as no HTTP server of the app has listened')
    pool.exit(1, { code: 0 })
    assert.match(pool.last('worker.exited').message,
      /exited with code 0 \(worker 1 .* GET \/health answered 503 \(no cache\)\)$/)
  })

  test('a worker that has to say that it is ready has not done so in time: what it says of itself is told', () => {
    const pool = simulate({ workers: 1, options: { ...OPTIONS, ready: { signal: 'notify', timeoutMs: 500 } } })
    pool.feed({ type: 'worker-status-text', worker: 1, text: 'loading 3 of 9' })
    pool.passNextDeadline()
    assert.equal(pool.last('worker.draining').message,
      'worker 1 (slot 1) was not ready within 500 ms (option ready.timeoutMs): it has not said READY=1 (option ready.signal: notify): its status is "loading 3 of 9"')
  })

  test('a worker that says that it stops is replaced at once, and no failure, unless it may end by itself', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    pool.wait(2000)
    pool.feed({ type: 'worker-stopping', worker: 1 })
    assert.deepEqual([pool.serving(), pool.last('worker.draining').cause, pool.last('worker.restarted').detail.delayMs],
      [[2], 'app-request', 0])
    pool.exit(1, { code: 0 })
    assert.deepEqual([pool.last('worker.exited').cause, pool.last('worker.exited').message], ['app-request',
      'worker 1 (slot 1) ended, as it has said that it stops'])
    const job = simulate({ workers: 1, options: { ...OPTIONS, restart: { ...OPTIONS.restart, policy: 'never' } } })
    job.settle()
    job.feed({ type: 'worker-stopping', worker: 1 })
    job.exit(1, { code: 0 })
    assert.equal(job.last('worker.exited').cause, 'finished')
  })

  test('a worker that was warmed up says so, and what failed then is told without any other effect', () => {
    const pool = simulate({ workers: 2 })
    pool.feed({ type: 'worker-ready', worker: 1, probe: 'GET /health answered 200',
      warmupFailed: '1 of 2 warm-up requests failed: GET /a answered 500' })
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.deepEqual(pool.types().slice(-3), ['worker.ready', 'worker.warm-up-failed', 'worker.ready'])
    assert.deepEqual([pool.last('worker.warm-up-failed').message, pool.ready()], [
      '1 of 2 warm-up requests failed: GET /a answered 500',
      2
    ])
    assert.equal(pool.events.find(({ type }) => type === 'worker.ready')?.message, 'GET /health answered 200')
  })

  test('drains, then terminates, then kills: 30 s and 5 s by default', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    pool.feed({ type: 'stop', actor: 'signal' })
    const process = pool.processes.get(1)
    assert.deepEqual([process?.isDraining, process?.isTerminated, process?.isKilled], [true, false, false])
    const stoppedAt = pool.at
    pool.passNextDeadline()
    assert.equal(pool.at - stoppedAt, 30_000)
    assert.deepEqual([process?.isTerminated, process?.isKilled], [true, false])
    pool.passNextDeadline()
    assert.equal(pool.at - stoppedAt, 35_000)
    assert.equal(process?.isKilled, true)
    assert.equal(pool.isFinished, false)
    pool.exit(1, { signal: 'SIGKILL' })
    assert.equal(pool.isFinished, true)
    assert.equal(pool.last('worker.exited').cause, 'shutdown')
    assert.equal(pool.last('worker.exited').actor, 'signal')
  })

  test('scales up and down from the highest slot, and tells from and to', () => {
    const pool = simulate({ workers: 1 })
    pool.settle()
    pool.feed({ type: 'scale', workers: 3, actor: 'api' })
    pool.settle()
    assert.equal(pool.ready(), 3)
    pool.feed({ type: 'scale', workers: 2, actor: 'api' })
    pool.settle()
    assert.deepEqual(pool.serving(), [1, 2])
    assert.deepEqual(pool.last('scale.changed').detail, { from: 3, to: 2 })
    assert.equal(pool.last('worker.exited').cause, 'scale-down')
    const count = pool.events.length
    pool.feed({ type: 'scale', workers: 2, actor: 'api' })
    assert.equal(pool.events.length, count)
  })

  test('forks nothing any more once it is stopping, and refuses what is asked of it', () => {
    const pool = simulate({ workers: 2 })
    pool.settle()
    pool.feed({ type: 'stop', actor: 'signal' })
    assert.equal(pool.socketsClosed, true)
    assert.equal(pool.feed({ type: 'scale', workers: 5, actor: 'api' })?.code, 'stopping')
    pool.exit(1, { signal: 'SIGKILL' })
    assert.deepEqual([...pool.processes.keys()], [2])
    pool.settle()
    assert.equal(pool.isFinished, true)
  })

  test('makes an unexpected event of what fits no transition', () => {
    const pool = simulate({ workers: 1 })
    pool.feed({ type: 'worker-ready', worker: 99 })
    assert.equal(pool.types().at(-1), 'unexpected')
    assert.match(pool.last('unexpected').message, /worker-ready of worker 99/)
  })
})
