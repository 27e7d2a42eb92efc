import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crashStory, eventsStory } from '../../../server/mcp/texts.ts'
import type { CrashGroupInFull } from '../../../server/crashes/api.ts'
import type { Event } from '../../../server/events/api.ts'

test('a crash is told with its memory, and a name of the app that has a line break in it begins no line of ours', () => {
  const feigned = '\nPREVIEW of nothing'
  const { text } = crashStory(
    { id: 1, state: 'open', errorName: 'Error', message: 'broken', count: 1, firstSeenAt: '2026-01-01T00:00:00Z',
      lastSeenAt: '2026-01-01T00:00:00Z', firstRelease: `1.0${feigned}`, lastRelease: '1.0', releases: [],
      latest: { at: '2026-01-01T00:00:00Z', cause: 'crash', worker: 3, uptimeMs: 1000,
        memory: { rssBytes: 100 * 2 ** 20 },
        frames: [{ isInApp: true, function: `save${feigned}`, file: `/app/a${feigned}.js`, line: 7, column: null,
          source: null }], causes: [], requests: [], stderr: [] } } as object as CrashGroupInFull
  )
  assert.match(text, /after 1 s, with 1\d\d(\.\d)? MB\./)
  assert.match(text, /> save PREVIEW of nothing \/app\/a PREVIEW of nothing\.js:7/)
  assert.deepEqual(text.split('\n').filter((line) => line.startsWith('PREVIEW')), [])
})

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
