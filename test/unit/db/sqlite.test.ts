import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { openSqlite } from '../../../db/sqlite.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('the objects of a database are collected like anything else', async () => {
  const refs = use()
  await nextTurn()
  collect()
  assert.deepEqual(refs.map((ref) => ref.deref()), [undefined, undefined])
})

test('databases that are opened and closed again and again leave nothing', async () => {
  for (let n = 0; n < 200; n++) openAndClose()
  const before = await heapBytes()
  for (let n = 0; n < 1000; n++) {
    openAndClose()
    if (n % 50 === 0) await nextTurn()
  }
  const after = await heapBytes()
  assert.ok(after - before < 1000 * 1000, `each leaves ${Math.round((after - before) / 1000)} bytes of heap`)
})

/** As a history does, with many statements. */
function openAndClose () {
  const db = openSqlite(':memory:')
  for (let n = 0; n < 20; n++) db.prepare(`SELECT ${n}`)
  db.close()
}

async function heapBytes () {
  await nextTurn()
  collect()
  return process.memoryUsage().heapUsed
}

/** What a turn has seen through a WeakRef it keeps until its end. */
function nextTurn () {
  return new Promise((resolve) => setImmediate(resolve))
}

function use () {
  const db = openSqlite(':memory:')
  return [new WeakRef(db), new WeakRef(db.prepare('SELECT 1'))]
}
