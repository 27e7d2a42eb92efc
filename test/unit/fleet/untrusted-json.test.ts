import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messageOf } from '../../../server/fleet/event-stream.ts'
import { isShallow } from '../../../server/fleet/untrusted-json.ts'

const NAMES = { events: 'clusterdeck_test_events', subject: 'clusterdeck.test' }
const EVENT = { id: 1, at: '2026-01-01T00:00:00.000Z', type: 'worker.exited', cause: null, slot: null, worker: null,
  pid: null, release: null, rollout: null, actor: null, code: null, signal: null, uptimeMs: null, message: null,
  detail: null }

/** `detail`: JSON */
function read (detail: string) {
  const text = JSON.stringify({ source: 'abc', member: 'web-1', app: 'shop', host: 'one',
    event: { ...EVENT, detail: '@' } }).replace('"@"', detail)
  return messageOf(NAMES, { subject: 'clusterdeck.test.web-1.event.shop.abc.worker.exited', data: Buffer.from(text),
    json: () => JSON.parse(text) })
}

test('an event that could be read, but never written again, is none', () => {
  assert.deepEqual(read('{"stack":[{"line":1}]}')?.event.detail, { stack: [{ line: 1 }] })
  assert.equal(read(`{"a":${'['.repeat(40_000)}${']'.repeat(40_000)}}`), null)
})

test('what is shallow is of any breadth', () => {
  for (const value of [null, 1, 'text', {}, [[], {}], Array.from({ length: 10_000 }, () => ({ a: [1] }))])
    assert.ok(isShallow(value))
})
