import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, orphan, simulate } from '../../support/simulation.ts'
import type { Holds, LifecycleOptions } from '../../../server/lifecycle/state.ts'

type Pool = ReturnType<typeof simulate>

const KEPT_SHORTLY: LifecycleOptions = { ...OPTIONS, drain: { ...OPTIONS.drain, longLivedMs: 600_000 } }
const { longLivedMs, spreadMs, deadlineMs, idleGraceMs } = KEPT_SHORTLY.drain

function running ({ workers = 1, options = KEPT_SHORTLY } = {}) {
  const pool = simulate({ workers, options })
  pool.settle()
  return pool
}

function report (pool: Pool, worker: number, held: Partial<Holds> = { webSockets: 2 }) {
  return pool.feed({ type: 'worker-holds', worker,
    holds: { requests: 0, transfers: 0, webSockets: 0, eventStreams: 0, connections: 0, sessions: 0, ...held } })
}

/** Restarts all, and has the old workers keep two WebSockets each. */
function restartAndKeep (pool: Pool, held?: Partial<Holds>) {
  const old = pool.serving()
  pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
  while (pool.serving().some((id) => old.includes(id))) readyCandidates(pool)
  pool.wait(idleGraceMs)
  for (const id of old) report(pool, id, held)
  return old
}

/** Has the new workers get ready, and those that drain be kept. */
function readyCandidates (pool: Pool) {
  const { processes, state: { workers } } = pool
  for (const id of [...processes.keys()]) if (workers[id].state === 'starting') pool.becomeReady(id)
  for (const id of [...processes.keys()]) {
    if (workers[id].state !== 'draining' || workers[id].keptUntil) continue
    pool.wait(idleGraceMs)
    report(pool, id)
  }
}

/** Lets time go on, with a report of what is held before each deadline. */
function keepOn (pool: Pool, ms: number, worker: number) {
  const until = pool.at + ms
  while (pool.at < until) {
    const [next] = [...pool.deadlines.values()].sort((a, b) => a.dueAt - b.dueAt)
    if (!next || next.dueAt > until) return
    pool.wait(Math.max(0, next.dueAt - pool.at - 1))
    if (pool.state.workers[worker]?.state === 'draining') report(pool, worker)
    pool.passNextDeadline()
  }
}

const row = (pool: Pool, id: number) => snapshotOf(pool.state).workers.find((worker) => worker.id === id)

