import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWatchdog } from '../../../server/cluster/watchdog.ts'
import { clusterOf } from '../../support/cluster.ts'
import { report } from '../../support/vitals.ts'

test('A worker is told of after five samples over its limit of memory, and again while it stays and grows', () => {
  const told: unknown[] = []
  const watchdog = createWatchdog(
    clusterOf({ limits: { watchdog: { timeoutMs: 0, stack: 'off' }, recycle: { maxRssBytes: 100 } }, receive: (input) =>
      told.push('rssBytes' in input && input.rssBytes) })
  )
  for (const rssBytes of [101, 101, 99, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111])
    watchdog.heard(1, report({ rssBytes }))
  assert.deepEqual(told, [105, 110])
})
