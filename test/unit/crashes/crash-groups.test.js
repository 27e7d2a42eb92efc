import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { setUp } from '../../support/crashes.js'

test('a crash is recorded with its evidence and named by the event of its exit; planned ends are not', () => {
  const { crash, service, published, history } = setUp()
  const { detail } = crash('handler')
  assert.deepEqual(detail, { errorName: 'Error', crash: 1, crashGroup: 1 })
  const record = service.occurrence(1, 1)
  assert.deepEqual([record.stderr, record.vitals, record.frames[0].file], [['last line'], [{ rssBytes: 1 }], 'app.js'])
  assert.equal(crash('handler', { cause: 'deploy' }).detail.crash, undefined)
  assert.deepEqual(published.map(({ type, message }) => [type, message]), [['crash.group-new', 'Error: boom, in handler (app.js)']])
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
  service.act(1, 'reopen', 'bob')
  assert.deepEqual(published.map(({ type, actor }) => [type, actor]), [
    ['crash.group-new', 'system'], ['crash.group-resolved', 'ann'], ['crash.group-returned', 'system'], ['crash.group-muted', 'bob'], ['crash.group-reopened', 'bob']
  ])
  assert.throws(() => service.act(2, 'mute', 'bob'), { code: 'not-found' })
  history.close()
})

test('groups are found by any words of a message or a stack, whatever else is typed', () => {
  const { crash, service, history } = setUp()
  crash('loadCart', { message: 'order 4711 is "gone"' })
  crash('$pay_now', { message: 'no money' })
  const found = (/** @type {string} */ q) => service.page({ q }).items.map(({ id }) => id)
  assert.deepEqual(found('ORDER gone'), [1])
  assert.deepEqual(found('loadCart'), [1])
  assert.deepEqual(found('$pay'), [2])
  assert.deepEqual(found('app.js'), [2, 1])
  for (const q of ['"', '*', 'NEAR(', 'a AND', '-', '^', 'message:', '{x}', "';DROP TABLE crashes;--", '\u0000', 'OR OR', '\ud800']) assert.ok(Array.isArray(found(q)), q)
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

test('groups that have not crashed for long are forgotten with all that belongs to them', () => {
  let now = Date.parse('2026-01-01T00:00:00Z')
  const { crash, history, service } = setUp({ retention: { maxAgeMs: 10_000 }, now: () => now })
  for (let n = 0; n < 5; n++) crash('a')
  now += 20_000
  while (history.sweep().more);
  assert.deepEqual([service.page({}).items, service.page({ q: 'boom' }).items], [[], []])
  assert.equal(crash('a').detail.crashGroup, 2)
  history.close()
})

test('thousands of crashes are counted one by one in their groups, and kept within bounds', () => {
  const { crash, service, history, file } = setUp()
  const storm = (/** @type {number} */ from, /** @type {number} */ to) => {
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
  const kept = group.occurrences.map(({ errorMessage }) => Number(/order (\d+)/.exec(errorMessage)?.[1]))
  assert.deepEqual([kept[0], kept.at(-1)], [3999, 49])
  history.close()
})
