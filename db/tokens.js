/**
 * Tokens with a name, each the hash of its secret alone. Times are ms since the epoch.
 * @typedef {{ id: number, name: string, role: 'viewer' | 'operator' | 'admin', createdAt: number, createdBy: string, createdWith: number | null, root: string, expiresAt: number }} Token
 *   `createdWith`: the token that has made it, null: the admin token; `root`: a mark of the admin token
 * @typedef {ReturnType<typeof createTokens>} Tokens
 */

const COLUMNS = 'id, name, role, created_ms AS createdAt, created_by AS createdBy, made_with AS createdWith, root, expires_ms AS expiresAt'

/** @param {import('./open.js').Db} db */
export function createTokens (db) {
  const insert = db.prepare('INSERT INTO tokens (hash, name, role, created_ms, created_by, made_with, root, expires_ms) VALUES (@hash, @name, @role, @createdAt, @createdBy, @createdWith, @root, @expiresAt)')
  const byHash = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE hash = ?`)
  const byId = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE id = ?`)
  const all = db.prepare(`SELECT ${COLUMNS} FROM tokens ORDER BY id DESC`)
  const removeWithMade = db.prepare(`WITH RECURSIVE ended (id) AS (SELECT ? UNION SELECT tokens.id FROM tokens JOIN ended ON tokens.made_with = ended.id)
    DELETE FROM tokens WHERE id IN (SELECT id FROM ended)`)
  const removeOthers = db.prepare('DELETE FROM tokens WHERE root <> ?')

  return {
    /** @param {Omit<Token, 'id'> & { hash: string }} token @returns {number} its id */
    create (token) { return Number(insert.run(token).lastInsertRowid) },

    /** @param {string} hash @returns {Token | null} also one that has expired */
    find (hash) { return /** @type {Token | undefined} */ (byHash.get(hash)) ?? null },

    /** @param {number} id @returns {Token | null} */
    get (id) { return /** @type {Token | undefined} */ (byId.get(id)) ?? null },

    /** @returns {Token[]} newest first */
    list () { return /** @type {Token[]} */ (all.all()) },

    /** With all that were made with it. @param {number} id @returns {boolean} whether there was one */
    remove (id) { return removeWithMade.run(id).changes > 0 },

    /** Removes all that have another root. @param {string} root */
    keepOf (root) { removeOthers.run(root) }
  }
}
