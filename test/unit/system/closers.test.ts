import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'node:test'
import { createClosers } from '../../../server/system/closers.ts'

/** Two things that are open; the second one takes its time to close. */
function setUp () {
  const closers = createClosers()
  const closed = [] as unknown[]
  const first = closers.add({ name: 'first' }, ({ name }, how) => {
    closed.push([name, how.handsOver])
  })
  closers.add({ name: 'second' }, async ({ name }, how) => {
    await nextTurn()
    closed.push([name, how.handsOver])
  })
  return { closers, closed, first }
}

test('what was opened last is closed first, one after the other, and once', async () => {
  const { closers, closed, first } = setUp()
  assert.deepEqual(first, { name: 'first' }, 'it is handed back')
  await closers.close()
  await closers.close()
  assert.deepEqual(closed, [['second', false], ['first', false]])
})

test('each hears whether another master goes on with it', async () => {
  const { closers, closed } = setUp()
  await closers.close({ handsOver: true })
  assert.deepEqual(closed, [['second', true], ['first', true]])
})

test('one that fails keeps no other from being closed, and is told of', async () => {
  const { closers, closed } = setUp()
  closers.add(null, () => {
    throw new Error('no space left')
  })
  await assert.rejects(closers.close(), { message: 'no space left' })
  assert.equal(closed.length, 2)
})
