import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRequestFairness } from '../../../server/cluster/request-fairness.ts'
import { clusterOf } from '../../support/cluster.ts'
import type { ToWorker } from '../../../workers/protocol.ts'

test('a worker that gets more requests than the others lets go of those above the mean, until it is near it', () => {
  const deck = setUp([1, 2])
  deck.pass(3, { 1: 300, 2: 100 })
  assert.deepEqual(deck.told, [], 'three seconds say too little')
  deck.pass(1, { 1: 300, 2: 100 })
  assert.deepEqual(deck.takeTold(), [[1, { type: 'let-go', requestsPerSecond: 100, connections: 100 }]])
  deck.pass(6, { 1: 300, 2: 100 })
  assert.deepEqual(deck.told, [], 'it is at it')
  deck.fairness.answered(1, 10)
  deck.pass(3, { 1: 216, 2: 184 })
  assert.deepEqual(deck.told, [], 'what came before it was through does not count')
  deck.pass(10, { 1: 216, 2: 184 })
  assert.equal(deck.takeTold()[0]?.[1].requestsPerSecond, 16, 'it goes on below the share at which it would begin')
  deck.fairness.answered(1, 1)
  deck.pass(60, { 1: 209, 2: 191 })
  assert.deepEqual(deck.told, [], 'that is even enough')
  deck.pass(60, { 1: 216, 2: 184 })
  assert.deepEqual(deck.told, [], 'and stays so')
})

test('chance, one more busy with fewer requests, a rollout and a worker alone let nothing go', () => {
  const deck = setUp([1, 2])
  deck.pass(5, { 1: 4, 2: 2 })
  assert.deepEqual(deck.told, [], 'a few requests')
  deck.pass(55, { 1: 4, 2: 4 })
  deck.pass(60, { 1: 300, 2: 100 }, { 1: 0.3, 2: 0.9 })
  assert.deepEqual(deck.told, [], 'each request to the other one is more work')
  deck.pass(3, { 1: 300, 2: 100 })
  deck.workers = []
  deck.pass(60, { 1: 300, 2: 100 })
  deck.workers = [1, 2]
  deck.pass(3, { 1: 300, 2: 100 })
  assert.deepEqual(deck.told, [], 'what came before the rollout does not count')
  deck.workers = [1]
  deck.pass(60, { 1: 300 })
  assert.deepEqual(deck.told, [])
  deck.workers = [1, 2]
  deck.pass(60, { 1: 300, 2: null })
  assert.deepEqual(deck.told, [], 'the other one does not count its requests')
})

test('a worker with nothing to let go of is asked again after twice as long each time', () => {
  const deck = setUp([1, 2])
  const asked: number[] = []
  for (let second = 0; second < 200; second++) {
    deck.pass(1, { 1: 300, 2: 100 })
    if (deck.takeTold().length === 0) continue
    asked.push(deck.seconds())
    deck.fairness.answered(1, 0)
  }
  const gaps = asked.slice(1).map((second, index) => second - asked[index])
  assert.deepEqual(gaps.map((gap) => Math.round(gap / 10)), [1, 2, 4, 8])
})

function setUp (workers: number[]) {
  const shown = { workers }
  const told: [number, ToWorker & { requestsPerSecond?: number }][] = []
  let ms = 0
  const handles = Object.fromEntries(
    workers.map((worker) => [worker, { tell: (message: ToWorker) => told.push([worker, message]) }])
  )
  const cluster = clusterOf({ balance: { dispatch: 'shared', rebalance: 'on' }, handles, state: { get workers () {
    return Object.fromEntries(shown.workers.map((id) => [id, { id, state: 'ready' as const, orphan: null }]))
  } } })
  const fairness = createRequestFairness(cluster, () => ms)
  return Object.assign(shown, {
    told,
    takeTold: () => told.splice(0),
    seconds: () => ms / 1000,
    fairness,
    /** `rates`: by worker */
    pass (seconds: number, rates: Record<number, number | null>, busy: Record<number, number> = {}) {
      for (let second = 0; second < seconds; second++) {
        ms += 1000
        for (const [worker, rate] of Object.entries(rates))
          fairness.heard(Number(worker), { requestsPerSecond: rate, eventLoopUtilization: busy[Number(worker)] ?? 0.5 })
      }
    }
  })
}
