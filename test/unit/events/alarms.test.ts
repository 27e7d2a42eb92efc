import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alarmKindsIn, missedAlarms, toAlarm } from '../../../server/alerts/page-alarms.ts'
import { alarmKindOf } from '../../../server/events/alarms.ts'
import { createEventStream, type NewEvent } from '../../../server/events/stream.ts'
import type { Alarm } from '../../../public/live-events.d.ts'
import type { Notice } from '../../../server/api/shapes.ts'

const stream = createEventStream({ lastId: 6 })
const event = (fields: NewEvent) => stream.publish(fields)

test('an alarm is what nobody wanted, and not what somebody did', () => {
  const kinds = (...events: NewEvent[]) => events.map((each) => alarmKindOf(event(each)))
  assert.deepEqual(
    kinds({ type: 'worker.exited', cause: 'crash' }, { type: 'worker.exited', cause: 'hung' }, {
      type: 'worker.crash-looping'
    }, { type: 'rollout.failed', message: 'not ready' }, { type: 'rollout.held' }, { type: 'rollout.rolled-back',
      message: 'too slow' }, { type: 'rollout.succeeded', actor: 'guard' }, { type: 'master.stopped',
      cause: 'master-lost' }, { type: 'fleet.host-silent' }),
    ['crash', 'crash', 'crash-loop', 'rollout-failed', 'rollout-failed', 'rolled-back', 'rolled-back', 'master-lost',
      'host-silent']
  )
  assert.deepEqual(
    kinds({ type: 'worker.exited', cause: 'deploy' }, { type: 'rollout.rolled-back', message: 'aborted by ada',
      detail: { abortedBy: 'ada' } }, { type: 'rollout.succeeded', actor: 'ada' }, { type: 'master.stopped',
      cause: 'shutdown' }, { type: 'history.degraded' }, { type: 'constructor' }),
    [null, null, null, null, null, null]
  )
})

test('an alarm says what an app wrote in one short line that reorders nothing, and leads to it', () => {
  const { id, text, url } = toAlarm(
    event({ type: 'worker.exited', cause: 'crash', message: `\u202Eboom\u0007 ${'x'.repeat(500)}\nmore`,
      detail: { crash: 3, crashGroup: 2 } })
  ) as Alarm
  assert.match(text, /^<U\+202E>boom␇ x+ …$/)
  assert.ok(text.length < 210)
  assert.equal(url, '/crashes/2?crash=3')
  assert.equal(
    toAlarm(event({ type: 'fleet.host-silent', message: 'web-3 is silent', detail: { member: 'web-3' } }))?.url,
    '/fleet/members/web-3'
  )
  assert.deepEqual(toAlarm(event({ type: 'worker.crash-looping', message: 'slot 1 crash-loops' })), { id: id + 2,
    kind: 'crash-loop', title: 'Crash loop', text: 'Slot 1 crash-loops', url: `/history/${id + 2}` })
})

test('a browser hears what it has missed of what it asks for, and nothing where it asks for the first time or for nonsense', () => {
  const notice = (id: number, kind: Notice['kind']) => ({ id, kind, at: '', firstAt: '', count: 1,
    message: `notice ${id}`, endedAt: null })
  const notices = {
    list:
      () => [notice(9, 'history-degraded'), notice(8, 'master-lost'), notice(7, 'rolled-back'),
        notice(3, 'rollout-failed')]
  }
  const kinds = alarmKindsIn({
    kinds: ['master-lost', 'rolled-back', 'rollout-failed', 'master-lost', 'toString', 7, null]
  })
  assert.deepEqual(kinds, ['master-lost', 'rolled-back', 'rollout-failed'])
  assert.deepEqual(missedAlarms(notices, { kinds, after: 3 }).map(({ id }) => id), [7, 8])
  for (const after of [null, undefined, '3', NaN, {}]) assert.deepEqual(missedAlarms(notices, { kinds, after }), [])
  for (const wish of [null, undefined, 'crash', { kinds: 'crash' }, []]) assert.deepEqual(alarmKindsIn(wish), [])
})
