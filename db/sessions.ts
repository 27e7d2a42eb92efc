import { withAppNames, withAppsText } from './app-names.ts'
import type { Db, Rows } from './sqlite.ts'

/**
 * Keeps who is signed in. It stores only the hash of a session's secret, so that the file lets nobody sign in. Times
 * are ms since the epoch.
 */
export type Session = {
  hash: string,
  createdAt: number,
  expiresAt: number,
  /** null: of the admin token */
  name: string | null,
  role: 'viewer' | 'operator' | 'admin',
  /** the session ends with it */
  token: number | null,
  /** the user id of a browser of this machine */
  owner: number | null,
  /** the only apps of a host for which the role counts; null: it counts for all */
  apps?: readonly string[] | null
}

export function createSessions (db: Db) {
  const insert = db.prepare(`
    INSERT INTO sessions (hash, created_ms, expires_ms, name, role, token, owner, apps)
    VALUES (@hash, @createdAt, @expiresAt, @name, @role, @token, @owner, @apps)`)
  const byHash: Rows<Omit<Session, 'apps'> & { apps: string | null }> = db.prepare(
    'SELECT hash, created_ms AS createdAt, expires_ms AS expiresAt, name, role, token, owner, apps FROM sessions WHERE hash = ?'
  )
  const extend = db.prepare('UPDATE sessions SET expires_ms = ? WHERE hash = ?')
  const remove = db.prepare('DELETE FROM sessions WHERE hash = ?')
  const byToken: Rows<{ token: number | null, count: number }> = db.prepare(
    'SELECT token, count(*) AS count FROM sessions WHERE expires_ms > ? AND (token IS NOT NULL OR name IS NULL) GROUP BY token'
  )
  const removeAll = db.prepare('DELETE FROM sessions')

  return {
    create (session: Session) {
      insert.run(withAppsText(session))
    },

    /** @returns which may have expired */
    find (hash: string): Session | null {
      const row = byHash.get(hash)
      return row === undefined ? null : withAppNames(row)
    },

    touch (hash: string, expiresAt: number) {
      extend.run(expiresAt, hash)
    },

    /** Tells whether there was one */
    revoke (hash: string): boolean {
      return remove.run(hash).changes === 1
    },

    /** @returns how many are open, by the token with which they end; null: the admin token, not that of an app */
    countByToken (now: number): Map<number | null, number> {
      return new Map(byToken.all(now).map(({ token, count }) => [token, count]))
    },

    /** @returns how many there were */
    revokeAll (): number {
      return removeAll.run().changes
    }
  }
}
