import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventsStory } from '../../../server/mcp/texts.ts'
import type { Event } from '../../../server/api/events.ts'

test('an agent reads in one answer what held the memory, how much of it for 1,000 requests, and since which release', () => {
  const event = { id: 7, at: '2026-01-31T12:00:00.000Z', type: 'memory.examined', cause: null, worker: 3, slot: 1,
    release: 'r5', actor: 'system', message: 'worker 3 held 150 MB in its heap when it was recycled' }
  const holder = { name: 'shop.js: sessions\nevil', className: 'Object', count: 12_000, bytes: 120e6,
    bytesPer1000Requests: 10e6, file: '/srv/shop.js', path: ['store', 'sessions'] }
  const storyOf = (detail: Event['detail']) =>
    eventsStory({ items: [{ ...event, detail } as Event], next: null }).text.split('\n').slice(2)
  assert.deepEqual(
    storyOf({ holders: [holder, { ...holder, name: 'cache', file: null, bytesPer1000Requests: null }],
      sinceRelease: 'r2' }),
    ['    114 MB: 12000 × Object at shop.js: sessions evil, 9.5 MB per 1,000 requests, /srv/shop.js',
      '    114 MB: 12000 × Object at cache', '    the first of these has held most since r2']
  )
  assert.equal(storyOf({ holders: [holder], sinceRelease: 'r5' }).length, 1)
  assert.deepEqual([storyOf({ error: 'the worker ended' }), storyOf(null)], [[], []])
})
