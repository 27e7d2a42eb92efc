import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openDataDir } from '../../../server/system/data-dir.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { identifyProcess } from '../../../server/system/process-identity.ts'
import { createCheckpointStore, restoreCheckpoint, reconcileWorkers, rememberFor,
  signCheckpoint } from '../../../server/handover/checkpoint.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import type { SavedWorker } from '../../../server/cluster/adoption.ts'

const LOST = { pid: 4321, startTime: 'boot:1' }
const NEXT = identifyProcess(process.pid)
const NO_JOBS = { memory: () => ({ runs: [], due: {} }) }
const HOOKS = { memory: () => [{ name: 'beforeDeploy', pid: 77, startTime: 'boot:5' }] }
const RELEASES = { lastNumber: () => 7 }
const SOFTWARE = { version: '1.0.0', nodeVersion: 'v20.20.0' }

function setUp () {
  const folder = tempFolder()
  const { memory } = openDataDir(path.join(folder, 'data'))
  const worker = { id: 8, slot: 1, state: 'ready' as const, release: 'r3', pid: 4322,
    startedAt: '2026-01-01T00:00:00.000Z', readyAt: null, intent: null,
    identity: { pid: 4322, startTime: 'boot:2', crashFile: '/crash', orderFile: '/order' } }
  const content = { version: 1, master: LOST, software: SOFTWARE, handedOver: false, nextWorker: 9,
    sockets: ['null:3000:4:undefined:0'], addresses: { 1: [{ url: 'http://localhost:3000', isFixed: true }] }, since: 5,
    hooks: HOOKS.memory(), workers: [worker] }
  return { folder, memory, worker, content }
}

describe('a memory that is restored', () => {
  test('without a memory a master begins anew', async () => {
    assert.deepEqual(await restoreCheckpoint(null, null), { addresses: {}, lost: null, isHandedOver: false,
      before: null, left: [], sockets: [], since: null, runs: null, bootCost: null, guard: null, hooks: [],
      jobs: NO_JOBS.memory(), nextWorker: 1, firstOfNext: 1, lastRelease: 0, lastEvent: 0, lastRollout: 0 })
  })

  test('it goes on with the guard and the workers that were left', async () => {
    const { content, worker } = setUp()
    const guard = { release: 'r3', from: 'r2', rollout: 5, isTripped: false, endsAt: '2026-01-01T00:05:00.000Z' }
    assert.equal((await restoreCheckpoint(content, null)).guard, null)
    const bootCost = { cpuMs: 9000, activeMs: 9100 }
    assert.deepEqual(await restoreCheckpoint({ ...content, guard, bootCost }, null), { bootCost,
      lost: { pid: 4321, code: null, signal: null }, isHandedOver: false, before: SOFTWARE,
      left: [{ ...worker, orphan: 'master-lost' }], sockets: ['null:3000:4:undefined:0'], hooks: HOOKS.memory(),
      jobs: NO_JOBS.memory(), addresses: { 1: [{ url: 'http://localhost:3000', isFixed: true }] }, since: 5, runs: null,
      guard, nextWorker: 9, firstOfNext: 9, lastRelease: 0, lastEvent: 0, lastRollout: 0 })
  })

  test('what was handed over in an upgrade is not lost', async () => {
    const { content } = setUp()
    const { lost, left } = await restoreCheckpoint({ ...content, handedOver: true }, { pid: 4321, code: 0,
      signal: null })
    assert.deepEqual([lost, left.map(({ orphan }) => orphan)], [null, ['upgrade']])
  })

  test('the end of the lost master is the keeper\'s to say, if it is the same one', async () => {
    const { content } = setUp()
    const end = { pid: 4321, code: null, signal: 'SIGKILL' }
    assert.deepEqual((await restoreCheckpoint(content, end)).lost, end)
    assert.deepEqual((await restoreCheckpoint(content, { ...end, pid: 1234 })).lost, { pid: 4321, code: null,
      signal: null })
  })

  const useless: [string, (content: ReturnType<typeof setUp>['content']) => object][] = [['of another version',
    (content) => ({ ...content, version: 2 })], ['of nothing but a version', () => ({ version: 1 })], ['that is a list',
    () => []], ['with a worker that cannot be told from others',
    ({ workers: [{ identity, ...worker }], ...rest }) => ({ ...rest, workers: [worker] })], [
    'whose worker would be every process',
    ({ workers: [worker], ...rest }) => ({ ...rest,
      workers: [{ ...worker, identity: { ...worker.identity, pid: -1 } }] })
  ], ['whose worker is in no state of ours',
    ({ workers: [worker], ...rest }) => ({ ...rest, workers: [{ ...worker, state: 'asleep' }] })]]
  for (const [what, spoil] of useless) {
    test(`a memory ${what} is none`, async () => {
      const { content } = setUp()
      assert.deepEqual((await restoreCheckpoint(spoil(content), null)).left, [])
      assert.equal((await restoreCheckpoint(spoil(content), null)).lost, null)
    })
  }
})

describe('reconcile', () => {
  const life = (worker: number) => ({ worker, slot: 1, pid: 5000 + worker, release: 'r3',
    startedAt: '2026-01-01T00:00:00.000Z' })

  test('an end that is on record is not told again, and a worker that only the history knows gets one', () => {
    const { worker } = setUp()
    const left = fake<SavedWorker[]>([worker, { ...worker, id: 9 }])
    const all = reconcileWorkers(left, { ended: new Set([9]), open: [life(8), life(10)] }, [])
    assert.deepEqual(all.map(({ id, state, identity }) => [id, state, identity?.pid ?? null]), [[8, 'ready', 4322], [10,
      'starting', null]])
  })

  test('those of a master that takes over are none of the one before', () => {
    assert.deepEqual(reconcileWorkers([], { ended: new Set(), open: [life(3), life(4)] }, [{ id: 3 }, { id: 4 }]), [])
  })
})

