import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { readChanges } from '../../../server/diagnostics/api-profiles.ts'
import { createProfiling, type Window } from '../../../server/diagnostics/profiling.ts'
import { toCallTree } from '../../../server/diagnostics/api-call-tree.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'

const NOW = Date.parse('2026-01-31T12:00:00Z')
const MINUTE_MS = 60_000

/** `busy`: ms by function; `folder`: of the release */
function profileOf (busy: Record<string, number>, folder: string) {
  const names = Object.keys(busy)
  const frame = (functionName: string, url = '') => ({ functionName, scriptId: '1', url, lineNumber: 9,
    columnNumber: 0 })
  return {
    nodes: [{ id: 1, callFrame: frame('(root)'), children: [2, ...names.map((_, index) => index + 3)] }, { id: 2,
      callFrame: frame('(idle)') },
      ...names.map((name, index) => ({ id: index + 3, callFrame: frame(name, `file://${folder}/src/${name}.js`),
        positionTicks: [{ line: 12, ticks: 3 }] })
      )],
    samples: [2, ...names.map((_, index) => index + 3)],
    timeDeltas: [0, 1_000_000, ...Object.values(busy).slice(0, -1).map((ms) => 1000 * ms)],
    startTime: 0,
    endTime: 1_000_000 + 1000 * Object.values(busy).reduce((sum, ms) => sum + ms, 0)
  }
}

function startProfiling (t: TestContext, limits?: { keptBytes?: number }) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW })
  const folder = path.join(tempFolder(), 'profiles')
  const workers = [1, 2].map((id) => ({ id, slot: id, pid: 4000 + id, release: 'r1', state: 'ready',
    runtime: 'node' as 'node' | 'other', orphan: false })
  )
  const orders: { worker: number, file: string, durationMs: number }[] = []
  const settings = { isOn: true }
  const profiling = createProfiling({
    supervisor: fake({ snapshot: () => ({ workers }), tell: (worker, message) =>
      orders.push({ worker, ...message as { file: string, durationMs: number } }) > 0 }),
    folder,
    isOn: () => settings.isOn,
    folderOf: (release) => release === 'r9' ? null : `/srv/${release}`,
    places: { placeOf: () => null, lineOf: () => null }
  }, limits)
  t.after(profiling.close)
  return { profiling, folder, workers, orders, settings,
    write: (file: string, content: unknown) => writeFileSync(file, gzipSync(JSON.stringify(content))) }
}

/** In steps, as a timer that is set by another one begins when that has fired. */
function pass (t: TestContext, ms: number) {
  for (let passed = 0; passed < ms; passed += 1000) t.mock.timers.tick(1000)
}

test('each worker that serves is profiled once a minute, one at a time, while the option is on', (t) => {
  const { orders, workers, settings } = startProfiling(t)
  pass(t, 2 * MINUTE_MS)
  assert.deepEqual(orders.slice(0, 4).map(({ worker, durationMs }) => [worker, durationMs]), [[1, 5000], [2, 5000], [1,
    5000], [2, 5000]])
  const begins = orders.map(({ file }) => Number.parseInt(path.basename(file), 10))
  assert.ok(begins.every((at, index) => index === 0 || at - begins[index - 1] >= 6000), 'never two at once')
  workers[0].state = 'draining'
  workers[1].runtime = 'other'
  orders.length = 0
  pass(t, 2 * MINUTE_MS)
  assert.deepEqual(orders, [], 'nobody else')
  workers[0].state = 'ready'
  settings.isOn = false
  pass(t, 2 * MINUTE_MS)
  assert.deepEqual(orders, [])
})

test('the slices of a window become one profile: of one worker or all, of one release or two in different folders', async (t) => {
  const { profiling, orders, workers, write } = startProfiling(t)
  pass(t, MINUTE_MS)
  write(orders[0].file, profileOf({ priceOf: 300 }, '/srv/r1'))
  workers[1].release = 'r2'
  orders.length = 0
  pass(t, MINUTE_MS)
  write(orders.filter(({ worker }) => worker === 2)[0].file, profileOf({ priceOf: 100, taxOf: 50 }, '/srv/r2'))

  const times = async (window: Window) =>
    Object.fromEntries(
      toCallTree((await profiling.read(window)).profile, { folder: '/srv/r2' }).functions.filter(({ selfMs }) =>
        selfMs > 0
      ).map(({ name, place, selfMs }) => [`${name} ${place}`, selfMs])
    )
  assert.deepEqual(await times({}), { 'priceOf src/priceOf.js:10': 400, 'taxOf src/taxOf.js:10': 50 })
  assert.deepEqual(await times({ worker: 2 }), { 'priceOf src/priceOf.js:10': 100, 'taxOf src/taxOf.js:10': 50 })
  assert.deepEqual(await times({ since: NOW + 2 * MINUTE_MS + 5000 }), {}, 'after both')
  assert.deepEqual(profiling.list({ until: NOW + MINUTE_MS }).map(({ worker, release }) => [worker, release]), [[1,
    'r1']])

  const { before, after, functions } = await readChanges(
    fake({ profiling, releases: { get: (release: string) => ({ path: `/srv/${release}` }) } }),
    { release: 'r2', beforeRelease: 'r1' }
  )
  assert.deepEqual([before.slices, before.busyPercent, after.slices, after.busyPercent], [1, 23.08, 1, 13.04])
  assert.deepEqual(
    functions.map(({ function: name, beforePercent, afterPercent }) => [name, beforePercent, afterPercent]),
    [['priceOf', 23.08, 8.7], ['taxOf', 0, 4.35]]
  )
})

test('slices older than an hour go, and the oldest beyond the size; what is not whole or no profile is left out', async (t) => {
  const { profiling, folder, orders, write } = startProfiling(t, { keptBytes: 3000 })
  pass(t, MINUTE_MS)
  const name = (at: number) => path.join(folder, `${at}-w1-s1-r1.json.gz`)
  write(name(NOW - 2 * 3_600_000), profileOf({ old: 1 }, '/srv/r1'))
  write(name(NOW + 1000), { nodes: [{ id: 1, children: [1, 2, null] }, null], samples: [1, 9], timeDeltas: 'none',
    endTime: {} })
  writeFileSync(name(NOW + 2000), 'cut short')
  writeFileSync(name(NOW + 3000), gzipSync(Buffer.alloc(20 * 1024 * 1024)))
  writeFileSync(path.join(folder, `${NOW}-w1-s1-r1.json.gz.part`), 'never finished')
  assert.equal((await profiling.read({ worker: 1, since: NOW })).profile.samples.length, 0)
  pass(t, MINUTE_MS)
  assert.equal(existsSync(name(NOW - 2 * 3_600_000)), false)
  assert.deepEqual(readdirSync(folder).filter((each) => each.endsWith('.part')), [])
  assert.deepEqual([NOW + 1000, NOW + 3000].map((at) => existsSync(name(at))), [false, false],
    'with the large one they are too much')
  assert.ok(orders.length > 0)
})

test('when something is wrong each worker is profiled at once, one at a time, and then once a minute again', (t) => {
  const { profiling, orders } = startProfiling(t)
  pass(t, 2 * MINUTE_MS)
  orders.length = 0
  profiling.hurry()
  profiling.hurry()
  pass(t, 15_000)
  assert.deepEqual(orders.map(({ worker }) => worker).sort(), [1, 2])
  pass(t, MINUTE_MS)
  assert.ok(orders.length <= 4, `${orders.length}`)
})
