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
 * @property {'token' | 'link'} kind  `link`: it stands for whoever was sent a sign-in link; nobody has its secret
 * @property {number | null} usedAt  null: never
 * @property {string | null} usedFrom  the address
 * @typedef {ReturnType<typeof createTokens>} Tokens
 */

const COLUMNS = `id, name, role, created_ms AS createdAt, created_by AS createdBy, made_with AS createdWith, root, expires_ms AS expiresAt, apps,
  kind, used_ms AS usedAt, used_from AS usedFrom`

/** @param {import('./open.js').Db} db */
export function createTokens (db) {
  const insert = db.prepare(`
    INSERT INTO tokens (hash, name, role, created_ms, created_by, made_with, root, expires_ms, apps, kind)
    VALUES (@hash, @name, @role, @createdAt, @createdBy, @createdWith, @root, @expiresAt, @apps, @kind)`)
  /** @type {import('./sqlite.js').Rows<Omit<Token, 'apps'> & { apps: string | null }>} */
  const byHash = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE hash = ?`)
  /** @type {import('./sqlite.js').Rows<Omit<Token, 'apps'> & { apps: string | null }>} */
  const byId = db.prepare(`SELECT ${COLUMNS} FROM tokens WHERE id = ?`)
  /** @type {import('./sqlite.js').Rows<Omit<Token, 'apps'> & { apps: string | null }>} */
  const all = db.prepare(`SELECT ${COLUMNS} FROM tokens ORDER BY id DESC`)
  const removeWithMade = db.prepare(`WITH RECURSIVE ended (id) AS (SELECT ? UNION SELECT tokens.id FROM tokens JOIN ended ON tokens.made_with = ended.id)
    DELETE FROM tokens WHERE id IN (SELECT id FROM ended)`)
  const setUsed = db.prepare('UPDATE tokens SET used_ms = ?, used_from = ? WHERE id = ?')
  const removePast = db.prepare("DELETE FROM tokens WHERE expires_ms < CASE kind WHEN 'link' THEN @now ELSE @longAgo END")
  const removeOthers = db.prepare('DELETE FROM tokens WHERE root <> ?')

  return {
    /** @param {Omit<Token, 'id' | 'usedAt' | 'usedFrom'> & { hash: string }} token @returns {number} its id */
    create (token) { return Number(insert.run(withAppsText(token)).lastInsertRowid) },

    /** @param {string} hash @returns {Token | null} also one that has expired */
    find (hash) { return toToken(byHash.get(hash)) },

    /** @param {number} id @returns {Token | null} */
    get (id) { return toToken(byId.get(id)) },

    /** @returns {Token[]} newest first */
    list () { return all.all().map(withAppNames) },

    /** Removes the tokens that were made with it too. @param {number} id @returns {boolean} whether there was one */
    remove (id) { return removeWithMade.run(id).changes > 0 },

    /** @param {number} id @param {{ at: number, from: string }} use */
    noteUse (id, { at, from }) { setUsed.run(at, from, id) },

    /** Removes links that had expired by `now`, and tokens that had expired by `longAgo`. @param {{ now: number, longAgo: number }} times */
    removePast (times) { removePast.run(times) },

    /** Removes all that have another root. @param {string} root */
    keepOf (root) { removeOthers.run(root) }
  }
}

/** @param {(Omit<Token, 'apps'> & { apps: string | null }) | undefined} row @returns {Token | null} */
function toToken (row) {
  return row === undefined ? null : withAppNames(row)
}
