import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { DeckError, errorCode, errorText } from '../server/errors.js'

/**
 * A statement whose rows have this type: nothing checks that but the SQL beside it.
 * @template Row @typedef {import('better-sqlite3').Statement<unknown[], Row>} Rows
 */
/** @typedef {Omit<import('better-sqlite3').Database, 'prepare'> & { prepare: <Row>(sql: string) => Rows<Row> }} Db */

/** From these versions on Node 24 aborts if an object of an addon is collected while no JavaScript runs: nodejs/node#65446. */
const MAY_ABORT = /^v24\.(19|[2-9]\d)\./
/** It brings its native part for Linux along. For Node 20, which it would crash, there is an older one that npm compiles. */
export const SQLITE_PACKAGE = Number(process.versions.node.split('.')[0]) < 22 ? 'clusterdeck-node-20' : 'better-sqlite3'
const OWN_FOLDER = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)
const MAX_STATEMENTS = 300
/** So many objects of closed databases are kept before they are collected, as that stops this process for a moment. */
const MAX_CLOSED = 5000
/** Objects of open databases, by database. @type {Set<Set<object>>} */
const kept = new Set()
/** Objects of databases that are closed. @type {Map<WeakRef<object>, object>} */
const closed = new Map()
let collectsAbove = MAX_CLOSED

/**
 * Opens a database. The first call loads the native part of SQLite.
 * @param {string | Buffer} file a Buffer: a copy of that content, in memory @param {import('better-sqlite3').Options} [options]
 * @returns {Db}
 * @throws {DeckError} bad-install: it is not there, not compiled, or for another version of Node; and what SQLite says
 */
export function openSqlite (file, options = {}) {
  try {
    const db = /** @type {Db} */ (new (require(SQLITE_PACKAGE))(file, options))
    return MAY_ABORT.test(process.version) ? keepObjectsOf(db) : db
  } catch (error) {
    const reason = whyUnloadable(error)
    if (reason === null) throw error
    throw new DeckError('bad-install', `Node ${process.version} cannot load better-sqlite3 (run "npm ci --omit=dev" with it in ${OWN_FOLDER}): ${reason}`, { cause: error })
  }
}

/** @param {unknown} error @returns {string | null} null: it was loaded, and SQLite has refused */
function whyUnloadable (error) {
  const text = errorText(error)
  if (errorCode(error) === 'MODULE_NOT_FOUND') return 'another version of Node has installed the packages'
  // An installation without scripts has no native part.
  if (text.startsWith('Could not locate the bindings file')) return 'it was not compiled'
  return errorCode(error) === 'ERR_DLOPEN_FAILED' ? text.replace(/\s+/g, ' ') : null
}

/**
 * Keeps the database and its statements until it is closed and they can be collected safely, and makes no iterators.
 * @param {Db} db
 */
export function keepObjectsOf (db) {
  const { prepare: prepareOf, close: closeOf } = db
  /** @type {Set<object>} */
  const own = new Set([db])
  const prepare = (/** @type {string} */ sql) => {
    const statement = prepareOf.call(db, sql)
    own.add(statement)
    return Object.assign(statement, { iterate: (/** @type {unknown[]} */ ...values) => statement.all(...values)[Symbol.iterator]() })
  }
  const pragma = (/** @type {string} */ sql, { simple = false } = {}) => {
    const statement = prepare(`PRAGMA ${sql}`)
    if (!statement.reader) return statement.run() && []
    return simple ? statement.pluck().get() : statement.all()
  }
  const close = () => {
    closeOf.call(db)
    if (kept.delete(own)) letGo(own)
    return db
  }
  kept.add(own)
  return /** @type {Db} */ (Object.assign(db, { prepare, pragma, close }))
}

/** @param {Set<object>} objects */
function letGo (objects) {
  for (const object of objects) closed.set(new WeakRef(object), object)
  // A WeakRef keeps what it is made of until the end of this turn.
  if (closed.size > collectsAbove) setImmediate(collectClosed)
}

/** Collects the objects of closed databases at once, while JavaScript runs, and goes on keeping those that somebody still has. */
function collectClosed () {
  if (closed.size <= collectsAbove) return
  const refs = [...closed.keys()]
  closed.clear()
  collectGarbage()
  for (const ref of refs) {
    const object = ref.deref()
    if (object) closed.set(ref, object)
  }
  collectsAbove = closed.size + MAX_CLOSED
}

function collectGarbage () {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

/**
 * Prepares each statement once, for SQL that is put together from what a query asks for.
 * @param {Db} db
 */
export function statementCache (db) {
  /** @type {Map<string, Rows<any>>} */
  const statements = new Map()
  return prepare

  /** @template Row @param {string} sql @returns {Rows<Row>} */
  function prepare (sql) {
    const known = statements.get(sql)
    if (known) return known
    if (statements.size >= MAX_STATEMENTS) statements.clear()
    const statement = db.prepare(sql)
    statements.set(sql, statement)
    return statement
  }
}
