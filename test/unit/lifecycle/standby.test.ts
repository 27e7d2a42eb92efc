import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { releasesInUse, snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, simulate } from '../../support/simulation.ts'

const CRASH = { code: 1 }

function running (
  { standby = 1, workers = 2, ...more }: { standby?: number, workers?: number,
    releases?: { onDrift: 'mark' | 'hold' } } = {}
) {
  const pool = simulate({ workers, options: { ...OPTIONS, standby, ...more } })
  pool.settle()
  return pool
}

const standing = (pool: ReturnType<typeof simulate>): [number, string, string][] =>
  snapshotOf(pool.state).standby.workers.map(({ id, state, release }) => [id, state, release])
const workersOf = (pool: ReturnType<typeof simulate>) =>
  snapshotOf(pool.state).workers.map(({ id, slot, state }) => [id, slot, state])

describe('workers on standby', () => {
  test('are forked one after the other, once every slot is served', () => {
    const pool = simulate({ workers: 2, options: { ...OPTIONS, standby: 2 } })
    pool.feed({ type: 'worker-ready', worker: 1 })
    assert.deepEqual(standing(pool), [])
    pool.feed({ type: 'worker-ready', worker: 2 })
    assert.deepEqual(standing(pool), [[3, 'starting', 'r1']])
    pool.feed({ type: 'worker-held', worker: 3 })
    assert.deepEqual(standing(pool), [[3, 'standby', 'r1'], [4, 'starting', 'r1']])
    pool.feed({ type: 'worker-held', worker: 4 })
    const { standby, workers, readyWorkers } = snapshotOf(pool.state)
    assert.deepEqual([standby.wanted, standby.ready, standby.problem, readyWorkers], [2, 2, null, 2])
    assert.deepEqual(workers.map(({ id }) => id), [1, 2], 'they are none of the slots')
    assert.deepEqual([...pool.deadlines.keys()].filter((key) => key.startsWith('ready:')), [],
      'nobody is in a hurry any more')
  })

  test('are none unless they are wanted', () => {
    assert.deepEqual(standing(running({ standby: 0 })), [])
    const pool = simulate()
    pool.settle()
    assert.deepEqual(standing(pool), [])
  })

  test('take over the slot of a worker that dies, and the next one is forked once that is ready', () => {
    const pool = running()
    pool.exit(2, { signal: 'SIGKILL' })
    assert.deepEqual(workersOf(pool), [[1, 1, 'ready'], [3, 2, 'starting']])
    assert.equal(pool.processes.get(3)?.slot, 2)
    assert.deepEqual(standing(pool), [])
    const { slot, worker, message } = pool.last('worker.promoted')
    assert.deepEqual([slot, worker, message], [2, 3, 'standby worker 3 took over slot 2'])
    assert.ok(pool.deadlines.has('ready:3'))
    pool.feed({ type: 'worker-ready', worker: 3 })
    assert.deepEqual(standing(pool), [[4, 'starting', 'r1']])
    assert.deepEqual(snapshotOf(pool.state).workers.map(({ id, logSlot, restarts }) => [id, logSlot, restarts]), [[1, 1,
      0], [3, 0, 1]])
  })

  test('take over from who hangs, is ended by an exception, or by an operator', () => {
    for (const input of [{ type: 'worker-silent', message: 'silent' }, { type: 'worker-crashing', errorName: 'Error',
      errorMessage: 'boom' }, { type: 'kill-worker', actor: 'api' }] as const)
    {
      const pool = running()
      pool.feed({ ...input, worker: 1 })
      assert.deepEqual(pool.serving(), [3, 2], input.type)
    }
  })

  test('are not waited for where they still load', () => {
    const pool = running({ standby: 0 })
    pool.feed({ type: 'configure', options: { ...pool.state.options, standby: 1 } })
    assert.deepEqual(standing(pool), [[3, 'starting', 'r1']])
    pool.exit(1, CRASH)
    assert.deepEqual(pool.serving(), [4, 2])
    assert.equal(pool.last('worker.promoted'), undefined)
  })

  test('count as young once they have a slot: a crash loop has its backoff', () => {
    const pool = running({ workers: 1, standby: 3 })
    pool.wait(10 * 60_000)
    pool.exit(1, CRASH)
    assert.ok(pool.last('worker.promoted'))
    pool.exit(pool.serving()[0], CRASH)
    assert.notEqual(pool.state.slots[0].retryAt, null)
    assert.equal(pool.types().filter((type) => type === 'worker.promoted').length, 1)
  })

  test('that are not ready in their slot in time are replaced as any worker', () => {
    const pool = running({ workers: 1 })
    pool.exit(1, CRASH)
    while (pool.state.workers[2]?.state === 'starting') assert.ok(pool.passNextDeadline())
    assert.match(pool.last('worker.draining').message, /^worker 2 \(slot 1\) was not ready within 30 s/)
  })
})

