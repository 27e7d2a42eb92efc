import assert from 'node:assert/strict'
import { realpathSync } from 'node:fs'
import { test } from 'node:test'
import { listTree } from '../../../server/releases/tree.js'
import { tempFolder, writeFiles } from '../../support/folder.js'

test('a large folder is listed bit by bit, so that nothing else has to wait for it', async () => {
  const top = realpathSync(tempFolder())
  writeFiles(top, Object.fromEntries(Array.from({ length: 3000 }, (_, at) => [`folder-${at % 7}/${at}`, ''])))
  let turns = 0
  let counting = setImmediate(function count () {
    turns++
    counting = setImmediate(count)
  })
  const entries = await listTree(top, { except: [] })
  clearImmediate(counting)
  assert.equal(entries.length, 3007)
  assert.ok(turns >= 3, `expected at least 3 turns of the loop, received ${turns}`)
})
