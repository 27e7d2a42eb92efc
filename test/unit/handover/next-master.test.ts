import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNextMaster, isOnRecord } from '../../../server/handover/next-master.ts'
import { createEventStream, type NewEvent } from '../../../server/events/stream.ts'
import { fake } from '../../support/fake.ts'
import type { ToKeeper } from '../../../server/keeper/link.ts'

test('what happens until it serves is told to the other master, what comes later waits for its own history', async () => {
  const { next, keeper, supervisor, events, published } = setUp()
  events.publish({ type: 'worker.forked', worker: 7 })
  assert.deepEqual(keeper.sent.map(({ type, event }) => [type, event?.type]), [['relay', 'worker.forked']])
  supervisor.state = 'running'
  events.publish({ type: 'worker.ready', worker: 7 })
  events.publish({ type: 'worker.exited', worker: 7, message: 'too late to fail' })
  assert.deepEqual(keeper.sent.map(({ type, event }) => [type, event?.type]), [['relay', 'worker.forked'], ['relay',
    'worker.ready'], ['serving', undefined]])
  assert.deepEqual([published, next.hasTakenOver], [[], false])

  keeper.hear('take-over', { predecessor: null })
  assert.deepEqual([await next.whenAlone(), next.hasTakenOver], [null, true])
  events.takeOver(41)
  next.unrecorded(() => true).forEach(events.publish)
  events.publish({ type: 'worker.restarted', worker: 8 })
  assert.deepEqual(published, [[42, 'worker.exited'], [43, 'worker.restarted']])
})

test('it serves without an event, too, where each program has come to its end already', async () => {
  const { next, keeper, supervisor } = setUp()
  const alone = next.whenAlone()
  supervisor.run()
  await supervisor.running
  assert.deepEqual(keeper.sent.map(({ type }) => type), ['serving'])
  keeper.hear('take-over', { predecessor: null })
  await alone
})

test('where the other master has died, what it has not recorded is told again', async () => {
  const { next, keeper, events, published } = setUp()
  events.publish({ type: 'worker.forked', worker: 7 })
  events.publish({ type: 'worker.online', worker: 7 })
  const predecessor = { pid: 1, code: null, signal: 'SIGKILL' }
  keeper.hear('take-over', { predecessor })
  events.publish({ type: 'worker.exited', worker: 7 })
  assert.deepEqual(await next.whenAlone(), predecessor)
  events.takeOver(0)
  next.unrecorded(({ type }) => type === 'worker.forked').forEach(events.publish)
  assert.deepEqual(published, [[1, 'worker.online'], [2, 'worker.exited']])
})

test('a worker that is lost before all serve ends it: the reason is told first, and its workers have drained when it ends', async () => {
  const { next, keeper, supervisor, events } = setUp()
  let isSettled = false
  const refused = assert.rejects(next.whenAlone(), { code: 'upgrade-failed', message: 'worker 7 died' }).then(() => {
    isSettled = true
  })
  events.publish({ type: 'worker.exited', worker: 7, message: 'worker 7 died' })
  await new Promise(setImmediate)
  assert.deepEqual([supervisor.abandoned, isSettled, keeper.failed], [1, false, ['worker 7 died']])
  assert.equal(keeper.sent.some(({ type }) => type === 'serving'), false)
  supervisor.finish()
  await refused
})

test('what another part of this master fails by ends it as well, before its own start too', async () => {
  const { next, keeper, supervisor } = setUp()
  keeper.hear('upgrade-failed', { reason: 'blog: it does not start' })
  supervisor.finish()
  await assert.rejects(next.whenAlone(), { code: 'upgrade-failed', message: 'blog: it does not start' })
  const late = setUp({ failure: 'blog: it does not start' })
  late.supervisor.finish()
  await assert.rejects(late.next.whenAlone(), { message: 'blog: it does not start' })
  assert.deepEqual([...keeper.failed, ...late.keeper.failed], [])
})

test('a worker that ends once it is the only master is no failure of the upgrade', async () => {
  const { next, keeper, events } = setUp()
  keeper.hear('take-over', { predecessor: null })
  await next.whenAlone()
  events.publish({ type: 'worker.exited', worker: 7 })
  await new Promise(setImmediate)
  assert.deepEqual(keeper.failed, [])
})

test('a keeper that is gone ends it', async () => {
  const { next, keeper, supervisor } = setUp()
  keeper.lose()
  supervisor.finish()
  await assert.rejects(next.whenAlone(), { message: 'the keeper is gone' })
})

test('on record is what the history tells of its worker, or of its release; what names neither is told once more', () => {
  const recorded = [{ type: 'worker.forked', worker: 7, release: 'r2' }, { type: 'release.kept', release: 'r2' }]
  const isKnown = isOnRecord(
    fake({ page: ({ type, worker, release } = {}) => ({ items: recorded.filter((event) =>
      event.type === type?.[0] && (worker === undefined || event.worker === worker) &&
      (release === undefined || event.release === release)
    ) }) })
  )
  assert.equal(isKnown({ type: 'worker.forked', worker: 7 }), true)
  assert.equal(isKnown({ type: 'worker.forked', worker: 8, release: 'r2' }), false)
  assert.equal(isKnown({ type: 'release.kept', worker: null, release: 'r2' }), true)
  assert.equal(isKnown({ type: 'release.kept', release: 'r3' }), false)
  assert.equal(isKnown({ type: 'worker.forked' }), false)
})

/** `failure`: of this master, told before */
function setUp ({ failure = null }: { failure?: string | null } = {}) {
  const keeper = { sent: [] as { type: string, event?: NewEvent }[],
    handlers: {} as Record<string, (message: never) => void>, lose: () => {}, send (message: ToKeeper) {
    keeper.sent.push(message)
  }, on (type: string, handler: (message: never) => void) {
    keeper.handlers[type] = handler
  }, onLost (handler: () => void) {
    keeper.lose = handler
  }, offLost () {}, failure, failUpgrade (reason: string) {
    keeper.failed.push(reason)
    keeper.hear('upgrade-failed', { reason })
  }, failed: [] as string[], hear (type: string, message: object) {
    keeper.handlers[type](message as never)
  } }
  const running: PromiseWithResolvers<void> = Promise.withResolvers()
  const supervisor = { state: 'starting' as 'starting' | 'running' | 'stopping', abandoned: 0, finish: () => {},
    finished: Promise.resolve() as Promise<void>, running: running.promise, run: running.resolve,
    startBlocked: new Promise<never>(() => {}), memory: () => ({ workers: [] }),
    snapshot: () => ({ state: supervisor.state }), abandon () {
    supervisor.abandoned++
  } }
  supervisor.finished = new Promise((resolve) => {
    supervisor.finish = () => resolve()
  })
  const next = createNextMaster({ keeper, supervisor: () => fake(supervisor) })
  const events = createEventStream({ relay: next.relay })
  const published: [number, string][] = []
  events.subscribe(({ id, type }) => published.push([id, type]))
  return { next, keeper, supervisor, events, published }
}