describe('a worker on standby that dies', () => {
  test('is replaced with the usual backoff, and ends no worker of a slot', () => {
    const pool = running()
    pool.exit(3, CRASH)
    assert.match(pool.last('worker.exited').message, /^standby worker 3 exited with code 1/)
    assert.deepEqual(standing(pool), [[4, 'starting', 'r1']])
    pool.exit(4, CRASH)
    assert.deepEqual(standing(pool), [])
    assert.ok(pool.deadlines.has('standby:0'))
    const at = pool.at
    pool.passNextDeadline()
    assert.ok(pool.at - at >= 80, 'after a while')
    assert.deepEqual(standing(pool), [[5, 'starting', 'r1']])
    assert.deepEqual(workersOf(pool), [[1, 1, 'ready'], [2, 2, 'ready']])
  })

  test('never loops hot, and the loop is told once', () => {
    const pool = running({ standby: 2 })
    const deathless = pool.at
    for (let deaths = 0; deaths < 12; deaths++) {
      const [[id] = []] = standing(pool)
      if (id !== undefined) pool.feed({ type: 'worker-crashing', worker: id, errorName: 'Error', errorMessage: 'boom' })
      if (id !== undefined) pool.exit(id, CRASH)
      while (standing(pool).length === 0) assert.ok(pool.passNextDeadline())
    }
    assert.ok(pool.at - deathless > 60_000)
    const told = pool.events.filter(({ type }) => type === 'worker.crash-looping')
    assert.deepEqual(told.map(({ message, slot }) => [message, slot]), [[
      'the standby workers crash-loop: more than 5 restarts within a minute; the next ones wait longer',
      undefined
    ]])
  })

  test('leaves a deploy alone', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.exit(3, CRASH)
    pool.settle()
    assert.ok(pool.last('rollout.succeeded'))
  })

  test('because it hangs is killed, and may be killed by an operator', () => {
    const pool = running()
    pool.feed({ type: 'worker-silent', worker: 3, message: 'standby worker 3: silent' })
    assert.ok(pool.processes.get(3)?.isKilled)
    pool.exit(3, { signal: 'SIGKILL' })
    assert.equal(pool.last('worker.exited').cause, 'hung')
    pool.settle()
    pool.feed({ type: 'kill-worker', worker: 4, actor: 'api' })
    assert.deepEqual(standing(pool), [[4, 'stopping', 'r1'], [5, 'starting', 'r1']])
  })

  test('because it has grown too large is replaced', () => {
    const pool = running()
    pool.feed({ type: 'worker-due', worker: 3, cause: 'memory-limit', message: 'large' })
    pool.settle()
    assert.equal(pool.last('worker.exited').cause, 'memory-limit')
    assert.deepEqual(standing(pool), [[4, 'standby', 'r1']])
  })
})

describe('an app that cannot stand by', () => {
  test('as it does not listen is tried once with each release', () => {
    const pool = running({ standby: 0 })
    pool.feed({ type: 'configure', options: { ...pool.state.options, standby: 1 } })
    while (!pool.last('standby.useless')) assert.ok(pool.passNextDeadline())
    assert.match(pool.last('standby.useless').message,
      /^standby worker 3 did not listen within 30 s \(option ready.timeoutMs\)/)
    pool.settle()
    assert.deepEqual([standing(pool), pool.deadlines.has('standby:0')], [[], false])
    assert.match(String(snapshotOf(pool.state).standby.problem), /did not listen/)
    pool.exit(1, CRASH)
    pool.settle()
    assert.deepEqual(standing(pool), [])

    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.settle()
    assert.deepEqual(standing(pool).map(([, state, release]) => [state, release]), [['standby', 'r2']])
    assert.equal(snapshotOf(pool.state).standby.problem, null)
  })

  test('as it asks for its slot while it loads has none', () => {
    const pool = running()
    pool.feed({ type: 'worker-read-slot', worker: 3, name: 'NODE_APP_INSTANCE', place: '/srv/r1/app.js:3:7' })
    pool.settle()
    assert.equal(pool.last('standby.useless').message,
      'standby worker 3 has read NODE_APP_INSTANCE while it loaded (/srv/r1/app.js:3:7), and a standby worker has no slot yet: none is kept until the next release')
    assert.deepEqual(standing(pool), [])
    pool.feed({ type: 'worker-read-slot', worker: 1, name: 'NODE_APP_INSTANCE', place: null })
    assert.equal(pool.ready(), 2, 'whoever has a slot may ask for it')
  })
})

