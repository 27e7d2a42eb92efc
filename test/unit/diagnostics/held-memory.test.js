import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { writeHeapSnapshot } from 'node:v8'
import { createHeldMemory } from '../../../server/diagnostics/held-memory.js'
import { createDeferred } from '../../../server/system/deferred.js'
import { tempFolder } from '../../support/folder.js'

const MINUTE_MS = 60_000

/** @param {import('node:test').TestContext} t */
function startHeldMemory (t) {
  const folder = path.join(tempFolder(), 'heaps')
  const asked = /** @type {{ worker: number, file: string }[]} */ ([])
  const told = /** @type {any[]} */ ([])
  const clock = { at: 0 }
  const first = createDeferred()
  let hear = (/** @type {any} */ _event) => {}
  let onKept = (/** @type {number} */ _worker, /** @type {any} */ _message) => {}
  const heldMemory = createHeldMemory({
    supervisor: { snapshot: () => /** @type {any} */ ({ workers: [{ id: 1, runtime: 'node' }, { id: 2, runtime: 'node' }, { id: 3, runtime: 'node' }, { id: 4, runtime: 'other' }] }), tell: (worker, message) => { asked.push({ worker, ...Object(message) }) }, onHeapKept: (listener) => { onKept = listener } },
    events: /** @type {any} */ ({
      subscribe (/** @type {typeof hear} */ listener) {
        hear = listener
        return () => {}
      },
      publish (/** @type {any} */ event) {
        told.push(event)
        first.reach(event)
      }
    }),
    history: /** @type {any} */ ({ page: () => ({ items: [] }) }),
    folder,
    isOn: () => true,
    now: () => clock.at
  })
  t.after(heldMemory.close)
  const say = (/** @type {string} */ type, /** @type {number} */ worker, release = 'r1') => hear({ type, cause: 'memory-limit', worker, slot: 1, release })
  return { folder, asked, told, first: first.reached, clock, recycle: say.bind(null, 'worker.recycling'), exit: say.bind(null, 'worker.exited'), keep: (/** @type {number} */ worker, /** @type {any} */ message) => onKept(worker, message) }
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
  assert.deepEqual(told.map(({ type, worker, release, message, detail }) => [type, worker, release, message, detail]), [['memory.examined', 1, 'r1',
    'what held the memory of worker 1 is not known: the worker ended before its heap was written', { error: 'the worker ended before its heap was written' }]])
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
  writeHeapSnapshot(asked[0].file)
  keep(2, { requests: 1, rssBytes: 1, ms: 1, error: null })
  keep(1, { requests: 2000, rssBytes: 5e6, ms: 1500, error: null })
  exit(1)
  const { message, detail } = /** @type {any} */ (await first)
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
