import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { beginningOf, checkedRuns, keepRuns, type Runs } from '../../../server/app/runs.ts'
import { loadConfig, originOf, restoredConfig, storedConfig } from '../../../server/config/config.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { fake } from '../../support/fake.ts'
import { tempFolder } from '../../support/folder.ts'

const CHANGES = [{ name: 'drain.deadlineMs', value: 10_000, configured: 30_000 }]
const FINISHED = {
  2: { at: '2026-01-01T00:05:00.000Z', worker: 7, release: 'r3', cause: 'finished', code: 0, succeeded: true }
}

async function setUp () {
  const folder = tempFolder()
  const entry = path.join(folder, 'app.js')
  writeFileSync(entry, '')
  const config = await loadConfig({ flags: { entry, workers: 2 }, env: {}, cwd: folder })
  const release = { id: 'r3', entry, path: folder, mode: 'live' as const, createdAt: '2026-01-01T00:00:00.000Z' }
  const runs: Runs = { order: null, config: storedConfig(config, config), variables: {}, release, workers: 4,
    changes: CHANGES, finished: FINISHED }
  return { folder, config, release, runs }
}

describe('how a start begins', () => {
  test('where nothing ran, as it is configured', async () => {
    const { config } = await setUp()
    assert.deepEqual(beginningOf(null, config, { isOrdered: false }), { release: null, last: null, isGone: false,
      workers: 2, changes: [], finished: {} })
  })

  test('with what ran: its release, its size, what was changed and which programs had ended', async () => {
    const { config, release, runs } = await setUp()
    assert.deepEqual(beginningOf(runs, config, { isOrdered: false }), { release, last: release, isGone: false,
      workers: 4, changes: CHANGES, finished: FINISHED })
  })

  test('ordered, with the size that ran, but a release and a work that are to be looked at anew', async () => {
    const { config, release, runs } = await setUp()
    assert.deepEqual(beginningOf(runs, config, { isOrdered: true }), { release: null, last: release, isGone: false,
      workers: 4, changes: CHANGES, finished: {} })
  })

  test('a size or an entry that is configured anew counts more, and so does a release that has gone', async () => {
    const { config, runs, folder, release } = await setUp()
    const pick = ({ release: { id } = release, ...one }: Runs, changed: object) => {
      const { release: found, workers } = beginningOf({ ...one, release: { ...release, id } }, { ...config,
        ...changed }, { isOrdered: false })
      return [found?.id, workers]
    }
    assert.deepEqual(pick(runs, { workers: 3 }), ['r3', 3])
    assert.deepEqual(pick(runs, { entry: path.join(folder, 'other.js') }), [undefined, 4])
    const gone = { ...runs, release: { ...release, entry: path.join(folder, 'old', 'app.js') } }
    const { release: none, isGone } = beginningOf(gone, config, { isOrdered: false })
    assert.deepEqual([none, isGone], [null, true])
  })
})

describe('what runs', () => {
  async function keeping ({ goesOn }: { goesOn: boolean }) {
    const { config, release } = await setUp()
    const events = createEventStream()
    const snapshot: { state: 'starting' | 'running' } = { state: 'starting' }
    const now = { release, workers: 2, finished: {} }
    const spec = { order: null, inherited: {}, config, values: {}, secrets: {}, marks: {}, digest: '' }
    const saved: Runs[] = []
    const disk = { isFull: false }
    const kept = keepRuns({ store: { read: () => null, save: (runs) => saved.push(runs), async stored () {
      if (disk.isFull) throw new Error('the disk is full')
    }, isStored: () => !disk.isFull }, goesOn, config, events,
      supervisor: fake({ runs: () => now, snapshot: () => snapshot }), settings: { memory: () => [] }, keeper: {},
      releases: { launchOf: () => ({ spec, variables: { KEY: 'set', GONE: null } }) } })
    return { events, snapshot, saved, now, kept, disk }
  }

  test('is kept once it is ready, and then with each change', async () => {
    const { events, snapshot, saved, now, kept } = await keeping({ goesOn: false })
    events.publish({ type: 'worker.online' })
    await kept.stored()
    assert.deepEqual(saved, [], 'what never ran does not run again')
    snapshot.state = 'running'
    events.publish({ type: 'worker.ready' })
    assert.deepEqual(saved.map(({ workers, variables }) => [workers, variables]), [[2, { KEY: 'set', GONE: null }]])
    events.publish({ type: 'worker.online' })
    await kept.stored()
    now.workers = 3
    events.publish({ type: 'scale.changed' })
    assert.deepEqual(saved.map(({ workers }) => workers), [2, 3])
  })

  test('who asks hears that the disk does not take it, until it does; the checkpoint has it meanwhile', async () => {
    const { kept, disk, saved } = await keeping({ goesOn: true })
    disk.isFull = true
    for (let times = 0; times < 2; times++) await assert.rejects(kept.stored(), { message: 'the disk is full' })
    assert.deepEqual([saved.length, kept.unsaved()?.workers], [1, 2])
    disk.isFull = false
    await kept.stored()
    assert.deepEqual([saved.length, kept.unsaved()], [1, null])
  })

  test('is not what there is before the start has begun', async () => {
    const { events, saved, now } = await keeping({ goesOn: true })
    now.workers = 0
    events.publish({ type: 'master.started' })
    assert.deepEqual(saved, [])
  })

  test('that is damaged is none', async () => {
    const { runs } = await setUp()
    const read = JSON.parse(JSON.stringify(runs))
    assert.deepEqual(checkedRuns(read), read)
    const damaged = [null, 'text', [], {}, { ...read, workers: 0 }, { ...read, release: null }, { ...read,
      release: { ...read.release, entry: 3 } }, { ...read, config: { values: read.config.values } }, { ...read,
      changes: {} }, { ...read, finished: null }]
    assert.deepEqual(damaged.map(checkedRuns), damaged.map(() => null))
  })
})

describe('a configuration that is kept', () => {
  test('is the same again, with where each value comes from, and what the release has been deployed with', async () => {
    const folder = tempFolder()
    writeFileSync(path.join(folder, 'app.js'), '')
    const place = { env: { CLUSTERDECK_DRAIN_DEADLINE_MS: '5000' }, cwd: folder }
    const config = await loadConfig({ ...place, flags: { entry: 'app.js', workers: '3' } })
    writeFileSync(path.join(folder, 'clusterdeck.config.json'),
      JSON.stringify({ env: { A: 'deployed' }, ready: { timeoutMs: 1234 } }))
    const deployed = await loadConfig({ ...place, flags: { entry: 'app.js' } })
    const stored = JSON.parse(JSON.stringify(storedConfig(config, deployed)))
    const restored = await restoredConfig(stored)
    assert.deepEqual(JSON.parse(JSON.stringify(restored)),
      JSON.parse(JSON.stringify({ ...config, env: { A: 'deployed' } })))
    assert.ok(restored)
    assert.deepEqual([originOf(restored, 'workers')?.source, originOf(restored, 'env')?.source,
      originOf(restored, 'ready.timeoutMs')], ['flag', 'file', null])
  })

  test('is none where this version takes it no more', async () => {
    const { runs: { config } } = await setUp()
    assert.equal(
      await restoredConfig({ ...config, values: { ...config.values, dispatch: 'by moonlight' as 'shared' } }),
      null
    )
  })
})