describe('in a rollout', () => {
  test('a worker on standby is only for slots of its release', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api',
      strategy: { limits: { crashes: 9 } } })
    pool.feed({ type: 'worker-ready', worker: 4 })
    pool.exit(1, { code: 0 })
    assert.equal(pool.state.slots[0].release, 'r2')
    pool.exit(4, CRASH)
    assert.equal(pool.last('worker.promoted'), undefined)
    pool.exit(2, CRASH)
    assert.deepEqual([pool.last('worker.promoted').slot, pool.last('worker.promoted').worker], [2, 3])
  })

  test('those of the old release are ended once it has succeeded, and new ones forked', () => {
    const pool = running({ standby: 2 })
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    assert.deepEqual(releasesInUse(pool.state), ['r1', 'r2'])
    assert.deepEqual(standing(pool), [[3, 'standby', 'r1'], [4, 'standby', 'r1']])
    pool.settle()
    assert.ok(pool.last('rollout.succeeded'))
    assert.deepEqual(standing(pool).map(([, state, release]) => [state, release]), [['standby', 'r2'], ['standby',
      'r2']])
    assert.deepEqual(
      pool.events.filter(({ type, worker }) => type === 'worker.exited' && [3, 4].includes(worker)).map(({ cause }) =>
        cause
      ),
      ['deploy', 'deploy']
    )
  })

  test('that fails they stay as they are', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.settle({ isHealthy: ({ release }) => release === 'r1' })
    assert.ok(pool.last('rollout.failed'))
    assert.deepEqual(standing(pool), [[3, 'standby', 'r1']])
  })

  test('to the same release none is used that was loaded before, and all are renewed', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
    pool.exit(1, CRASH)
    assert.equal(pool.last('worker.promoted'), undefined)
    pool.settle()
    assert.ok(pool.last('rollout.succeeded'))
    assert.equal(standing(pool).length, 1)
    assert.ok(standing(pool)[0][0] > 3)
  })
})

describe('a master that leaves', () => {
  test('ends those on standby at once when it stops', () => {
    const pool = running()
    pool.feed({ type: 'stop', actor: 'signal' })
    assert.ok(pool.processes.get(3)?.isDraining)
    assert.equal(pool.deadlines.get('drain:3')?.dueAt, pool.at + 1000)
    pool.settle()
    assert.ok(pool.isFinished)
  })

  test('has none while the next one starts, and has them again where that fails', () => {
    const pool = running()
    pool.feed({ type: 'upgrade', execPath: null, actor: 'api' })
    pool.settle()
    assert.deepEqual(standing(pool), [])
    assert.equal(pool.last('worker.exited').cause, 'upgrade')
    pool.feed({ type: 'next-gone', reason: 'it was', lastWorker: 0, orphans: [] })
    pool.settle()
    assert.equal(standing(pool).length, 1)
  })
})

test('fewer are kept as soon as fewer are wanted', () => {
  const pool = running({ standby: 3 })
  pool.feed({ type: 'configure', options: { ...pool.state.options, standby: 1 } })
  pool.settle()
  assert.deepEqual(standing(pool), [[3, 'standby', 'r1']])
})

test('files that have changed are not loaded where they are not to be, and the one that stands by still is what was deployed', () => {
  const pool = running({ releases: { onDrift: 'hold' } as const })
  pool.drift = { r1: { kind: 'code', count: 1, files: ['/srv/r1/app.js'], since: null, by: null } }
  pool.exit(1, CRASH)
  pool.settle()
  assert.deepEqual([pool.serving(), pool.ready(), standing(pool)], [[3, 2], 2, []])
  pool.drift = {}
  assert.ok(pool.passNextDeadline())
  pool.settle()
  assert.equal(standing(pool).length, 1)
})
