import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { keepObjectsOf, openSqlite } from '../../../db/sqlite.js'

setFlagsFromString('--expose-gc')
const collect = /** @type {() => void} */ (runInNewContext('gc'))
/** All are kept by this version of Node. */
const areKept = Object.hasOwn(openSqlite(':memory:'), 'prepare')

for (const [name, isKept] of /** @type {const} */ ([['are collected like anything else', false], ['are never collected where that could end the process', true]])) {
  test(`the objects of a database ${name}`, { skip: areKept && !isKept && 'not by this version of Node' }, async () => {
    const refs = use(isKept)
    // What a turn has seen through a WeakRef it keeps until its end.
    await new Promise((resolve) => setImmediate(resolve))
    collect()
    assert.deepEqual(refs.map((ref) => ref.deref() !== undefined), [isKept, isKept])
  })
}

test('a database whose objects are kept answers as any other', () => {
  const answers = [openSqlite(':memory:'), keepObjectsOf(openSqlite(':memory:'))].map((db) => {
    db.exec('CREATE TABLE t (a)')
    db.pragma('user_version = 3')
    db.transaction(() => db.prepare('INSERT INTO t VALUES (?), (?)').run(1, 2))()
    const all = db.prepare('SELECT a FROM t WHERE a > @least')
    return [db.pragma('user_version'), db.pragma('user_version', { simple: true }), db.pragma('synchronous = NORMAL'), [...all.iterate({ least: 0 })], all.get({ least: 1 }), db.prepare('SELECT a FROM t').pluck().all()]
  })
  assert.deepEqual(answers[1], answers[0])
  assert.deepEqual(answers[1].slice(0, 3), [[{ user_version: 3 }], 3, []])
})

test('databases that are opened and closed again and again leave nothing, also where their objects are kept while they are open', async () => {
  for (let n = 0; n < 200; n++) openAndClose()
  const before = await heapBytes()
  for (let n = 0; n < 1000; n++) {
    openAndClose()
    if (n % 50 === 0) await nextTurn()
  }
  const after = await heapBytes()
  assert.ok(after - before < 1000 * 1000, `each leaves ${Math.round((after - before) / 1000)} bytes of heap`)
})

test('what somebody still has of a closed database when others are collected is kept until nobody has it', async () => {
  /** @type {{ statement: object | null }} */
  const holder = { statement: null }
  const ref = (() => {
    const db = keepObjectsOf(openSqlite(':memory:'))
    holder.statement = db.prepare('SELECT 1')
    db.close()
    return new WeakRef(holder.statement)
  })()
  await openAndCloseMany()
  holder.statement = null
  await nextTurn()
  collect()
  assert.notEqual(ref.deref(), undefined, 'any other collection passes it over')
  await openAndCloseMany()
  assert.equal(ref.deref(), undefined)
})

async function openAndCloseMany () {
  for (let n = 0; n < 500; n++) openAndClose()
  await nextTurn()
  await nextTurn()
}

/** As a history does, with many statements. */
function openAndClose () {
  const db = keepObjectsOf(openSqlite(':memory:'))
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

/** @param {boolean} isKept */
function use (isKept) {
  const db = openSqlite(':memory:')
  const statement = (isKept ? keepObjectsOf(db) : db).prepare('SELECT 1')
  return [new WeakRef(db), new WeakRef(statement)]
}
