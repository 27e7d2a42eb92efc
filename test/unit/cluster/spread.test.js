import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSpread } from '../../../server/cluster/spread.js'

test('what one worker was woken for and will not take is for those who wait in turn', () => {
  const { spread, told } = setUp([1, 2, 3, 4])
  for (const worker of [1, 2, 3]) spread.heard(worker, true)
  spread.heard(4, false)
  spread.passOn(1)
  assert.deepEqual(told.splice(0), [[2, 'accept-again', 1], [3, 'accept-again', 1]])
  spread.left(2)
  assert.deepEqual(told.splice(0), [[1, 'accept-again', 1], [3, 'accept-again', 1]])
  spread.passOn(1)
  assert.deepEqual(told, [[3, 'accept-again', 0]], 'nobody talks to who has gone')
})

test('workers that begin to wait in turn together are told once how many they are', () => {
  const { spread, told, later } = setUp([1, 2, 3])
  for (const worker of [1, 2, 3]) spread.heard(worker, true)
  assert.deepEqual(told, [])
  assert.equal(later.length, 1)
  later[0]()
  assert.deepEqual(told, [[1, 'accept-again', 2], [2, 'accept-again', 2], [3, 'accept-again', 2]])
  spread.heard(3, true)
  assert.equal(later.length, 2, 'and again')
})

test('is even where every worker says so, and not known before one does', () => {
  const { spread } = setUp([1, 2])
  assert.equal(spread.isEven(), null)
  spread.heard(1, true)
  assert.equal(spread.isEven(), true)
  spread.heard(2, false)
  assert.equal(spread.isEven(), false)
  spread.left(2)
  assert.equal(spread.isEven(), true)
  spread.heard(9, false)
  assert.equal(spread.isEven(), true, 'what comes of a worker that has gone does not count')
})

/** @param {number[]} workers */
function setUp (workers) {
  /** @type {[number, string, number][]} */
  const told = []
  /** @type {(() => void)[]} */
  const later = []
  const handles = new Map(workers.map((worker) => [worker, { tell: (/** @type {any} */ { type, others }) => { told.push([worker, type, others]) } }]))
  return { spread: createSpread({ handles, later: (work) => later.push(work) }), told, later }
}
