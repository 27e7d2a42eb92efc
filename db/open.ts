import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs'
import { attempt, DeckError, errorCode, errorText, unless } from '../server/errors.ts'
import { openSqlite, type Db, type Rows } from './sqlite.ts'
import type { Loss } from '../server/events/loss.ts'

const MIGRATIONS = new URL('./migrations/', import.meta.url)

// Waiting for a lock blocks the master's loop. The recorder tries again later.
const BUSY_TIMEOUT_MS = 5
// One write in a while has to wait for a checkpoint, which is short if the write-ahead log is small.
const CHECKPOINT_PAGES = 250
// The loop waits meanwhile, about 1.4 ms for each megabyte, and other apps may be in this process.
const MAX_COPY_BYTES = 24 * 1024 * 1024
const WRITE_VERSION_AT = 18
const READ_VERSION_AT = 19

/**
 * Opens a database file and brings its schema up to date. A damaged file is moved aside and a new one is begun: a
 * broken history must not keep an app from serving. Returns `movedAside`: where the damaged file is now; `loss`: what it
 * had.
 * @param options `isBroken`: it opens, but is damaged all the same
 * @throws {DeckError} `data-dir-unusable`: not writable, or written by a newer version; `history-unavailable`: locked
 */
export function openDatabase (file: string,
  { now = Date.now, isBroken = false }: { now?: () => number, isBroken?: boolean } = {}): Opened
{
  try {
    if (!isBroken) return { db: openAndMigrate(file), movedAside: null, loss: null }
  } catch (error) {
    if (!isDamaged(error)) throw explainError(error, file)
  }
  const movedAside = moveAside(file, now())
  return { db: openAndMigrate(file), movedAside, loss: lossOf(movedAside) }
}

export type Opened = { db: Db, movedAside: string | null, loss: Loss | null }

/** @returns which events a damaged file had, as far as SQLite can read it */
function lossOf (file: string): Loss {
  let db: Db | undefined
  try {
    db = openSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
    const totals: Rows<{ type: string, count: number }> = db.prepare('SELECT type, count FROM event_totals')
    const spans: Rows<{ fromMs: number, toMs: number }> = db.prepare(
      'SELECT min(oldest_ms) AS fromMs, max(newest_ms) AS toMs FROM spans'
    )
    const types = Object.fromEntries(totals.all().map(({ type, count }) => [type, count]))
    const { fromMs = NaN, toMs = NaN } = spans.get() ?? {}
    return { lost: Object.values(types).reduce((sum, count) => sum + count, 0), from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(), types }
  } catch {
    return { lost: null, from: null, to: null, types: {} }
  } finally {
    db?.close()
  }
}

/**
 * Opens a copy of a database in memory, for the time in which the file cannot be written. If SQLite cannot read the
 * file either, the copy has the content of its last checkpoint.
 * @param file the copy is empty if this is missing, too large or unreadable
 */
export function openCopy (file: string): Db {
  return attempt(() => openAndMigrate(contentOf(file))) ?? openAndMigrate(':memory:')
}

function contentOf (file: string): Buffer {
  if (statSync(file).size > MAX_COPY_BYTES) throw new RangeError('too large for a copy')
  const content = snapshotOf(file) ?? readFileSync(file)
  // A database in memory cannot be in WAL mode, so the header has to say that it is not: sqlite.org/fileformat2.html,
  // 1.3.
  content[WRITE_VERSION_AT] = content[READ_VERSION_AT] = 1
  return content
}

/** The content with the write-ahead log. */
function snapshotOf (file: string): Buffer | null {
  // SQLITE_CANTOPEN, SQLITE_IOERR and the like: to read the log SQLite has to write its index.
  return attempt(() => {
    const db = openSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
    try {
      return db.serialize()
    } finally {
      db.close()
    }
  })
}

/**
 * Checks that openDatabase can open this file, and does not change it: another master still uses it. `file`: which may
 * be missing.
 * @throws {DeckError} as openDatabase
 */
export function checkDatabase (file: string) {
  try {
    const db = openSqlite(existsSync(file) ? file : ':memory:', { readonly: existsSync(file),
      timeout: BUSY_TIMEOUT_MS })
    pendingMigrations(db)
    db.close()
  } catch (error) {
    if (!isDamaged(error)) throw explainError(error, file)
  }
}

function openAndMigrate (file: string | Buffer): Db {
  const db = openSqlite(file, { timeout: BUSY_TIMEOUT_MS })
  try {
    // Errors of apps can hold secrets. The other files that SQLite makes get the same mode.
    if (typeof file === 'string' && !db.memory) chmodSync(file, 0o600)
    // In WAL mode with NORMAL the operating system has each commit, so it outlives this process. A power cut can lose
    // the newest commits, but never damages the file.
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
 * Runs the migrations that this file has not seen, each in a transaction of its own with its `user_version`. `folder`:
 * numbered files `NNN-name.sql`, append-only.
 */
export function migrateDatabase (db: Db, folder: URL = MIGRATIONS) {
  for (const { name, version } of pendingMigrations(db, folder)) {
    const sql = readFileSync(new URL(name, folder), 'utf8')
    db.transaction(() => {
      db.exec(sql)
      db.pragma(`user_version = ${version}`)
    }).immediate()
  }
}

/** @throws {DeckError} `data-dir-unusable`: written by a newer version */
export function pendingMigrations (db: Db, folder: URL = MIGRATIONS): { name: string, version: number }[] {
  const steps = readdirSync(folder).filter((name) => /^\d{3}-.*\.sql$/.test(name)).sort()
  const current = Number(db.pragma('user_version', { simple: true }))
  if (current > steps.length) {
    throw new DeckError('data-dir-unusable',
      `${db.name}: expected schema version ${steps.length} or older, received ${current}, from a newer clusterdeck`)
  }
  return steps.map((name, index) => ({ name, version: index + 1 })).slice(current)
}

/** Whether the file itself is broken, not just locked, full or out of reach. */
export function isDamaged (error: unknown) {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(sqliteCode(error))
}

/** SQLite begins its codes with these where the file itself may be fine. */
const OUT_OF_REACH = /^SQLITE_(FULL|IOERR|CANTOPEN|READONLY|PERM|BUSY|LOCKED|NOMEM|PROTOCOL)/
const NO_ACCESS = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO', 'EMFILE', 'ENFILE'])

/**
 * Whether the database may open later: the disk is full or read-only, it is locked, or the process has too many files
 * open. `error`: as openDatabase throws it.
 */
export function isOutOfReach (error: unknown): error is DeckError {
  const code = error instanceof DeckError ? sqliteCode(error.cause) : ''
  return OUT_OF_REACH.test(code) || NO_ACCESS.has(code)
}

function moveAside (file: string, at: number) {
  const target = `${file}.damaged-${new Date(at).toISOString().replace(/[:.]/g, '-')}`
  renameSync(file, target)
  for (const suffix of ['-wal', '-shm']) {
    // A database that was closed cleanly has no other files.
    unless('ENOENT', () => renameSync(file + suffix, target + suffix))
  }
  return target
}

function explainError (error: unknown, file: string) {
  if (error instanceof DeckError) return error
  const code = /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error)) ? 'history-unavailable' : 'data-dir-unusable'
  return new DeckError(code, `${file}: expected a database that can be read and written, received: ${errorText(error)}`,
    { cause: error })
}

function sqliteCode (error: unknown) {
  return String(errorCode(error) ?? '')
}
