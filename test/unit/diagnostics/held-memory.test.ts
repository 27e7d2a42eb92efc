import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { createHeldMemory } from '../../../server/diagnostics/held-memory.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import { keptEvents, type SeenEvent } from '../../support/event-log.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { Supervisor } from '../../../server/cluster/supervisor.ts'

const MINUTE_MS = 60_000

function startHeldMemory (t: TestContext) {
  const folder = path.join(tempFolder(), 'heaps')
  const asked = [] as { worker: number, file: string }[]
  const { events: told, publish } = keptEvents()
  const clock = { at: 0 }
  const machine = { freeBytes: 4e9, writes: false, ended: [] as number[] }
  const first = Promise.withResolvers<SeenEvent>()
  let hear = (_event: DeckEvent) => {}
  let onKept: Parameters<Supervisor['onHeapKept']>[0] = () => {}
  const heldMemory = createHeldMemory({
    supervisor: { snapshot: () =>
      fake({
        workers: [{ id: 1, runtime: 'node' }, { id: 2, runtime: 'node' }, { id: 3, runtime: 'node' }, { id: 4,
          runtime: 'other' }]
      }), writesHeap: () =>
        machine.writes, endHeap: (worker) => {
        machine.ended.push(worker)
      }, tell: (worker, message) => {
        asked.push({ worker, ...Object(message) })
      }, onHeapKept: (listener) => {
        onKept = listener
      } },
    events: fake({ subscribe (listener) {
      hear = listener
      return () => {}
    }, publish (event) {
      first.resolve(publish(event) as SeenEvent)
    } }),
    history: fake({ page: () => ({ items: [] }) }),
    folder,
    isOn: () =>
      true,
    now: () => clock.at,
    freeBytes: () => machine.freeBytes
  })
  t.after(heldMemory.close)
  const say = (type: string, worker: number, release = 'r1') =>
    hear(fake({ type, cause: 'memory-limit', worker, slot: 1, release }))
  return { folder, machine, asked, told, first: first.promise, clock, recycle: say.bind(null, 'worker.recycling'),
    exit: say.bind(null, 'worker.exited'), keep: ((worker, message) => onKept(worker, message)) as typeof onKept }
}

test('of a worker that ended before its heap was written it is said that nothing is known, and the next one is asked five minutes later', (t) => {
  const { asked, told, folder, clock, recycle, exit } = startHeldMemory(t)
  recycle(4)
  assert.equal(asked.length, 0, 'it has no heap that is known here')
  recycle(1)
  writeFileSync(asked[0].file, 'half of')
  exit(2)
  assert.deepEqual(told, [])
  exit(1)
  assert.deepEqual(told.map(({ type, worker, release, message, detail }) => [type, worker, release, message, detail]), [
    ['memory.examined', 1, 'r1',
      'what held the memory of worker 1 is not known: the worker ended before its heap was written', {
      error: 'the worker ended before its heap was written'
    }]
  ])
  assert.equal(existsSync(folder), false)
  for (const [at, count] of [[4 * MINUTE_MS, 1], [5 * MINUTE_MS, 2]]) {
    clock.at = at
    recycle(3)
    assert.equal(asked.length, count)
  }
})

test('of a worker that has written its heap it is said once what held the memory, and its release has an hour', async (t) => {
  const { asked, told, first, folder, clock, recycle, exit, keep } = startHeldMemory(t)
  recycle(1)
  recycle(2, 'r2')
  assert.equal(asked.length, 1, 'one at a time')
  // The heap of this process may be that of hundreds of tests.
  execFileSync(process.execPath, ['-e', 'v8.writeHeapSnapshot(process.argv[1])', asked[0].file])
  keep(2, { requests: 1, rssBytes: 1, ms: 1, error: null })
  keep(1, { requests: 2000, rssBytes: 5e6, ms: 1500, error: null })
  exit(1)
  const { message, detail } = await first
  assert.match(message, /^worker 1 held \d+ MB in its heap when it was recycled/)
  assert.deepEqual([detail.requests, detail.rssBytes, detail.writtenMs, told.length], [2000, 5e6, 1500, 1])
  await new Promise(setImmediate)
  assert.equal(existsSync(folder), false)
  clock.at = 59 * MINUTE_MS
  recycle(3)
  assert.equal(asked.length, 1)
  clock.at = 60 * MINUTE_MS
  recycle(3)
  assert.equal(asked.length, 2)
})

test('a worker that takes more than half of the free memory to write its heap is ended, and its release has an hour', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { machine, asked, told, clock, recycle, exit } = startHeldMemory(t)
  machine.freeBytes = 1000
  recycle(1)
  const pass = (freeBytes: number) => {
    machine.freeBytes = freeBytes
    t.mock.timers.tick(1000)
  }
  // It serves, and others take what they need.
  pass(400)
  machine.writes = true
  pass(210)
  assert.deepEqual([machine.ended, told], [[], []])
  pass(190)
  pass(100)
  exit(1)
  assert.deepEqual(machine.ended, [1])
  assert.deepEqual(told.map(({ message }) => message), [
    'what held the memory of worker 1 is not known: half of the free memory was not enough to write its heap'
  ])
  clock.at = 59 * MINUTE_MS
  recycle(2)
  assert.equal(asked.length, 1)
})