describe('an old worker', () => {
  test('is kept for its WebSockets while the rollout is over, until drain.longLivedMs; then it closes them, and is told to end', () => {
    const pool = running()
    const [old] = restartAndKeep(pool)
    assert.equal(pool.last('rollout.succeeded')?.rollout, 1)
    assert.deepEqual([row(pool, old)?.state, row(pool, old)?.holds?.webSockets], ['draining', 2])
    assert.equal(
      Date.parse(String(row(pool, old)?.keptUntil)) - Date.parse(String(pool.state.workers[old].drain?.since)),
      longLivedMs
    )
    assert.match(pool.last('worker.kept').message,
      /worker 1 \(slot 1\) is kept for 2 WebSockets, for 10 minutes at most$/)
    keepOn(pool, longLivedMs - 30_000, old)
    assert.equal(pool.processes.get(old)?.isTold, undefined)
    keepOn(pool, 30_000, old)
    assert.equal(pool.processes.get(old)?.isTold, 1012)
    assert.match(pool.last('worker.closing').message, /closes 2 WebSockets within 30 s, as it was kept for 10 minutes/)
    keepOn(pool, spreadMs + deadlineMs, old)
    assert.equal(pool.processes.get(old)?.isTerminated, true)
    pool.exit(old, { code: 0,
      unfinished: { requests: 0, connections: 0, closed: { webSockets: 2, eventStreams: 0, connections: 0 },
        isReported: false } })
    const { message, cause, detail } = pool.last('worker.exited')
    assert.deepEqual([cause, detail.closed.webSockets, detail.endedRequests], ['restart', 2, undefined])
    assert.match(message, /another worker replaces it; it has closed 2 WebSockets$/)
  })

  test('is waited for while a request is open, and until its idle connections are closed', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
    pool.becomeReady(2)
    report(pool, 1, { webSockets: 1 })
    assert.equal(pool.rollout?.done, false, 'a client may still send its next request')
    pool.wait(idleGraceMs)
    report(pool, 1, { webSockets: 1, requests: 1 })
    assert.equal(pool.rollout?.done, false)
    report(pool, 1, { transfers: 1 })
    assert.equal(pool.last('rollout.succeeded')?.rollout, 1)
  })

  test('that has only requests, or says nothing any more, is told to end at drain.deadlineMs', () => {
    for (const held of [{ requests: 3 }, null]) {
      const pool = running()
      pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
      pool.becomeReady(2)
      const begunAt = pool.at
      report(pool, 1, { requests: 1, webSockets: 1 })
      pool.wait(deadlineMs - 1000)
      if (held) report(pool, 1, held)
      while (!pool.processes.get(1)?.isTerminated) pool.passNextDeadline()
      assert.ok(pool.at - begunAt <= deadlineMs + 1000, JSON.stringify(held))
    }
  })

  test('stays at drain.deadlineMs with a request that is cut, as long as it reports what else it has', () => {
    const pool = running()
    pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
    pool.becomeReady(2)
    pool.wait(deadlineMs - 1000)
    report(pool, 1, { requests: 1, webSockets: 1 })
    while (pool.deadlines.has('drain:1') && !pool.state.workers[1].keptUntil) pool.passNextDeadline()
    assert.deepEqual([pool.processes.get(1)?.isTerminated, pool.last('rollout.succeeded')?.rollout], [false, 1])
  })

  test('is not kept for what it did wrong, in a rollback, where no two workers of a slot may run, and if nothing is to be kept', () => {
    const limitsAfter = (options: LifecycleOptions, act: (pool: Pool) => void) => {
      const pool = running({ options })
      act(pool)
      for (const { id, isDraining } of pool.processes.values()) if (!isDraining && id !== 1) pool.becomeReady(id)
      return pool.state.workers[1].drain?.limits
    }
    const restart = (pool: Pool) => pool.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
    assert.equal(limitsAfter(KEPT_SHORTLY, restart)?.longLivedMs, longLivedMs)
    assert.equal(
      limitsAfter(OPTIONS, (pool) =>
        pool.feed({ type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'large' }))?.longLivedMs,
      0
    )
    assert.equal(
      limitsAfter(OPTIONS, (pool) =>
        pool.feed({ type: 'rollout', kind: 'rollback', release: { ...NEW_RELEASE, id: 'r2' }, actor: 'api' }))
        ?.longLivedMs,
      0
    )
    assert.equal(limitsAfter({ ...OPTIONS, rollout: { order: 'stop-first' } }, restart)?.longLivedMs, 0)
    assert.equal(limitsAfter({ ...OPTIONS, drain: { ...OPTIONS.drain, maxOldWorkers: 0 } }, restart)?.longLivedMs, 0)
    assert.deepEqual(limitsAfter(OPTIONS, (pool) => pool.feed({ type: 'stop', actor: 'api' })), { idleGraceMs,
      deadlineMs, stalledMs: 10_000, longLivedMs: 0, spreadMs: 0, isLast: true })
  })

  test('makes way for newer ones: of more than drain.maxOldWorkers the oldest closes its connections', () => {
    const pool = running()
    const old = [1, 2, 3].flatMap(() => restartAndKeep(pool))
    assert.deepEqual(old.map((id) => pool.processes.get(id)?.isTold), [1012, undefined, undefined])
    assert.match(pool.last('worker.closing').message, /more than 2 old workers .*drain\.maxOldWorkers/)
  })

  test('closes its connections when an operator says so, when it uses too much memory, and when all workers stop', () => {
    const order = { type: 'end-connections', worker: 1, actor: 'ada' } as const
    const pool = running()
    assert.equal(pool.feed(order)?.code, 'not-possible', 'it is not replaced')
    assert.equal(pool.feed({ ...order, worker: 9 })?.code, 'not-found')
    restartAndKeep(pool)
    assert.equal(pool.feed(order), null)
    assert.deepEqual([pool.processes.get(1)?.isTold, pool.last('worker.closing').actor], [1012, 'ada'])
    pool.feed({ type: 'stop', actor: 'api' })
    assert.deepEqual([pool.processes.get(1)?.isTold, Number(pool.deadlines.get('drain:1')?.dueAt) - pool.at], [1001,
      deadlineMs])

    const tooLarge = { type: 'worker-due', worker: 1, cause: 'memory-limit', message: 'worker 1 is too large' } as const
    const large = running()
    restartAndKeep(large)
    large.feed(tooLarge)
    assert.equal(large.processes.get(1)?.isTold, 1012)

    const recycled = running()
    recycled.feed(tooLarge)
    recycled.becomeReady(2)
    recycled.feed(tooLarge)
    assert.deepEqual([recycled.processes.get(1)?.isDraining, recycled.processes.get(1)?.isTold], [true, undefined])
  })

  test('that hangs is killed, and its slot notices nothing', () => {
    const pool = running()
    restartAndKeep(pool)
    pool.feed({ type: 'worker-silent', worker: 1, message: 'silent' })
    assert.equal(pool.processes.get(1)?.isKilled, true)
    pool.settle()
    assert.deepEqual([pool.last('worker.exited').cause, pool.serving(), pool.last('worker.restarted')], ['hung', [2],
      undefined])
  })

  test('is neither in the way of a scale-down, a recycling or the next deploy, nor takes it a slot', () => {
    const pool = running({ workers: 2 })
    pool.feed({ type: 'scale', workers: 1, actor: 'api' })
    pool.wait(idleGraceMs)
    report(pool, 2)
    pool.feed({ type: 'worker-due', worker: 1, cause: 'max-requests', message: 'enough' })
    pool.becomeReady(3)
    pool.wait(idleGraceMs)
    report(pool, 1)
    assert.equal(pool.state.recycling, null)
    pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
    pool.becomeReady(4)
    pool.feed({ type: 'worker-drained', worker: 3 })
    pool.exit(3, { code: 0 })
    assert.deepEqual([pool.rollout, pool.serving(), [1, 2].map((id) => row(pool, id)?.state)], [null, [4], ['draining',
      'draining']])
    assert.equal(snapshotOf(pool.state).readyWorkers, 1)
  })

  test('of a master that has died is told to go on as before, counts for the next one, and ends at the same time', () => {
    const before = running()
    restartAndKeep(before)
    before.wait(60_000)
    const { forkedAt, ...saved } = before.state.workers[1]
    const pool = simulate({ workers: 1,
      orphans: [orphan({ ...saved, id: 1, state: 'draining', orphan: 'master-lost' })], start: { nextWorker: 3 } })
    assert.deepEqual([pool.processes.get(1)?.isDraining, row(pool, 1)?.keptUntil, row(pool, 1)?.holds?.webSockets], [
      true,
      saved.keptUntil,
      2
    ])
    pool.becomeReady(3)
    assert.deepEqual([pool.serving(), pool.processes.size], [[3], 2], 'nobody replaces it')
    keepOn(pool, Date.parse(String(saved.keptUntil)) - pool.at, 1)
    assert.equal(pool.processes.get(1)?.isTold, 1012)
  })
})
