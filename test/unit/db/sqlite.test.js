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

/** @param {boolean} isKept */
function use (isKept) {
  const db = openSqlite(':memory:')
  const statement = (isKept ? keepObjectsOf(db) : db).prepare('SELECT 1')
  return [new WeakRef(db), new WeakRef(statement)]
}
