import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noteExit, type Exit } from '../../../server/keeper/link.ts'

test('of the exits of orphans only the latest are kept', () => {
  const exits: Exit[] = []
  for (let pid = 1; pid <= 2500; pid++) noteExit(exits, { pid, code: 0, signal: null })
  assert.deepEqual([exits.length, exits[0].pid, exits.at(-1)?.pid], [1000, 1501, 2500])
})
