import assert from 'node:assert/strict'
import { appendFileSync, closeSync, openSync, utimesSync, writeSync } from 'node:fs'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { liveFile, type Log } from '../../../server/logs/log-files.ts'
import { createLogs } from '../../../server/logs/logs.ts'
import { tempFolder } from '../../support/folder.ts'
import { rareTest } from '../../support/rare.ts'
import type { Worker } from 'node:worker_threads'

const LOGS: Log[] = [{ slot: 1, stream: 'stdout' }, { slot: 1, stream: 'stderr' }, { slot: 2, stream: 'stdout' }]
const MEGABYTE = 1024 * 1024
/** Enough for a machine that is busy. */
const budgetMs = 60_000

test('page by page it finds every line that matches once, in the order of their arrival, over rotation', async () => {
  const line = fc.record({ log: fc.nat({ max: LOGS.length - 1 }), isMatch: fc.boolean(), isLong: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 60 }), fc.integer({ min: 1, max: 9 }), fc.boolean(),
      async (lines, count, isRotated) => {
        const { logs, write, rotate } = setUp()
        const expected = []
        for (const [index, { log, isMatch, isLong }] of lines.entries()) {
          const text = `${index} ${isMatch ? 'Needle' : 'hay'} ${'x'.repeat(isLong ? 3000 : 0)}`
          await write(LOGS[log], text, 1000 + index)
          if (isMatch) expected.push(text)
        }
        if (isRotated) await rotate()
        const found = []
        for (let before;;) {
          const { items, next } = await logs.find({ logs: LOGS, lines: count, q: 'needle', before, budgetMs })
          found.unshift(...items.map(({ text }) => text))
          if (next === null) break
          before = next
        }
        assert.deepEqual(found, expected)
        await logs.close()
      }),
    { numRuns: 8 }
  )
})

test('an answer that is full before all newer lines were read leaves what it found too early to the next one', async () => {
  const { logs, write } = setUp()
  const order = [...Array(400).keys()]
  // More than an answer holds: it is full in the middle of what is read at once.
  for (const index of order) {
    await write(LOGS[1], `${index} ${'x'.repeat(17_000)}`, 1000 + index)
    if (index === 150) await write(LOGS[0], '150.5', 1000.5 + index)
  }
  const found: number[] = []
  for (let before;;) {
    const { items, next } = await logs.find({ logs: LOGS, lines: 1000, q: '/^\\d/', before, budgetMs })
    found.unshift(...items.map(({ text }) => parseFloat(text)))
    if (next === null) break
    before = next
  }
  assert.deepEqual(found, [...order, 150.5].sort((a, b) => a - b))
  await logs.close()
})

test('around a time it shows what was before and after it, of all logs', async () => {
  const { logs, write } = setUp()
  for (let second = 1; second <= 9; second++) await write(LOGS[second % 3], `line ${second}`, second)
  const { items } = await logs.find({ logs: LOGS, lines: 4, around: 5000, budgetMs })
  assert.deepEqual(items.map(({ text, arrivedAt }) => [text, arrivedAt]), [['line 3', 3000], ['line 4', 4000], [
    'line 5',
    5000
  ], ['line 6', 6000]])
  await logs.close()
})

test('around a line it shows what was before and after it, of all logs, however many arrived at the same moment', async () => {
  const { logs, write } = setUp()
  for (let second = 1; second <= 9; second++) await write(LOGS[second % 3], `line ${second}`, Math.min(second, 5))
  const { items: [line] } = await logs.find({ logs: LOGS, lines: 1, q: 'line 6', budgetMs })
  for (const lines of [2, 4]) {
    const { items } = await logs.find({ logs: LOGS, lines, around: { log: LOGS[0], position: line.position },
      budgetMs })
    assert.deepEqual([items.length, items[lines / 2].text], [lines, 'line 6'])
  }
  assert.deepEqual(await logs.find({ logs: LOGS, lines: 4, around: { log: LOGS[0], position: 1e9 }, budgetMs }), {
    items: [],
    next: null
  })
  await logs.close()
})

