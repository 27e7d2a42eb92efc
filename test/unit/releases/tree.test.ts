import assert from 'node:assert/strict'
import { realpathSync } from 'node:fs'
import { test } from 'node:test'
import { listTree, treeDigest } from '../../../server/releases/tree.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'

test('a large folder is listed and hashed bit by bit, so that nothing else has to wait for all of it', async () => {
  const top = realpathSync(tempFolder())
  writeFiles(top, Object.fromEntries(Array.from({ length: 6000 }, (_, at) => [`folder-${at % 7}/${at}`, ''])))
  let turns = 0
  let counting = setImmediate(function count () {
    turns++
    counting = setImmediate(count)
  })
  const entries = await listTree(top, { except: [] })
  const listed = turns
  await treeDigest(Array(20).fill(entries).flat())
  clearImmediate(counting)
  assert.equal(entries.length, 6007)
  for (const each of [listed, turns - listed])
    assert.ok(each >= 3, `expected at least 3 turns of the loop, received ${each}`)
})

test('no data folder is part of a release, of whichever app and whatever it is called', async () => {
  const top = realpathSync(tempFolder())
  writeFiles(top, { 'app.js': '', '.clusterdeck/shop/releases/r1/app.js': '', 'data/mail/admin.token': '',
    'data/mail/history.db': '', 'data/mail/releases/r1/app.js': '', 'data/own.db': '' })
  assert.deepEqual((await listTree(top, { except: [] })).map(({ name }) => name), ['app.js', 'data', 'data/mail',
    'data/own.db'])
})
