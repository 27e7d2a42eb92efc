import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { startReady } from '../support/deck.ts'

test('a start gives workers that wait for a CPU the time that they have not had', {
  skip: !existsSync('/proc/self/schedstat')
}, async (t) => {
  // Together they need more than that of one CPU, and each alone less. At most ten times as much is given.
  const flags = ['--ready-timeout-ms', '3500', '--start-first', 'all']
  const deck = await startReady(t, 'needs-cpu-to-start.js', { workers: 4, flags, env: { CPU_MS: '1000' },
    launch: { through: ['taskset', '--cpu-list', '0'] } })
  assert.equal((await deck.history('type=worker.exited')).length, 0)
})