describe('what is remembered', () => {
  test('is written with the event after which it has changed, signed by this process, and only then', (t) => {
    const { memory, content: { nextWorker, workers } } = setUp()
    const write = t.mock.method(memory, 'write')
    const events = createEventStream()
    let next = nextWorker
    const remembering = rememberFor({ memory, events, kept: { unsaved: () => null }, releases: RELEASES, hooks: HOOKS,
      jobs: NO_JOBS, software: SOFTWARE, since: 5,
      supervisor: fake({ memory: () => ({ nextWorker: next, workers }) }) })
    assert.equal(memory.read(), null)

    events.publish({ type: 'worker.ready' })
    assert.deepEqual(memory.read(), { version: 1, master: NEXT, software: SOFTWARE, handedOver: false, since: 5,
      nextWorker, workers, runs: null, hooks: HOOKS.memory(), jobs: NO_JOBS.memory(), nextRelease: 8, lastEvent: 1 })
    events.publish({ type: 'worker.listening' })
    assert.equal(write.mock.callCount(), 1)

    next = 5
    events.publish({ type: 'scale.changed' })
    assert.equal(Object(memory.read()).nextWorker, 5)
    next = 6
    remembering.handOver()
    assert.deepEqual([Object(memory.read()).nextWorker, Object(memory.read()).handedOver], [6, true])
    next = 7
    events.publish({ type: 'scale.changed' })
    assert.equal(Object(memory.read()).nextWorker, 6, 'the cluster is another master\'s now')
  })

  test('is forgotten for good where nothing is left to go on with', () => {
    const { memory } = setUp()
    const events = createEventStream()
    const remembering = rememberFor({ memory, events, kept: { unsaved: () => null }, releases: RELEASES, hooks: HOOKS,
      jobs: NO_JOBS, software: SOFTWARE, since: 5,
      supervisor: fake({ memory: () => ({ nextWorker: 1, workers: [] }) }) })
    events.publish({ type: 'worker.ready' })
    remembering.forget()
    events.publish({ type: 'worker.listening' })
    assert.equal(memory.read(), null)
  })

  test('is tried again with the next event where it could not be written', (t) => {
    const { memory } = setUp()
    const events = createEventStream({ onError: () => {} })
    const write = t.mock.method(memory, 'write', () => {
      throw Object.assign(new Error('full'), { code: 'ENOSPC' })
    })
    rememberFor({ memory, events, kept: { unsaved: () => null }, releases: RELEASES, hooks: HOOKS, jobs: NO_JOBS,
      software: SOFTWARE, since: 5, supervisor: fake({ memory: () => ({ nextWorker: 1, workers: [] }) }) })
    events.publish({ type: 'worker.ready' })
    write.mock.restore()
    events.publish({ type: 'worker.listening' })
    assert.equal(Object(memory.read()).nextWorker, 1)
  })

  test('can be restored as it was written', async () => {
    const { memory, content } = setUp()
    memory.write(content)
    assert.equal((await restoreCheckpoint(memory.read(), null)).left.length, 1)
  })

  test('of a lost master becomes the next one\'s own by its signature; where there is none, none is made', async () => {
    const { memory, content } = setUp()
    signCheckpoint(memory)
    assert.equal(memory.read(), null)
    memory.write({ ...content, handedOver: true })
    signCheckpoint(memory)
    assert.deepEqual(memory.read(), { ...content, master: NEXT })
    assert.equal((await restoreCheckpoint(memory.read(), null)).lost?.pid, process.pid)
    memory.clear()
    assert.equal(memory.read(), null)
  })
})

test('the numbers of releases that were given out are known, also those of refused rollouts', async () => {
  const { content } = setUp()
  assert.equal((await restoreCheckpoint({ ...content, nextRelease: 7 }, null)).lastRelease, 6)
})

describe('where a memory is kept', () => {
  /** A disk that can be full, and a keeper. */
  function places () {
    const disk = { content: null as unknown, isFull: false }
    let held = null as unknown
    const file = { read: () => disk.content, write (content: unknown) {
      if (disk.isFull) throw new Error('ENOSPC')
      disk.content = content
    }, clear () {
      disk.content = null
    } }
    const keeper = { hasGone: false, read: () => held, write: (content: unknown) => {
      held = content
      return !keeper.hasGone
    } }
    return { disk, keeper, store: createCheckpointStore({ file, keeper }) }
  }

  test('with the keeper while the disk is full, and in the file again afterwards', () => {
    const { disk, keeper, store } = places()
    store.write(1)
    disk.isFull = true
    store.write(2)
    assert.deepEqual([store.read(), disk.content, keeper.read()], [2, 1, 2])
    disk.isFull = false
    store.write(3)
    assert.deepEqual([store.read(), disk.content, keeper.read()], [3, 3, null])
    store.clear()
    assert.equal(store.read(), null)
  })

  test('nowhere, which is an error, where there is no keeper either', () => {
    const { disk, keeper, store } = places()
    keeper.hasGone = disk.isFull = true
    assert.throws(() => store.write(1), /ENOSPC/)
  })
})
