import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { openHistory } from '../../../db/history.js'
import { createCrashService } from '../../../server/crashes/crashes.js'
import { createCrashRecorder } from '../../../server/crashes/recorder.js'
import { createEventStream } from '../../../server/events/stream.js'
import { tempFolder } from '../../support/folder.js'

/** @param {{ retention?: any, now?: () => number }} [options] */
function setUp (options = {}) {
  const file = path.join(tempFolder(), 'history.db')
  const history = openHistory({ file, ...options })
  const events = createEventStream()
  /** @type {any[]} */
  const published = []
  events.subscribe((event) => published.push(event))
  const state = { at: Date.parse('2026-01-01T00:00:00Z'), release: 'r1' }
  const recorder = createCrashRecorder({ now: () => state.at++, soon: (work) => work(), lackedMemory: () => null, logs: { tail: () => ['last line'] }, vitals: { lastMinute: () => [{ rssBytes: 1 }] } })
  recorder.open({ store: history.crashes, events })
  const service = createCrashService({ store: history.crashes, events, release: () => state.release })

  /** @param {string} name @param {{ message?: string, cause?: string }} [more] @returns {any} the event of the exit, as it is published */
  function crash (name, { message = 'boom', cause = 'crash' } = {}) {
    const note = /** @type {any} */ ({ kind: 'exception', errorName: 'Error', errorMessage: message, stack: `Error: ${message}\n    at ${name} (/srv/r1/app.js:1:2)`, causes: [], requests: [], memory: null, nodeVersion: 'v20.0.0' })
    const exit = { type: 'worker.exited', cause, code: 1, signal: null, slot: 1, worker: 5, pid: 9, release: state.release, rollout: null, uptimeMs: 5, message: 'w', detail: { errorName: 'Error' } }
    return recorder.record(exit, { note, root: '/srv/r1', ...recorder.examine({ slot: 1, worker: 5, pid: 9, code: 1, signal: null }) })
  }
  return { file, history, service, crash, published, state, recorder }
}

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

test('10,000 crashes of 50 kinds are counted one by one, kept within bounds, and found in time', () => {
  const { crash, service, history, file } = setUp()
  const began = performance.now()
  let heapAfterHalf = 0
  for (let n = 0; n < 10_000; n++) {
    crash(`kind${n % 50}`, { message: `order ${n} ${'text '.repeat(200)}` })
    if (n === 5000) heapAfterHalf = usedHeap()
  }
  const eachMs = (performance.now() - began) / 10_000
  const heapGrowth = usedHeap() - heapAfterHalf
  const { items } = service.page({ limit: 100 })
  assert.deepEqual(items.map(({ count }) => count), Array(50).fill(200))
  const group = service.find(items[0].id)
  assert.equal(group.occurrences.length, 12)
  const kept = group.occurrences.map(({ errorMessage }) => Number(/order (\d+)/.exec(errorMessage)?.[1]))
  assert.deepEqual([kept[0], kept.at(-1)], [9999, 49])
  const bytes = statSync(file).size
  assert.ok(bytes < 16e6, `${bytes} bytes`)
  assert.ok(heapGrowth < 8e6, `the heap has grown by ${heapGrowth} bytes`)
  const kinds = {
    list: () => service.page({}),
    'by state': () => service.page({ state: 'resolved' }),
    'by release and time': () => service.page({ release: 'r1', since: 0 }),
    'common word': () => service.page({ q: 'text order' }),
    'rare word': () => service.page({ q: '9999' }),
    'by the beginning of a word': () => service.page({ q: 'k' }),
    'one group': () => service.find(items[3].id),
    'one crash': () => service.occurrence(group.id, group.lastCrash)
  }
  const p99s = Object.entries(kinds).map(([name, query]) => [name, p99(query)])
  for (const [name, ms] of p99s) assert.ok(Number(ms) < 20, `${name}: ${ms} ms at p99`)
  console.log(`10,000 crashes: ${eachMs.toFixed(2)} ms each, ${(bytes / 1e6).toFixed(1)} MB, heap +${(heapGrowth / 1e6).toFixed(1)} MB; p99 ms: ${p99s.map(([name, ms]) => `${name} ${Number(ms).toFixed(1)}`).join(', ')}`)
  history.close()
})

/** Of its own CPU time, because the machine may be busy with others. @param {() => unknown} work @returns {number} ms */
function p99 (work) {
  const times = Array.from({ length: 200 }, () => {
    const began = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(began)
    return (user + system) / 1000
  }).sort((a, b) => a - b)
  return times[197]
}

function usedHeap () {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
