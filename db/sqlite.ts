import { createRequire } from 'node:module'
import { DeckError, errorCode, errorText, HOW_TO_INSTALL } from '../server/errors.ts'
import type { Database, Options, Statement } from 'better-sqlite3'

/** A statement whose rows have this type: nothing checks that but the SQL beside it. */
export type Rows<Row> = Statement<unknown[], Row>
export type Db =
  & Omit<Database, 'prepare'>
  & { prepare: <Row>(sql: string) => Rows<Row> }

/** The module to require. */
export const SQLITE = 'better-sqlite3'
const require = createRequire(import.meta.url)
const MAX_STATEMENTS = 300

/**
 * Opens a database. The first call loads the native part of SQLite.
 * @param file a Buffer: a copy of that content, in memory
 * @throws {DeckError} bad-install: it is not there, not compiled, or for another version of Node; and what SQLite says
 */
export function openSqlite (file: string | Buffer, options: Options = {}): Db {
  try {
    return new (require(SQLITE))(file, options) as Db
  } catch (error) {
    const reason = whyUnloadable(error)
    if (reason === null) throw error
    throw new DeckError('bad-install',
      `Node ${process.version} cannot load better-sqlite3 (with this Node ${HOW_TO_INSTALL}): ${reason}`, {
      cause: error
    })
  }
}

/** Null: it was loaded, and SQLite has refused */
function whyUnloadable (error: unknown): string | null {
  const text = errorText(error)
  if (errorCode(error) === 'MODULE_NOT_FOUND') return 'it is not installed for this version'
  // An installation without scripts has no native part.
  if (text.startsWith('Could not locate the bindings file')) return 'it was not compiled'
  return errorCode(error) === 'ERR_DLOPEN_FAILED' ? text.replace(/\s+/g, ' ') : null
}

/** Prepares each statement once, for SQL that is put together from what a query asks for. */
export function statementCache (db: Db) {
  const statements: Map<string, unknown> = new Map()
  return prepare

  function prepare<Row> (sql: string): Rows<Row> {
    const known = statements.get(sql)
    if (known) return known as Rows<Row>
    if (statements.size >= MAX_STATEMENTS) statements.clear()
    const statement = db.prepare<Row>(sql)
    statements.set(sql, statement)
    return statement
  }
}
