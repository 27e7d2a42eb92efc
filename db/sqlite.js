import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { DeckError } from '../server/errors.js'

/** Since then Node 24 aborts where an object of an addon that was built for it is collected while no JavaScript runs: nodejs/node#65446. */
const MAY_ABORT = /^v24\.(19|[2-9]\d)\./
const OWN_FOLDER = fileURLToPath(new URL('..', import.meta.url))
/** What is never collected. @type {Set<object>} */
const kept = new Set()

/**
 * Opens a database. SQLite's native part is loaded by the first call, not before.
 * @param {string | Buffer} file a Buffer: a copy of that content, in memory @param {import('better-sqlite3').Options} [options]
 * @returns {import('better-sqlite3').Database}
 * @throws {DeckError} bad-install: it was not compiled, or for another version of Node; and what SQLite says
 */
export function openSqlite (file, options = {}) {
  try {
    const db = new Database(file, options)
    return MAY_ABORT.test(process.version) ? keepObjectsOf(db) : db
  } catch (/** @type {any} */ error) {
    // Whoever installs without scripts has no native part at all.
    const [isMissing, isOther] = [error.message.startsWith('Could not locate the bindings file'), error.code === 'ERR_DLOPEN_FAILED']
    if (!isMissing && !isOther) throw error
    const reason = isMissing ? 'it was not compiled' : error.message.replace(/\s+/g, ' ')
    throw new DeckError('bad-install', `better-sqlite3 cannot be loaded by Node ${process.version} (run "npm rebuild better-sqlite3" with it in ${OWN_FOLDER}): ${reason}`, { cause: error })
  }
}

/**
 * Has the process keep the database, its statements and no iterator for as long as it lives.
 * @param {import('better-sqlite3').Database} db
 */
export function keepObjectsOf (db) {
  const prepare = (/** @type {string} */ sql) => {
    const statement = /** @type {import('better-sqlite3').Statement} */ (Database.prototype.prepare.call(db, sql))
    kept.add(statement)
    return Object.assign(statement, { iterate: (/** @type {unknown[]} */ ...values) => statement.all(...values)[Symbol.iterator]() })
  }
  const pragma = (/** @type {string} */ sql, { simple = false } = {}) => {
    const statement = prepare(`PRAGMA ${sql}`)
    if (!statement.reader) return statement.run() && []
    return simple ? statement.pluck().get() : statement.all()
  }
  kept.add(db)
  return Object.assign(db, { prepare, pragma })
}
