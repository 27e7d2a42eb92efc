import { withAppNames, withAppsText } from './app-names.js'

/**
 * Keeps who is signed in. It stores only the hash of a session's secret, so that the file lets nobody sign in. Times are ms since
 * the epoch.
 * @typedef {object} Session
 * @property {string} hash
 * @property {number} createdAt
 * @property {number} expiresAt
 * @property {string | null} name  null: of the admin token
 * @property {'viewer' | 'operator' | 'admin'} role
 * @property {number | null} token  the session ends with it
 * @property {number | null} owner  the user id of a browser of this machine
 * @property {readonly string[] | null} [apps]  the only apps of a host for which the role counts; null: it counts for all
 * @typedef {ReturnType<typeof createSessions>} Sessions
 */

/** @param {import('./open.js').Db} db */
export function createSessions (db) {
  const insert = db.prepare(`
    INSERT INTO sessions (hash, created_ms, expires_ms, name, role, token, owner, apps)
    VALUES (@hash, @createdAt, @expiresAt, @name, @role, @token, @owner, @apps)`)
  /** @type {import('./sqlite.js').Rows<Omit<Session, 'apps'> & { apps: string | null }>} */
  const byHash = db.prepare('SELECT hash, created_ms AS createdAt, expires_ms AS expiresAt, name, role, token, owner, apps FROM sessions WHERE hash = ?')
  const extend = db.prepare('UPDATE sessions SET expires_ms = ? WHERE hash = ?')
  const remove = db.prepare('DELETE FROM sessions WHERE hash = ?')
  /** @type {import('./sqlite.js').Rows<{ token: number, count: number }>} */
  const byToken = db.prepare('SELECT token, count(*) AS count FROM sessions WHERE expires_ms > ? AND token IS NOT NULL GROUP BY token')
  const removeAll = db.prepare('DELETE FROM sessions')

  return {
    /** @param {Session} session */
    create (session) { insert.run(withAppsText(session)) },

    /** @param {string} hash @returns {Session | null} which may have expired */
    find (hash) {
      const row = byHash.get(hash)
      return row === undefined ? null : withAppNames(row)
    },

    /** @param {string} hash @param {number} expiresAt */
    touch (hash, expiresAt) { extend.run(expiresAt, hash) },

    /** @param {string} hash @returns {boolean} whether there was one */
    revoke (hash) { return remove.run(hash).changes === 1 },

    /** @param {number} now @returns {Map<number, number>} how many are open, by the token with which they end */
    countByToken (now) { return new Map(byToken.all(now).map(({ token, count }) => [token, count])) },

    /** @returns {number} how many there were */
    revokeAll () { return removeAll.run().changes }
  }
}
