import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { goneSince } from '../../../server/crashes/crashes.ts'
import { setUp } from '../../support/crashes.ts'
import { rareTest } from '../../support/rare.ts'
import type { GroupSort } from '../../../db/crash-groups.ts'

test('a crash is recorded with its evidence and named by the event of its exit; planned ends are not', () => {
  const { crash, service, published, history } = setUp()
  const { detail } = crash('handler')
  assert.deepEqual(detail, { errorName: 'Error', crash: 1, crashGroup: 1 })
  const record = service.occurrence(1, 1)
  assert.deepEqual([record.stderr, record.vitals, record.frames[0].file], [['last line'], [{ rssBytes: 1 }], 'app.js'])
  assert.equal(crash('handler', { cause: 'deploy' }).detail.crash, undefined)
  assert.deepEqual(published.map(({ type, message }) => [type, message]), [['crash.group-new',
    'Error: boom, in handler (app.js)']])
  assert.equal(service.find(1).isNewInRelease, true)
  assert.throws(() => service.occurrence(1, 2), { code: 'not-found' })
  history.close()
})

test('a group that was resolved comes back with the next crash, and says so once; a muted one stays silent', () => {
  const { crash, service, published, history, state } = setUp()
  crash('a')
  assert.equal(service.act(1, 'resolve', 'ann').state, 'resolved')
  service.act(1, 'resolve', 'ann')
  state.release = 'r2'
  crash('a')
  crash('a')
  const back = service.find(1)
  assert.deepEqual([back.state, back.hasReturned, back.count, back.isNewInRelease], ['open', true, 3, false])
  assert.deepEqual(back.releases.map(({ release, count }) => [release, count]), [['r2', 2], ['r1', 1]])
  service.act(1, 'mute', 'bob')
  crash('a')
  assert.deepEqual(service.page({ state: 'muted' }).items.map(({ count }) => count), [4])
  assert.deepEqual([service.counts().open, service.counts().muted], [0, 1])
  service.act(1, 'reopen', 'bob')
  assert.deepEqual(published.map(({ type, actor }) => [type, actor]), [['crash.group-new', 'system'], [
    'crash.group-resolved',
    'ann'
  ], ['crash.group-returned', 'system'], ['crash.group-muted', 'bob'], ['crash.group-reopened', 'bob']])
  assert.throws(() => service.act(2, 'mute', 'bob'), { code: 'not-found' })
  history.close()
})

test('groups are found by any words of a message or a stack, whatever else is typed', () => {
  const { crash, service, history } = setUp()
  crash('loadCart', { message: 'order 4711 is "gone"' })
  crash('$pay_now', { message: 'no money' })
  const found = (q: string) => service.page({ q }).items.map(({ id }) => id)
  assert.deepEqual(found('ORDER gone'), [1])
  assert.deepEqual(found('loadCart'), [1])
  assert.deepEqual(found('$pay'), [2])
  assert.deepEqual(found('app.js'), [2, 1])
  for (const q of ['"', '*', 'NEAR(', 'a AND', '-', '^', 'message:', '{x}', '\';DROP TABLE crashes;--', '\u0000',
    'OR OR', '\ud800']) assert.ok(Array.isArray(found(q)), q)
  history.close()
})

test('a database that fails keeps nobody from going on; what waited is written later', () => {
  const { crash, history, service } = setUp()
  history.close()
  assert.equal(crash('a').detail.crash, undefined)
  history.reopen()
  assert.equal(crash('b').detail.crash, 2)
  assert.equal(service.page({}).items.length, 2)
  history.close()
})

test('once the database is back, what waited is written without another crash, and it is told how many crashes have no record', () => {
  const { crash, history, service, recorder, published } = setUp()
  history.close()
  for (let n = 0; n < 103; n++) crash('a')
  recorder.catchUp()
  assert.equal(published.length, 0, 'the database still fails')
  history.reopen()
  recorder.catchUp()
  recorder.catchUp()
  assert.equal(service.page({}).items[0].count, 100)
  const told = published.filter(({ type }) => type === 'crash.records-lost')
  assert.deepEqual(told.map(({ message, detail }) => [message, detail]), [[
    '3 crashes have no record: the history could not be written',
    { lost: 3, from: '2026-01-01T00:00:00.100Z', to: '2026-01-01T00:00:00.102Z' }
  ]])
  history.close()
})

test('groups that have not crashed for long are forgotten with all that belongs to them', () => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  const { crash, history, service } = setUp({ retention: { maxAgeMs: 10_000 }, now: () => now })
  for (let n = 0; n < 5; n++) crash('a')
  now += 20_000
  while (history.sweep().more);
  assert.deepEqual([service.page({}).items, service.page({ q: 'boom' }).items, service.hours(1, 0)], [[], [], []])
  assert.equal(crash('a').detail.crashGroup, 2)
  history.close()
})

