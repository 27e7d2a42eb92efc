import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { createNotices, type Notices } from '../../../server/events/notices.ts'

const FAILED = { type: 'rollout.failed', actor: 'cli', message: 'worker 9 was not ready',
  detail: { kind: 'deploy', to: 'r5', reason: 'worker 9 was not ready' } }

test('what has failed by itself stays until it is acknowledged, over masters', (t) => {
  const { events, notices, nextNotices } = openDeck(t)
  events.publish(FAILED)
  events.publish({ type: 'master.stopped', cause: 'master-lost',
    message: 'the master (pid 7) ended without stopping its workers' })
  events.publish({ type: 'rollout.succeeded', cause: 'rollback', actor: 'guard',
    message: 'r5 kept crashing after rollout 3', detail: { kind: 'rollback', to: 'r4' } })
  const all = [[3, 'rolled-back', 'The guard rolled back to r4: r5 kept crashing after rollout 3'], [2, 'master-lost',
    'The master (pid 7) ended without stopping its workers'], [1, 'rollout-failed',
    'Deploy of r5 failed: worker 9 was not ready']]
  assert.deepEqual(brief(notices), all)
  assert.deepEqual(brief(nextNotices()), all)

  notices.acknowledge(2, 'ada')
  assert.deepEqual(brief(notices), [all[0], all[2]])
  assert.deepEqual(brief(nextNotices()), [all[0], all[2]])
})

test('the history keeps who has acknowledged what', (t) => {
  const { events, history, notices } = openDeck(t)
  events.publish(FAILED)
  notices.acknowledge(1, 'ada')
  const { type, actor, message, detail } = history.page().items[0]
  assert.deepEqual([type, actor, message, detail], ['notice.acknowledged', 'ada',
    'Deploy of r5 failed: worker 9 was not ready', { notice: 1, kind: 'rollout-failed', count: 1 }])
})

test('what people have decided, and what ends well, is no notice', (t) => {
  const { events, notices, nextNotices } = openDeck(t)
  for (const type of ['rollout.failed', 'rollout.rolled-back'])
    events.publish({ ...FAILED, type, message: 'aborted by ada',
      detail: { ...FAILED.detail, reason: 'aborted by ada', abortedBy: 'ada' } })
  events.publish({ type: 'rollout.succeeded', cause: 'rollback', actor: 'cli', detail: { kind: 'rollback', to: 'r4' } })
  events.publish({ type: 'master.stopped', code: 0 })
  assert.deepEqual([...notices.list(), ...nextNotices().list()], [])
})

test('a program that tells of something aborted in its failure has not been aborted by anybody', (t) => {
  const { events, notices, nextNotices } = openDeck(t)
  events.publish({ ...FAILED, detail: { ...FAILED.detail, reason: 'worker 9 exited: transaction aborted by peer' } })
  for (const { list } of [notices, nextNotices()]) assert.deepEqual(list().map(({ kind }) => kind), ['rollout-failed'])
})

test('one stands for all of its kind, and is not taken away by somebody who has seen an older one', (t) => {
  const { events, notices } = openDeck(t)
  const { at } = events.publish(FAILED)
  events.publish({ ...FAILED, detail: { ...FAILED.detail, to: 'r6' } })
  assert.throws(() => notices.acknowledge(1, 'ada'), { code: 'not-found' })
  const [{ id, count, firstAt, message }] = notices.list()
  assert.deepEqual([id, count, firstAt, message], [2, 2, at, 'Deploy of r6 failed: worker 9 was not ready'])
  notices.acknowledge(2, 'ada')
  assert.deepEqual(notices.list(), [])
  assert.throws(() => notices.acknowledge(2, 'ada'), { code: 'not-found' })
})

test('a full disk stays on top once there is room again, with the time at which it was over', (t) => {
  const { events, notices, nextNotices } = openDeck(t)
  events.publish({ type: 'history.degraded', message: 'the history database failed: the disk is full' })
  assert.equal(notices.list()[0].endedAt, null)
  const { at } = events.publish({ type: 'history.recovered' })
  for (const { endedAt } of [...notices.list(), ...nextNotices().list()]) assert.equal(endedAt, at)
})

test('a failed deploy is over with the next one that succeeds, and forgotten with the third; a restart proves nothing', (t) => {
  const { events, notices, nextNotices } = openDeck(t)
  const succeed = (kind: string, actor = 'ada') =>
    events.publish({ type: 'rollout.succeeded', cause: kind, actor, detail: { kind, to: 'r6' } })
  events.publish(FAILED)
  succeed('restart')
  assert.deepEqual([notices, nextNotices()].map(({ list }) => list()[0].endedAt), [null, null])
  const { at } = succeed('deploy')
  succeed('rollback')
  for (const { list } of [notices, nextNotices()]) assert.deepEqual(list().map(({ endedAt }) => endedAt), [at])
  events.publish(FAILED)
  assert.deepEqual([notices, nextNotices()].map(({ list }) => [list()[0].endedAt, list()[0].count]), [[null, 2], [null,
    2]])
  for (let n = 0; n < 3; n++) succeed('deploy')
  assert.deepEqual([...notices.list(), ...nextNotices().list()], [])
})

test('no start depends on the history', () => {
  const history = { page () {
    throw new Error('disk I/O error')
  } }
  assert.deepEqual(createNotices({ history, events: createEventStream() }).list(), [])
})

function openDeck (t: TestContext) {
  const history = openHistory({ file: ':memory:' })
  t.after(() => history.close())
  const events = createEventStream()
  events.subscribe((event) => history.record(event))
  return { events, history, notices: createNotices({ history, events }),
    nextNotices: () => createNotices({ history, events: createEventStream() }) }
}

function brief (notices: Notices) {
  return notices.list().map(({ id, kind, message }) => [id, kind, message])
}

test('a limit that is too low for the app is one, with the sentence that says what to set', (t) => {
  const { events, notices, nextNotices } = openDeck(t)
  events.publish({ type: 'recycling.slowed', cause: 'memory-limit',
    message: 'the limit recycle.maxRssBytes is 100 MB' })
  const all = [[1, 'recycling-slowed', 'The limit recycle.maxRssBytes is 100 MB']]
  assert.deepEqual([brief(notices), brief(nextNotices())], [all, all])
})
