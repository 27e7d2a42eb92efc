import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFold, MAX_FOLDED, MAX_GROUPS, pageOf, type Group } from '../../../server/fleet/crash-groups.ts'

const A = `v1:${'a'.repeat(32)}`
const B = `v1:${'b'.repeat(32)}`

function group (changes?: Partial<Group>): Group {
  return { id: 1, fingerprint: A, state: 'open', kind: 'exception', cause: 'crash', errorName: 'Error', message: 'm',
    culprit: null, firstSeenAt: '2026-01-02T00:00:00.000Z', lastSeenAt: '2026-01-03T00:00:00.000Z', count: 1,
    lastRelease: 'r1', hasReturned: false, isNewInRelease: false, ...changes }
}

function fold (answers: { member: string, groups: ReturnType<typeof group>[] }[]) {
  const folded = createFold()
  for (const { member, groups } of answers) folded.add(member, groups)
  return folded.items
}

test('one fault of several members is one group, and the newest crash says what it is', () => {
  const [first, second, ...others] = fold([{ member: 'web-2',
    groups: [group({ id: 7, count: 2, message: 'old' }),
      group({ id: 8, fingerprint: B, lastSeenAt: '2026-01-09T00:00:00.000Z' })] }, { member: 'web-1',
    groups: [
      group({ count: 3, message: 'new', firstSeenAt: '2026-01-01T00:00:00.000Z', lastSeenAt: '2026-01-04T00:00:00.000Z',
        hasReturned: true })
    ] }])
  assert.deepEqual([first.fingerprint, others], [B, []])
  assert.deepEqual([second.count, second.message, second.firstSeenAt, second.lastSeenAt, second.state,
    second.hasReturned], [5, 'new', '2026-01-01T00:00:00.000Z', '2026-01-04T00:00:00.000Z', 'open', true])
  assert.deepEqual(second.members.map(({ member, id, count }) => [member, id, count]), [['web-1', 1, 3], ['web-2', 7,
    2]])
})

test('where members differ in what was done with it, a group is mixed', () => {
  const of = (...states: ('open' | 'resolved' | 'muted')[]) =>
    fold(states.map((state, n) => ({ member: `m${n}`, groups: [group({ state })] })))[0].state
  assert.deepEqual([of('open'), of('muted', 'muted'), of('resolved', 'open')], ['open', 'muted', 'mixed'])
})

test('of too many groups the last ones to crash stay, and whose are left out is told', () => {
  const folded = createFold()
  const time = (n: number) => new Date(Date.UTC(2026, 0, 1) + n).toISOString()
  for (let n = 0; n < 3 * MAX_FOLDED; n++)
    folded.add(`m${Math.floor(n / MAX_GROUPS)}`, [
      group({ fingerprint: `v1:${String(n).padStart(32, '0')}`, lastSeenAt: time(n) })
    ])
  assert.deepEqual([folded.items.length, folded.items[0].lastSeenAt, folded.items[MAX_FOLDED - 1].lastSeenAt], [
    MAX_FOLDED,
    time(3 * MAX_FOLDED - 1),
    time(2 * MAX_FOLDED)
  ])
  assert.deepEqual(new Set(folded.cut), new Set(Array.from({ length: 2 * MAX_FOLDED / MAX_GROUPS }, (_, n) => `m${n}`)))
})

test('a list of groups that is none is none, and what is too long is cut', () => {
  assert.equal(pageOf({ items: [group({ message: 'x'.repeat(9000) })], next: null })?.items[0].message?.length, 4000)
  const page = (changes: object) => ({ items: [{ ...group(), ...changes }], next: null })
  for (const body of [undefined, null, '', [], {}, { items: [], next: 7 }, page({ id: 0 }),
    page({ fingerprint: 'v1:x' }), page({ state: 'gone' }), page({ count: -1 }), page({ lastSeenAt: 'yesterday' }),
    page({ message: 7 }), { items: Array.from({ length: 101 }, () => group()), next: null }])
  {
    assert.equal(pageOf(body), null, JSON.stringify(body))
  }
})
