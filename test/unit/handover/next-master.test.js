import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { isOnRecord, standBy } from '../../../server/handover/next-master.js'
import { createEventStream } from '../../../server/events/stream.js'
import { tempFolder } from '../../support/folder.js'

test('what happens until it serves is told to the other master, what comes later waits for its own history', async () => {
  const { candidate, keeper, supervisor } = await setUp()
  supervisor.tell({ type: 'worker.forked', worker: 7 })
  assert.deepEqual(keeper.sent.map(({ type, event }) => [type, event?.type]), [['relay', 'worker.forked']])
  supervisor.state = 'running'
  supervisor.tell({ type: 'worker.ready', worker: 7 })
  supervisor.tell({ type: 'worker.exited', worker: 7, message: 'too late to fail' })
  assert.deepEqual(keeper.sent.map(({ type, event }) => [type, event?.type]), [['relay', 'worker.forked'], ['relay', 'worker.ready'], ['serving', undefined]])

  keeper.hear('take-over', { predecessor: null })
  const events = createEventStream()
  /** @type {string[]} */
  const published = []
  events.subscribe(({ type }) => published.push(type))
  const { open, predecessor } = await candidate
  open(events, () => true)
  assert.deepEqual([predecessor, published], [null, ['worker.exited']])
  supervisor.tell({ type: 'worker.restarted', worker: 8 })
  assert.deepEqual(published, ['worker.exited', 'worker.restarted'], 'from here on they are its own')
})

test('where the other master has died, what it has not recorded is told again', async () => {
  const { candidate, keeper, supervisor } = await setUp()
  supervisor.tell({ type: 'worker.forked', worker: 7 })
  supervisor.tell({ type: 'worker.online', worker: 7 })
  const predecessor = { pid: 1, code: null, signal: 'SIGKILL' }
  keeper.hear('take-over', { predecessor })
  supervisor.tell({ type: 'worker.exited', worker: 7 })
  const events = createEventStream()
  /** @type {string[]} */
  const published = []
  events.subscribe(({ type }) => published.push(type))
  const outcome = await candidate
  outcome.open(events, ({ type }) => type === 'worker.forked')
  assert.deepEqual([outcome.predecessor, published], [predecessor, ['worker.online', 'worker.exited']])
})

test('a worker that is lost before all serve ends it: the reason is told first, and its workers have drained when it ends', async () => {
  const { candidate, keeper, supervisor } = await setUp()
  let isSettled = false
  const refused = assert.rejects(candidate, { code: 'upgrade-failed', message: 'worker 7 died' }).then(() => { isSettled = true })
  supervisor.tell({ type: 'worker.exited', worker: 7, message: 'worker 7 died' })
  await new Promise(setImmediate)
  assert.deepEqual([supervisor.abandoned, isSettled], [1, false])
  assert.equal(keeper.sent.some(({ type }) => type === 'serving'), false)
  supervisor.finish()
  await refused
})

test('a keeper that is gone ends it', async () => {
  const { candidate, keeper, supervisor } = await setUp()
  keeper.lose()
  supervisor.finish()
  await assert.rejects(candidate, { message: 'the keeper is gone' })
})

test('on record is what the history tells of its worker, or of its release; what names neither is told once more', () => {
  const recorded = [{ type: 'worker.forked', worker: 7, release: 'r2' }, { type: 'release.kept', release: 'r2' }]
  const isKnown = isOnRecord(/** @type {any} */ ({
    page: (/** @type {any} */ { type: [type], worker, release }) => ({
      items: recorded.filter((event) => event.type === type && (worker === undefined || event.worker === worker) && (release === undefined || event.release === release))
    })
  }))
  assert.equal(isKnown({ type: 'worker.forked', worker: 7 }), true)
  assert.equal(isKnown({ type: 'worker.forked', worker: 8, release: 'r2' }), false)
  assert.equal(isKnown({ type: 'release.kept', worker: null, release: 'r2' }), true)
  assert.equal(isKnown({ type: 'release.kept', release: 'r3' }), false)
  assert.equal(isKnown({ type: 'worker.forked' }), false)
})

async function setUp () {
  const folder = tempFolder()
  const entry = path.join(folder, 'app.js')
  writeFileSync(entry, '')
  const keeper = {
    sent: /** @type {any[]} */ ([]),
    handlers: /** @type {Record<string, (message: any) => void>} */ ({}),
    lose: () => {},
    send (/** @type {any} */ message) { keeper.sent.push(message) },
    on (/** @type {string} */ type, /** @type {(message: any) => void} */ handler) { keeper.handlers[type] = handler },
    onLost (/** @type {() => void} */ handler) { keeper.lose = handler },
    offLost () {},
    hear (/** @type {string} */ type, /** @type {any} */ message) { keeper.handlers[type](message) }
  }
  /** @type {any} */
  let outbox
  const supervisor = {
    state: 'starting',
    abandoned: 0,
    finish: () => {},
    finished: /** @type {Promise<void>} */ (Promise.resolve()),
    startBlocked: new Promise(() => {}),
    start () {},
    memory: () => ({ workers: [] }),
    snapshot: () => ({ state: supervisor.state }),
    abandon () { supervisor.abandoned++ },
    tell (/** @type {any} */ event) { outbox.publish(event) }
  }
  supervisor.finished = new Promise((resolve) => { supervisor.finish = () => resolve() })
  const candidate = standBy({
    keeper: /** @type {any} */ (keeper),
    config: /** @type {any} */ ({ entry, workers: 2 }),
    dataDir: /** @type {any} */ ({ historyFile: path.join(folder, 'history.db') }),
    memory: { read: () => null },
    releases: /** @type {any} */ ({ begin: async () => {}, resume: async () => ({ id: 'r1', entry, path: folder }), follow () {} }),
    supervise: ({ events }) => {
      outbox = events
      return /** @type {any} */ (supervisor)
    }
  })
  // By then it has its release.
  await new Promise(setImmediate)
  return { candidate, keeper, supervisor }
}
