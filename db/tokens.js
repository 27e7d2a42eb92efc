import { withAppNames, withAppsText } from './app-names.js'

/**
 * Keeps named tokens; of their secrets only the hashes. Times are ms since the epoch.
 * @typedef {object} Token
 * @property {number} id
 * @property {string} name
 * @property {'viewer' | 'operator' | 'admin'} role
 * @property {number} createdAt
 * @property {string} createdBy
 * @property {number | null} createdWith  the token that made it, null: the admin token
 * @property {string} root  a mark of the admin token
 * @property {number} expiresAt
 * @property {readonly string[] | null} [apps]  the only apps of a host for which the role counts; null: it counts for all
 * @typedef {ReturnType<typeof createTokens>} Tokens
 */

const COLUMNS = 'id, name, role, created_ms AS createdAt, created_by AS createdBy, made_with AS createdWith, root, expires_ms AS expiresAt, apps'

/** @param {import('./open.js').Db} db */
export function createTokens (db) {
  const insert = db.prepare(`
    INSERT INTO tokens (hash, name, role, created_ms, created_by, made_with, root, expires_ms, apps)
    VALUES (@hash, @name, @role, @createdAt, @createdBy, @createdWith, @root, @expiresAt, @apps)`)
  /** @type {import('./sqlite.js').Rows<Omit<Token, 'apps'> & { apps: string | null }>} */
  const byHash = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE hash = ?`)
  /** @type {import('./sqlite.js').Rows<Omit<Token, 'apps'> & { apps: string | null }>} */
  const byId = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE id = ?`)
  /** @type {import('./sqlite.js').Rows<Omit<Token, 'apps'> & { apps: string | null }>} */
  const all = db.prepare(`SELECT ${COLUMNS} FROM tokens ORDER BY id DESC`)
  const removeWithMade = db.prepare(`WITH RECURSIVE ended (id) AS (SELECT ? UNION SELECT tokens.id FROM tokens JOIN ended ON tokens.made_with = ended.id)
    DELETE FROM tokens WHERE id IN (SELECT id FROM ended)`)
  const removeOthers = db.prepare('DELETE FROM tokens WHERE root <> ?')

  return {
    /** @param {Omit<Token, 'id'> & { hash: string }} token @returns {number} its id */
    create (token) { return Number(insert.run(withAppsText(token)).lastInsertRowid) },

    /** @param {string} hash @returns {Token | null} also one that has expired */
    find (hash) { return toToken(byHash.get(hash)) },

    /** @param {number} id @returns {Token | null} */
    get (id) { return toToken(byId.get(id)) },

    /** @returns {Token[]} newest first */
    list () { return all.all().map(withAppNames) },

    /** Removes the tokens that were made with it too. @param {number} id @returns {boolean} whether there was one */
    remove (id) { return removeWithMade.run(id).changes > 0 },

    /** Removes all that have another root. @param {string} root */
    keepOf (root) { removeOthers.run(root) }
  }
}

/** @param {(Omit<Token, 'apps'> & { apps: string | null }) | undefined} row @returns {Token | null} */
function toToken (row) {
  return row === undefined ? null : withAppNames(row)
}
