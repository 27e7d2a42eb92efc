import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTurns } from '../../../server/api/turn.ts'

test('gives each who waits a turn of the loop of its own, in their order', async () => {
  const nextTurn = createTurns()
  let turn = 0
  let isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const called: [name: string, turn: number][] = []
  await Promise.all(['first', 'second', 'third'].map(async (name) => {
    await nextTurn()
    called.push([name, turn])
    // Whoever comes back waits behind the others.
    await nextTurn()
    called.push([name, turn])
  }))
  isOver = true
  assert.deepEqual(called.map(([name]) => name), ['first', 'second', 'third', 'first', 'second', 'third'])
  assert.equal(new Set(called.map(([, at]) => at)).size, 6)
})
