import { errorCode } from '../server/errors.ts'
import { openSqlite } from './sqlite.ts'

/** Garbage collection would close a database that nobody refers to, and release its lock. */
const held = new Set()

/**
 * Takes a file for this process alone, or fails at once. SQLite uses a lock of the operating system, which ends with
 * the process and so is never stale. `file`: made if it is missing; nothing is written to it. Returns null: another
 * process has it.
 * @throws what SQLite says if the file cannot be opened
 */
export function takeLock (file: string): { release: () => void } | null {
  const db = openSqlite(file, { timeout: 0 })
  try {
    // It needs no journal file, since nothing is ever written.
    db.pragma('journal_mode = MEMORY')
    db.exec('BEGIN EXCLUSIVE')
    held.add(db)
    return { release: releaseLock }
  } catch (error) {
    db.close()
    if (String(errorCode(error)).startsWith('SQLITE_BUSY')) return null
    throw error
  }

  function releaseLock () {
    held.delete(db)
    db.close()
  }
}
