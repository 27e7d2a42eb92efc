import { chmodSync } from 'node:fs'
import { DeckError } from '../server/errors.ts'
import { pendingMigrations } from './open.ts'
import { openSqlite, type Db } from './sqlite.ts'
import { createTokens } from './tokens.ts'

const BUSY_TIMEOUT_MS = 5000
/** So many pages are copied between two looks at the signal. */
const PAGES = 1000

/**
 * Copies a database that a master may be writing to. The master waits for nothing. Its sessions, and the answers that it
 * keeps for repeated requests, are left out. `hasSecrets`: the copy has the alerts, whose settings have passwords and
 * keys.
 * @returns how many alerts are left out
 * @throws what SQLite says, and the reason of the signal
 */
export async function copyDatabase (file: string, copy: string,
  { hasSecrets, signal }: { hasSecrets: boolean, signal: AbortSignal }): Promise<number>
{
  const source = openSqlite(file, { readonly: true, timeout: BUSY_TIMEOUT_MS })
  try {
    // All of the copy is of the moment in which this begins; else it would begin anew after each write of the master.
    source.exec('BEGIN')
    source.prepare('SELECT count(*) FROM sqlite_schema').get()
    await source.backup(copy, { progress () {
      signal.throwIfAborted()
      return PAGES
    } })
  } finally {
    source.close()
  }
  chmodSync(copy, 0o600)
  return using(openSqlite(copy), (db) => {
    db.pragma('journal_mode = DELETE')
    db.exec('DELETE FROM sessions; DELETE FROM answers')
    const alerts = hasSecrets ? 0 : db.prepare('DELETE FROM alerts').run().changes
    // What is deleted, now or long ago, would still be in the file.
    db.exec('VACUUM')
    return alerts
  })
}

/**
 * Checks a copy that anybody may have made. Returns how many tokens it has.
 * @throws {DeckError} `data-dir-unusable`: of a newer version, or damaged; and what SQLite says
 */
export function checkCopy (file: string): number {
  return using(openSqlite(file, { readonly: true }), (db) => {
    pendingMigrations(db)
    const found = db.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw new DeckError('data-dir-unusable', `it is damaged: ${found}`)
    return createTokens(db).list().filter(({ kind }) => kind === 'token').length
  })
}

/** Makes the tokens of a database valid below another admin token. `root`: see `rootOf` of admin/tokens.ts */
export function moveTokens (file: string, root: string) {
  using(openSqlite(file), (db) => createTokens(db).moveTo(root))
}

function using<T> (db: Db, work: (db: Db) => T): T {
  try {
    return work(db)
  } finally {
    db.close()
  }
}