rareTest('thousands of crashes are counted one by one in their groups, and kept within bounds', () => {
  const { crash, service, history, file } = setUp()
  const storm = (from: number, to: number) => {
    for (let n = from; n < to; n++) crash(`kind${n % 50}`, { message: `order ${n} ${'text '.repeat(200)}` })
    history.close()
    const { size } = statSync(file)
    history.reopen()
    return size
  }
  const [early, late] = [storm(0, 1000), storm(1000, 4000)]
  assert.ok(late < 1.5 * early, `${early} bytes, then ${late}`)
  const { items } = service.page({ limit: 100 })
  assert.deepEqual(items.map(({ count }) => count), Array(50).fill(80))
  const group = service.find(items[0].id)
  assert.equal(group.occurrences.length, 12)
  const kept = group.occurrences.map(({ errorMessage }) => Number(/order (\d+)/.exec(String(errorMessage))?.[1]))
  assert.deepEqual([kept[0], kept.at(-1)], [3999, 49])
  history.close()
})

test('groups are sorted by the last crash, the number of crashes or the first crash, page by page without a gap', () => {
  const { crash, service, history } = setUp()
  for (const name of ['a', 'b', 'b', 'c', 'c', 'd', 'd', 'd', 'a']) crash(name)
  const sorted = (sort: GroupSort | undefined) => {
    const ids = []
    let cursor: string | null = null
    do {
      const page = service.page({ sort, limit: 1, cursor })
      ids.push(...page.items.map(({ id }) => id))
      cursor = page.next
    } while (cursor !== null)
    return ids
  }
  assert.deepEqual([sorted(undefined), sorted('last'), sorted('count'), sorted('first')], [[1, 4, 3, 2], [1, 4, 3, 2], [
    4,
    3,
    2,
    1
  ], [4, 3, 2, 1]])
  crash('a')
  crash('a')
  assert.deepEqual(sorted('count'), [1, 4, 3, 2])
  const { next } = service.page({ sort: 'count', limit: 1 })
  assert.throws(() => service.page({ sort: 'last', cursor: next }), { code: 'invalid-query' })
  history.close()
})

test('crashes are counted hour by hour for a month, also those of which no sample is kept', () => {
  const { crash, service, history, state } = setUp()
  const [hour, day] = [3_600_000, 86_400_000]
  const begin = state.at
  for (let n = 0; n < 40; n++) crash('a')
  state.at = begin + hour
  crash('a')
  assert.deepEqual(service.hours(1, begin).map(({ at, count }) => [at, count]), [['2026-01-01T00:00:00.000Z', 40], [
    '2026-01-01T01:00:00.000Z',
    1
  ]])
  assert.deepEqual(service.hours(1, begin + hour).map(({ count }) => count), [1])
  state.at = begin + 31 * day
  crash('a')
  assert.deepEqual(service.hours(1, 0).map(({ count }) => count), [1, 1], 'what is older is forgotten')
  history.close()
})

test('a fault is gone since the first good release without it, once that has run for longer than the fault ever kept still', () => {
  const at = (minutes: number) => new Date(minutes * 60_000).toISOString()
  const releases = [['r6', 'succeeded', 0], ['r7', 'failed', 30], ['r8', 'succeeded', 40], ['r9', 'succeeded', 70]].map(
    ([id, outcome, minutes]) => ({ id: String(id), path: '/', outcome: String(outcome),
      deployedAt: at(Number(minutes)) })
  )
  const group = { highestRelease: 6, count: 3, firstSeenAt: at(1), lastSeenAt: at(39) }
  const gone = (parts: Partial<Parameters<typeof goneSince>[1]>, changes = {}) =>
    goneSince({ ...group, ...changes }, { running: 'r9', releases, now: 120 * 60_000, ...parts })
  assert.equal(gone({}), 'r8')
  assert.equal(gone({ running: 'r6' }), null, 'it is back on the release with it')
  assert.equal(gone({ running: 'r5' }), null, 'it may come again')
  assert.equal(gone({ running: 'r8', now: 58 * 60_000 }), null, 'it came every 19 minutes')
  assert.equal(gone({ running: 'r8', now: 60 * 60_000 }), 'r8')
  assert.equal(gone({ running: 'r8', now: 45 * 60_000 }, { count: 1 }), null, 'five minutes say nothing')
  assert.equal(gone({}, { highestRelease: 9 }), null)
  assert.equal(gone({}, { highestRelease: null }), null)
})
