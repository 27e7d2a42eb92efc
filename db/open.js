import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { DeckError } from '../server/errors.js'
import { openSqlite } from './sqlite.js'

/** @typedef {import('better-sqlite3').Database} Db */

const MIGRATIONS = new URL('./migrations/', import.meta.url)

// A lock held by somebody else must not hold the master's loop: give up soon, the recorder tries again later.
const BUSY_TIMEOUT_MS = 5
// Small write-ahead logs keep each checkpoint, which one unlucky write has to wait for, short.
const CHECKPOINT_PAGES = 250
const MAX_COPY_BYTES = 128 * 1024 * 1024
const WRITE_VERSION_AT = 18
const READ_VERSION_AT = 19

/**
 * Opens a database file and brings its schema up to date. A file that is damaged is moved aside, with its
 * companions, and a new one is begun: a broken history must not keep an app from being served.
 * @param {string} file
 * @param {{ now?: () => number }} [options]
 * @returns {{ db: Db, movedAside: string | null }} `movedAside`: where the damaged file lies now
 * @throws {DeckError} `data-dir-unusable`: not writable, or written by a newer version; `history-unavailable`: locked
 */
export function openDatabase (file, { now = Date.now } = {}) {
  try {
    return { db: openAndMigrate(file), movedAside: null }
  } catch (error) {
    if (!isDamaged(error)) throw explainError(error, file)
    const movedAside = moveAside(file, now())
    return { db: openAndMigrate(file), movedAside }
  }
}

/**
 * A copy of a database in memory, for as long as the file itself cannot be written. Where SQLite cannot read it either, it
 * is what the file held at its last checkpoint.
 * @param {string} file one that is not there, too large or unreadable gives an empty copy
 * @returns {Db}
 */
export function openCopy (file) {
  try {
    return openAndMigrate(contentOf(file))
  } catch {
    return openAndMigrate(':memory:')
  }
}

/** @param {string} file @returns {Buffer} */
function contentOf (file) {
  if (statSync(file).size > MAX_COPY_BYTES) throw new RangeError('too large for a copy')
  const content = snapshotOf(file) ?? readFileSync(file)
  // As a database that was never in WAL mode, which one in memory cannot be: sqlite.org/fileformat2.html, 1.3.
  content[WRITE_VERSION_AT] = content[READ_VERSION_AT] = 1
  return content
}

/** With what is in its write-ahead log alone. @param {string} file @returns {Buffer | null} */
function snapshotOf (file) {
  try {
    const db = openSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
    try {
      return db.serialize()
    } finally {
      db.close()
    }
  } catch {
    // SQLITE_CANTOPEN, SQLITE_IOERR and the like: the log cannot be read where its index cannot be written.
    return null
  }
}

/**
 * Whether openDatabase will be able to open this file, told without touching it: its master is another one still.
 * @param {string} file one that is not there is made later
 * @throws {DeckError} as openDatabase
 */
export function checkDatabase (file) {
  try {
    const db = openSqlite(existsSync(file) ? file : ':memory:', { readonly: existsSync(file), timeout: BUSY_TIMEOUT_MS })
    pendingMigrations(db)
    db.close()
  } catch (error) {
    if (!isDamaged(error)) throw explainError(error, file)
  }
}

/** @param {string | Buffer} file @returns {Db} */
function openAndMigrate (file) {
  const db = openSqlite(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    // It holds what apps threw. The companion files that SQLite makes take its mode.
    if (typeof file === 'string' && !db.memory) chmodSync(file, 0o600)
    // NORMAL in WAL mode: a commit is with the operating system when it returns, so it outlives this process
    // however that dies. Only a power cut can lose the newest commits, and it never damages the file.
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    db.pragma('foreign_keys = ON')
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    migrateDatabase(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Runs the migrations that this file has not seen, each in a transaction of its own with its `user_version`.
 * @param {Db} db
 * @param {URL} [folder] numbered files `NNN-name.sql`, append-only
 */
export function migrateDatabase (db, folder = MIGRATIONS) {
  for (const { name, version } of pendingMigrations(db, folder)) {
    const sql = readFileSync(new URL(name, folder), 'utf8')
    db.transaction(() => {
      db.exec(sql)
      db.pragma(`user_version = ${version}`)
    }).immediate()
  }
}

/**
 * @param {Db} db @param {URL} [folder]
 * @returns {{ name: string, version: number }[]}
 * @throws {DeckError} `data-dir-unusable`: written by a newer version
 */
function pendingMigrations (db, folder = MIGRATIONS) {
  const steps = readdirSync(folder).filter((name) => /^\d{3}-.*\.sql$/.test(name)).sort()
  const current = Number(db.pragma('user_version', { simple: true }))
  if (current > steps.length) {
    throw new DeckError('data-dir-unusable', `${db.name}: expected schema version ${steps.length} or older, ` +
      `received ${current}: it was written by a newer clusterdeck`)
  }
  return steps.map((name, index) => ({ name, version: index + 1 })).slice(current)
}

/**
 * Whether SQLite says that the file itself is broken, as opposed to locked, full or out of reach.
 * @param {unknown} error
 */
export function isDamaged (error) {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(error))
}

/**
 * Whether a database may be had later: the disk is full or read-only, somebody has a lock, the process has too much open.
 * @param {any} error as openDatabase throws it
 */
export function isOutOfReach ({ cause }) {
  return /^(SQLITE_(FULL|IOERR|CANTOPEN|READONLY|PERM|BUSY|LOCKED|NOMEM|PROTOCOL)|ENOSPC$|EDQUOT$|EROFS$|EACCES$|EPERM$|EIO$|EMFILE$|ENFILE$)/.test(sqliteCode(cause))
}

/** @param {string} file @param {number} at */
function moveAside (file, at) {
  const target = `${file}.damaged-${new Date(at).toISOString().replace(/[:.]/g, '-')}`
  renameSync(file, target)
  for (const suffix of ['-wal', '-shm']) {
    try {
      renameSync(file + suffix, target + suffix)
    } catch (error) {
      // ENOENT: a database that was closed cleanly has no companions.
      if (/** @type {any} */ (error).code !== 'ENOENT') throw error
    }
  }
  return target
}

/** @param {unknown} error @param {string} file */
function explainError (error, file) {
  if (error instanceof DeckError) return error
  const reason = error instanceof Error ? error.message : String(error)
  const code = /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error)) ? 'history-unavailable' : 'data-dir-unusable'
  return new DeckError(code, `${file}: expected a database that can be read and written, received: ${reason}`, { cause: error })
}

/** @param {unknown} error */
function sqliteCode (error) {
  return String(/** @type {any} */ (error)?.code ?? '')
}
