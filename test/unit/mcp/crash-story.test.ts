import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crashStory } from '../../../server/mcp/texts.ts'
import type { CrashGroupInFull } from '../../../server/api/crashes.ts'

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