test('of a line longer than all that is read at once the match is shown, bounded', async () => {
  const { logs, folder } = setUp()
  appendFileSync(liveFile(folder, LOGS[0]), `first\n${'y'.repeat(3 * MEGABYTE)}needle${'z'.repeat(MEGABYTE)}\nlast\n`)
  const { items, next } = await logs.find({ logs: LOGS, lines: 10, q: 'needle', budgetMs })
  assert.equal(items.length, 1)
  assert.ok(items[0].text.includes('needle') && items[0].text.length <= 16 * 1024)
  assert.equal(next, null)
  assert.deepEqual((await logs.find({ logs: LOGS, lines: 10, q: 'first', budgetMs })).items.map(({ text }) => text), [
    'first'
  ])
  await logs.close()
})

test('lines that lie across what is read at once are found once, and whole', async () => {
  const { logs, folder } = setUp()
  const written = Array.from({ length: 4000 }, (_, index) => `${index} ${'x'.repeat(900)}`)
  appendFileSync(liveFile(folder, LOGS[0]), `${written.join('\n')}\n`)
  const { items } = await logs.find({ logs: LOGS, lines: 5000, q: 'X', budgetMs })
  assert.deepEqual(items.map(({ text }) => text), written)
  await logs.close()
})

test('a search that has no time at all gets on with each call, and finds what there is', async () => {
  const { logs, folder } = setUp()
  for (const log of LOGS) appendFileSync(liveFile(folder, log), 'one needle\nhay\ntwo needles\n')
  const found: string[] = []
  let calls = 0
  for (let before; before !== null; calls++) {
    const { items, next } = await logs.find({ logs: LOGS, lines: 10, q: 'needle', before, budgetMs: 0 })
    found.push(...items.map(({ text }) => text))
    before = next
    assert.ok(calls < 20)
  }
  assert.deepEqual(found.sort(), [...LOGS.map(() => 'one needle'), ...LOGS.map(() => 'two needles')])
  await logs.close()
})

rareTest('a search of a large file stops when its time is spent, and says where to go on', async () => {
  const { logs, folder } = setUp()
  const fd = openSync(liveFile(folder, LOGS[0]), 'a')
  writeSync(fd, 'the needle\n')
  const block = Buffer.from(`${'hay '.repeat(25)}\n`.repeat(10_000))
  for (let written = 0; written < 60; written++) writeSync(fd, block)
  closeSync(fd)
  let pages = 0
  for (let before;; pages++) {
    const { items, next } = await logs.find({ logs: LOGS, lines: 10, q: 'needle', before, budgetMs: 10 })
    if (next === null) {
      assert.deepEqual(items.map(({ text }) => text), ['the needle'])
      break
    }
    before = next
  }
  assert.ok(pages > 0, 'not in one go')
  await logs.close()
})

test('refuses a search where many wait already, and ends those that run when it closes', async () => {
  const { logs } = setUp()
  const all = Array.from({ length: 9 },
    () => logs.find({ logs: LOGS, lines: 1 }).then(() => 'found', ({ code }) => code))
  assert.equal(await all[8], 'rate-limited')
  await logs.close()
  assert.ok((await Promise.all(all)).every((outcome) => ['found', 'rate-limited', 'stopping'].includes(outcome)))
})

test('of all apps in a process no more than two search at a time', async (t) => {
  let alive = 0
  let most = 0
  const noteThread = (thread: Worker) => {
    most = Math.max(most, ++alive)
    thread.once('exit', () => {
      alive--
    })
  }
  process.on('worker', noteThread)
  t.after(() => process.off('worker', noteThread))
  const apps = Array.from({ length: 5 }, setUp)
  await Promise.all(apps.map(({ logs }) => logs.find({ logs: LOGS, lines: 1, budgetMs })))
  assert.equal(most, 2)
  await Promise.all(apps.map(({ logs }) => logs.close()))
})

function setUp () {
  const folder = tempFolder()
  const options = { maxBytes: 8 * 1024, maxFiles: 1000, mirror: 'off' } as const
  const create = () =>
    createLogs({ folder, options, streams: { stdout: process.stdout, stderr: process.stderr }, onError: (reason) =>
      assert.fail(reason) })
  const logs = create()
  for (const slot of [1, 2]) logs.open({ worker: slot, slot }).close()
  return {
    logs,
    folder,

    /** While a master looks. */
    async write (log: Log, text: string, seconds: number) {
      const file = liveFile(folder, log)
      appendFileSync(file, `${text}\n`)
      utimesSync(file, seconds, seconds)
      await logs.arrivals(log, [1])
    },

    async rotate () {
      const other = create()
      other.start()
      await other.close()
    }
  }
}
