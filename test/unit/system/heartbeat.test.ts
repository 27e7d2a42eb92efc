import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createHeartbeat } from '../../../server/system/heartbeat.ts'

const TICK_MS = 500

/** Workers that beat once a second, unless they are said to be stuck, and a master that may sleep. */
function watch ({ workers = [1, 2], timeoutMs = 10_000 } = {}) {
  let at = 1000
  let ticks = 0
  const queued = new Map(workers.map((worker) => [worker, 0]))
  const heartbeat = createHeartbeat({ timeoutMs, tickMs: TICK_MS, queuedMs: (worker) => queued.get(worker) ?? 0 })
  const stuck: Set<number> = new Set()
  heartbeat.tick(at, workers)

  return {
    heartbeat,
    stuck,
    run (ms: number,
      { queuedShare = 0 }: { queuedShare?: number } = {}): { worker: number, silentMs: number, afterMs: number }[]
    {
      const from = at
      const found = []
      while (at < from + ms) {
        at += TICK_MS
        for (const worker of workers) queued.set(worker, (queued.get(worker) ?? 0) + TICK_MS * queuedShare)
        if (++ticks % 2 === 0) { for (const worker of workers) if (!stuck.has(worker)) heartbeat.heard(worker) }
        found.push(...heartbeat.tick(at, workers).map((one) => ({ ...one, afterMs: at - from })))
      }
      return found
    },
    /** Nothing runs; what the workers have said meanwhile is read after the first tick. */
    sleep (ms: number) {
      at += ms
      return heartbeat.tick(at, workers)
    }
  }
}

describe('the silence of workers', () => {
  test('a limit that is set anew counts for what was silent before too', () => {
    const { heartbeat, stuck, run } = watch()
    stuck.add(1)
    assert.deepEqual(run(5000), [])
    heartbeat.setTimeoutMs(3000)
    const [{ worker, afterMs }] = run(5000)
    assert.deepEqual([worker, afterMs], [1, TICK_MS])
    heartbeat.setTimeoutMs(60_000)
    stuck.add(2)
    assert.deepEqual(run(30_000), [])
  })

  test('is told once, when it has lasted too long, and of those alone that are stuck', () => {
    const deck = watch()
    deck.run(60_000)
    deck.stuck.add(1)
    const found = deck.run(60_000)
    assert.deepEqual(found.map(({ worker }) => worker), [1])
    assert.ok(found[0].afterMs >= 9000 && found[0].afterMs <= 11_000, `${found[0].afterMs}`)
    assert.ok(found[0].silentMs >= 10_000)
  })

  test('does not grow while the machine sleeps or the master is stopped, however long', () => {
    const deck = watch()
    deck.run(5000)
    assert.deepEqual(deck.sleep(3_600_000), [])
    assert.deepEqual(deck.run(30_000), [])
  })

  test('does not grow much while the master itself comes late again and again', () => {
    const deck = watch()
    deck.run(5000)
    for (let times = 0; times < 9; times++) assert.deepEqual(deck.sleep(8000), [])
  })

  test('counts again after a sleep for one that is stuck indeed', () => {
    const deck = watch()
    deck.stuck.add(2)
    deck.sleep(3_600_000)
    assert.deepEqual(deck.run(20_000).map(({ worker }) => worker), [2])
  })

  test('does not count what a worker spends waiting for a CPU', () => {
    const deck = watch()
    deck.run(5000)
    for (const worker of [1, 2]) deck.stuck.add(worker)
    assert.deepEqual(deck.run(60_000, { queuedShare: 0.95 }), [])
    assert.equal(deck.run(20_000).length, 2, 'once it gets a CPU it has to answer')
  })

  test('is excused while somebody knows the reason, and counts anew after that', () => {
    const deck = watch()
    deck.stuck.add(1)
    deck.run(4000)
    deck.heartbeat.excuse(1, true)
    assert.deepEqual(deck.run(100_000), [])
    deck.heartbeat.excuse(1, false)
    assert.deepEqual(deck.run(9000), [])
    assert.equal(deck.run(2000).length, 1)
  })

  test('ends with a word: whoever was silent and answers is told from whoever was not', () => {
    const deck = watch()
    deck.stuck.add(1)
    deck.run(12_000)
    assert.equal(deck.heartbeat.heard(1), true)
    assert.equal(deck.heartbeat.heard(1), false)
    assert.equal(deck.heartbeat.heard(2), false)
    assert.equal(deck.run(20_000).length, 1, 'and may be stuck again')
  })
})
