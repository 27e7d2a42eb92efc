/**
 * Tokens with a name, each the hash of its secret alone. Times are ms since the epoch.
 * @typedef {{ id: number, name: string, role: string, createdAt: number, createdBy: string, expiresAt: number }} Token
 * @typedef {ReturnType<typeof createTokens>} Tokens
 */

const COLUMNS = 'id, name, role, created_ms AS createdAt, created_by AS createdBy, expires_ms AS expiresAt'

/** @param {import('./open.js').Db} db */
export function createTokens (db) {
  const insert = db.prepare('INSERT INTO tokens (hash, name, role, created_ms, created_by, expires_ms) VALUES (@hash, @name, @role, @createdAt, @createdBy, @expiresAt)')
  const byHash = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE hash = ?`)
  const byId = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE id = ?`)
  const all = db.prepare(`SELECT ${COLUMNS} FROM tokens ORDER BY id DESC`)
  const remove = db.prepare('DELETE FROM tokens WHERE id = ?')

  return {
    /** @param {Omit<Token, 'id'> & { hash: string }} token @returns {number} its id */
    create (token) { return Number(insert.run(token).lastInsertRowid) },

    /** @param {string} hash @returns {Token | null} also one that has expired */
    find (hash) { return /** @type {Token | undefined} */ (byHash.get(hash)) ?? null },

    /** @param {number} id @returns {Token | null} */
    get (id) { return /** @type {Token | undefined} */ (byId.get(id)) ?? null },

    /** @returns {Token[]} newest first */
    list () { return /** @type {Token[]} */ (all.all()) },

    /** @param {number} id @returns {boolean} whether there was one */
    remove (id) { return remove.run(id).changes === 1 }
  }
}
