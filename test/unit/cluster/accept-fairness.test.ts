import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAcceptFairness } from '../../../server/cluster/accept-fairness.ts'
import { clusterOf } from '../../support/cluster.ts'
import type { ToWorker } from '../../../workers/protocol.ts'

test('what one worker was woken for and will not take is for those who wait in turn', () => {
  const { acceptFairness, cluster, told } = setUp([1, 2, 3, 4])
  for (const worker of [1, 2, 3]) acceptFairness.heard(worker, true)
  acceptFairness.heard(4, false)
  acceptFairness.passOn(1)
  assert.deepEqual(told.splice(0), [[2, 'accept-again', 1], [3, 'accept-again', 1]])
  cluster.emit('left', 2)
  assert.deepEqual(told.splice(0), [[1, 'accept-again', 1], [3, 'accept-again', 1]])
  acceptFairness.passOn(1)
  assert.deepEqual(told, [[3, 'accept-again', 0]], 'nobody talks to who has gone')
})

test('workers that begin to wait in turn together are told once how many they are', () => {
  const { acceptFairness, told, later } = setUp([1, 2, 3])
  for (const worker of [1, 2, 3]) acceptFairness.heard(worker, true)
  assert.deepEqual(told, [])
  assert.equal(later.length, 1)
  later[0]()
  assert.deepEqual(told, [[1, 'accept-again', 2], [2, 'accept-again', 2], [3, 'accept-again', 2]])
  acceptFairness.heard(3, true)
  assert.equal(later.length, 2, 'and again')
})

test('is even where every worker says so, and not known before one does', () => {
  const { acceptFairness, cluster } = setUp([1, 2])
  assert.equal(acceptFairness.isEven(), null)
  acceptFairness.heard(1, true)
  assert.equal(acceptFairness.isEven(), true)
  acceptFairness.heard(2, false)
  assert.equal(acceptFairness.isEven(), false)
  cluster.emit('left', 2)
  assert.equal(acceptFairness.isEven(), true)
  acceptFairness.heard(9, false)
  assert.equal(acceptFairness.isEven(), true, 'what comes of a worker that has gone does not count')
})

function setUp (workers: number[]) {
  const told: [number, string, number][] = []
  const later: (() => void)[] = []
  const handles = Object.fromEntries(workers.map((worker) => [worker, { tell: (message: ToWorker) => {
    told.push([worker, message.type, (message as { others: number }).others])
  } }]))
  const cluster = clusterOf({ handles })
  return { acceptFairness: createAcceptFairness(cluster, (work) => later.push(work)), cluster, told, later }
}
