import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFold, fleetCrashes, MAX_FOLDED, MAX_GROUPS, SAID } from '../../../server/fleet/api-crashes.ts'
import { aMember, createFakeFleet } from '../../support/fake-fleet.ts'
import type { CrashGroup } from '../../../server/crashes/api.ts'

const VIEWER = { name: null, actor: 'ada', role: 'viewer', client: 'api' } as const
const A = `v1:${'a'.repeat(32)}`
const B = `v1:${'b'.repeat(32)}`

function group (changes?: Partial<CrashGroup>): CrashGroup {
  return { id: 1, fingerprint: A, state: 'open', kind: 'exception', cause: 'crash', errorName: 'Error', message: 'm',
    culprit: null, firstSeenAt: '2026-01-02T00:00:00.000Z', lastSeenAt: '2026-01-03T00:00:00.000Z', count: 1,
    firstRelease: 'r1', lastRelease: 'r1', lastCrash: 1, stateChangedAt: null, stateChangedBy: null, goneSince: null,
    returnedAt: null, hasReturned: false, isNewInRelease: false, ...changes }
}

function fold (answers: { member: string, groups: ReturnType<typeof group>[] }[]) {
  const folded = createFold()
  for (const { member, groups } of answers) folded.add(member, groups)
  return folded.items
}

test('one fault of several members is one group, and the newest crash says what it is', () => {
  const [second, first, ...others] = fold([{ member: 'web-2',
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

test('the list of all hosts is in the order that is asked for, and has what is so on at least one of them', async () => {
  const asked: string[] = []
  const said: Record<string, CrashGroup[]> = {
    'web-1': [group({ count: 9, state: 'resolved' }),
      group({ fingerprint: B, lastSeenAt: '2026-01-09T00:00:00.000Z' })],
    'web-2': [group({ count: 1 })]
  }
  const fleet = createFakeFleet({
    members: [aMember({ member: 'web-1', isOwn: true }), aMember({ member: 'web-2' }),
      aMember({ member: 'web-3', isSilent: true })],
    answer (member, { path }) {
      asked.push(`${member} ${path}`)
      return { status: 200, body: { items: said[member], next: member === 'web-2' ? 'more' : null } }
    }
  })
  const listed = async (filter: object) =>
    (await fleetCrashes({ fleet }, { member: '*', ...filter }, VIEWER)).items.map((
      { fingerprint, count }
    ) => [fingerprint, count])
  assert.deepEqual(await listed({}), [[B, 1], [A, 10]])
  assert.deepEqual(asked, ['web-1', 'web-2'].map((member) => `${member} /crashes?limit=100`))
  assert.deepEqual([await listed({ sort: 'count' }), await listed({ sort: 'count', limit: 1 })], [[[A, 10], [B, 1]], [[
    A,
    10
  ]]])
  assert.deepEqual([await listed({ state: 'resolved' }), await listed({ state: 'muted' })], [[[A, 10]], []])
  asked.splice(0)
  const { hosts } = await fleetCrashes({ fleet }, { member: 'web-2', q: 'x', since: 0, release: 'r2' }, VIEWER)
  assert.deepEqual(asked, ['web-2 /crashes?limit=100&q=x&release=r2&since=1970-01-01T00%3A00%3A00.000Z'])
  assert.deepEqual(hosts, { asked: 1, answered: 1, silent: [], refused: [], cut: ['web-2'] })
  assert.deepEqual((await fleetCrashes({ fleet }, { member: '*' }, VIEWER)).hosts.silent, ['web-3'])
})

test('of too many groups the last ones to crash stay, and whose are left out is told', () => {
  const folded = createFold()
  const time = (n: number) => new Date(Date.UTC(2026, 0, 1) + n).toISOString()
  for (let n = 0; n < 3 * MAX_FOLDED; n++)
    folded.add(`m${Math.floor(n / MAX_GROUPS)}`, [
      group({ fingerprint: `v1:${String(n).padStart(32, '0')}`, lastSeenAt: time(n) })
    ])
  const times = folded.items.map(({ lastSeenAt }) => lastSeenAt).sort()
  assert.deepEqual([times.length, times[0], times.at(-1)], [MAX_FOLDED, time(2 * MAX_FOLDED), time(3 * MAX_FOLDED - 1)])
  assert.deepEqual(new Set(folded.cut), new Set(Array.from({ length: 2 * MAX_FOLDED / MAX_GROUPS }, (_, n) => `m${n}`)))
})

test('a list of groups that is none is none, what is too long is cut, and what another version says besides is left out', () => {
  const read = (body: unknown) => SAID.safeParse(body).data ?? null
  const [known] =
    read({ items: [{ ...group({ message: 'x'.repeat(9000) }), kind: 'flood', more: 1 }], next: null, total: 1 })
      ?.items ?? []
  assert.deepEqual([known.message?.length, known.kind, 'more' in known], [4000, 'flood', false])
  const page = (changes: object) => ({ items: [{ ...group(), ...changes }], next: null })
  for (const body of [undefined, null, '', [], {}, { items: [], next: 7 }, page({ id: 0 }),
    page({ fingerprint: 'v1:x' }), page({ state: 'gone' }), page({ count: -1 }), page({ lastSeenAt: 'yesterday' }),
    page({ lastSeenAt: '2026-99-99T99:99:99.999Z' }), page({ lastRelease: '<u>' }), page({ message: 7 }), {
    items: Array.from({ length: 101 }, () => group()),
    next: null
  }]) {
    assert.equal(read(body), null, JSON.stringify(body))
  }
})
