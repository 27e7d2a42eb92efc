/**
 * Who is signed in. Only the hash of a session's secret is stored: reading the file signs nobody in.
 * All times are ms since the epoch.
 * @typedef {{ hash: string, createdAt: number, expiresAt: number, name: string | null, role: 'viewer' | 'operator' | 'admin', token: number | null, owner: number | null }} Session `owner`: the user id of a browser of this machine; `name`: null for the admin token's; `token`: the one with which it ends
 * @typedef {ReturnType<typeof createSessions>} Sessions
 */

/** @param {import('./open.js').Db} db */
export function createSessions (db) {
  const insert = db.prepare('INSERT INTO sessions (hash, created_ms, expires_ms, name, role, token, owner) VALUES (@hash, @createdAt, @expiresAt, @name, @role, @token, @owner)')
  const byHash = db.prepare('SELECT hash, created_ms AS createdAt, expires_ms AS expiresAt, name, role, token, owner FROM sessions WHERE hash = ?')
  const extend = db.prepare('UPDATE sessions SET expires_ms = ? WHERE hash = ?')
  const remove = db.prepare('DELETE FROM sessions WHERE hash = ?')
  const removeAll = db.prepare('DELETE FROM sessions')

  return {
    /** @param {Session} session */
    create (session) { insert.run(session) },

    /**
     * The session even if it has expired: only the caller knows what time it is.
     * @param {string} hash @returns {Session | null}
     */
    find (hash) { return /** @type {Session | undefined} */ (byHash.get(hash)) ?? null },

    /** @param {string} hash @param {number} expiresAt */
    touch (hash, expiresAt) { extend.run(expiresAt, hash) },

    /** @param {string} hash @returns {boolean} whether there was one */
    revoke (hash) { return remove.run(hash).changes === 1 },

    /** @returns {number} how many there were */
    revokeAll () { return removeAll.run().changes }
  }
}
