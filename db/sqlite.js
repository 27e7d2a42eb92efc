import Database from 'better-sqlite3'
import { DeckError } from '../server/errors.js'

/**
 * Opens a database. SQLite's native part is loaded by the first call, not before.
 * @param {string | Buffer} file a Buffer: a copy of that content, in memory @param {import('better-sqlite3').Options} options
 * @returns {import('better-sqlite3').Database}
 * @throws {DeckError} bad-install: it was compiled for another version of Node; and what SQLite says
 */
export function openSqlite (file, options) {
  try {
    return new Database(file, options)
  } catch (/** @type {any} */ error) {
    if (error.code !== 'ERR_DLOPEN_FAILED') throw error
    throw new DeckError('bad-install', `better-sqlite3 cannot be loaded by Node ${process.version} (run "npm rebuild better-sqlite3" with it): ${error.message.replace(/\s+/g, ' ')}`, { cause: error })
  }
}
