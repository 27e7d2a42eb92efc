import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchesOf, matchesLabels } from '../../../server/fleet/plan.ts'

const MEMBERS = ['web-10', 'web-2', 'web-1', 'db'].map((member, index) => ({ member,
  labels: (member === 'db' ? {} : { zone: index === 0 ? 'a' : 'b' }) as Record<string, string> })
)

test('members take their turns one by one, by their names as people count', () => {
  assert.deepEqual(batchesOf({}, MEMBERS), [['db'], ['web-1'], ['web-2'], ['web-10']])
})

test('a batch is a number or a share, and never nobody', () => {
  assert.deepEqual(batchesOf({ batch: 3 }, MEMBERS).map(({ length }) => length), [3, 1])
  assert.deepEqual(batchesOf({ batch: '50%' }, MEMBERS).map(({ length }) => length), [2, 2])
  assert.deepEqual(batchesOf({ batch: '10%' }, MEMBERS).map(({ length }) => length), [1, 1, 1, 1])
  assert.deepEqual(batchesOf({ batch: '100%' }, MEMBERS).map(({ length }) => length), [4])
  for (const batch of [0, -1, 1.5, '0%', '101%', 'all', ''])
    assert.throws(() => batchesOf({ batch }, MEMBERS), { code: 'invalid-body',
      message: /^batch: expected a number of members from 1 or a share such as "25%", received / })
})

test('a canary goes first, alone', () => {
  assert.deepEqual(batchesOf({ batch: 2, canary: 'web-10' }, MEMBERS), [['web-10'], ['db', 'web-1'], ['web-2']])
  assert.throws(() => batchesOf({ canary: 'web-3' }, MEMBERS), { code: 'invalid-body',
    message: 'canary: expected one of db, web-1, web-2, web-10, received "web-3"' })
})

test('a label puts them in order, those without it last', () => {
  assert.deepEqual(batchesOf({ order: 'zone' }, MEMBERS), [['web-10'], ['web-1'], ['web-2'], ['db']])
  assert.deepEqual(
    batchesOf({ order: 'constructor' }, [{ member: 'a', labels: {} }, { member: 'b', labels: { constructor: 'z' } }]),
    [['b'], ['a']]
  )
  assert.throws(() => batchesOf({ order: 'zoen' }, MEMBERS), { code: 'invalid-body',
    message: 'order: expected a label that a member has, received "zoen"' })
})

test('labels pick members: all that are wanted have to be there', () => {
  assert.deepEqual([matchesLabels({ zone: 'a', disk: 'ssd' }, { zone: 'a' }),
    matchesLabels({ zone: 'a' }, { zone: 'a', disk: 'ssd' }), matchesLabels({}, {}), matchesLabels({}, { zone: '' })], [
    true,
    false,
    true,
    false
  ])
})
