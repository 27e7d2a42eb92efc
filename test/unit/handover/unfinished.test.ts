import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventStream } from '../../../server/events/stream.ts'
import { endUnfinished } from '../../../server/handover/unfinished.ts'
import { rolledBackDeploy } from '../../support/rollouts.ts'
import type { SeenEvent } from '../../support/event-log.ts'

test('a rollout that its master has left is failed on record, and its timeline ends with that', () => {
  const left = rolledBackDeploy({ state: 'rolling', done: false, finishedAt: null, reason: null })
  const published: SeenEvent[] = []
  const events = createEventStream()
  events.subscribe((event) => published.push(event as SeenEvent))
  endUnfinished({ history: { unfinishedRollouts: () => [left] }, events })
  const [{ type, cause, rollout, detail }] = published
  assert.deepEqual([type, cause, rollout, detail.state, detail.done, detail.reason], ['rollout.failed', 'master-lost',
    7, 'failed', true, 'its master ended'])
  assert.deepEqual(detail.timeline, [...left.timeline, { at: detail.finishedAt, type: 'rollout.failed', actor: null,
    message: 'its master ended', passed: null }])
})
