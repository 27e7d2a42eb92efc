import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noteExit } from '../../../server/keeper/link.js'

test('of the exits of orphans only the latest are kept', () => {
  /** @type {import('../../../server/keeper/link.js').Exit[]} */
  const exits = []
  for (let pid = 1; pid <= 2500; pid++) noteExit(exits, { pid, code: 0, signal: null })
  assert.deepEqual([exits.length, exits[0].pid, exits.at(-1)?.pid], [1000, 1501, 2500])
})
