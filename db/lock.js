import { openSqlite } from './sqlite.js'

/** A database that nobody refers to is closed by the garbage collection, and the lock would go with it. */
const held = new Set()

/**
 * Takes a file for this process alone, or fails at once. SQLite's lock is the operating system's: it ends with the
 * process, however that dies, so it is never stale.
 * @param {string} file made if it is not there; nothing is kept in it
 * @returns {{ release: () => void } | null} null: another process has it
 * @throws what SQLite says where the file cannot be had
 */
export function takeLock (file) {
  const db = openSqlite(file, { timeout: 0 })
  try {
    // No journal beside it: nothing is ever written.
    db.pragma('journal_mode = MEMORY')
    db.exec('BEGIN EXCLUSIVE')
    held.add(db)
    return { release: releaseLock }
  } catch (/** @type {any} */ error) {
    db.close()
    if (/^SQLITE_BUSY/.test(error.code)) return null
    throw error
  }

  function releaseLock () {
    held.delete(db)
    db.close()
  }
}
