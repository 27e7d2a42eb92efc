import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { copyDatabase } from '../../../db/copy.ts'
import { openHistory } from '../../../db/history.ts'
import { openSqlite } from '../../../db/sqlite.ts'
import { tempFolder } from '../../support/folder.ts'

/** A history that is copied in several steps. */
function largeHistory () {
  const folder = tempFolder()
  const file = path.join(folder, 'history.db')
  openHistory({ file }).close()
  const db = openSqlite(file)
  const insert = db.prepare('INSERT INTO high_water (name, value) VALUES (?, 1)')
  const insertMany = db.transaction((count: number) => {
    for (let index = 0; index < count; index++) insert.run(String(index).padStart(4000, '0'))
  })
  insertMany(3000)
  return { file, copy: path.join(folder, 'copy.db'), write: () => insert.run(String(Math.random())), close: () => {
    db.close()
  } }
}

test('a copy is of one moment, whatever is written meanwhile, and nobody who writes waits', async () => {
  const { file, copy, write, close } = largeHistory()
  const timer = setInterval(write, 0)
  assert.equal(await copyDatabase(file, copy, { hasSecrets: false, signal: AbortSignal.timeout(30_000) }), 0)
  clearInterval(timer)
  const [from, to] = [file, copy].map((each) => {
    const db = openSqlite(each, { readonly: true })
    const { count } = db.prepare<{ count: number }>('SELECT count(*) AS count FROM high_water').get() ?? assert.fail()
    db.close()
    return count
  })
  close()
  assert.ok(from > 3000, `${from}: written meanwhile`)
  assert.equal(to, 3000)
})

test('a copy that is interrupted ends', async () => {
  const { file, copy, close } = largeHistory()
  await assert.rejects(copyDatabase(file, copy, { hasSecrets: false, signal: AbortSignal.abort() }), {
    name: 'AbortError'
  })
  close()
  assert.equal(existsSync(`${copy}-journal`), false)
})
