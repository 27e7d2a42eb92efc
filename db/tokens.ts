import { withAppNames, withAppsText } from './app-names.ts'
import type { Db, Rows } from './sqlite.ts'

/** Keeps named tokens; of their secrets only the hashes. Times are ms since the epoch. */
export type Token = {
  id: number,
  name: string,
  role: 'viewer' | 'operator' | 'admin',
  createdAt: number,
  createdBy: string,
  /** the token that made it, null: the admin token */
  createdWith: number | null,
  /** a mark of the admin token */
  root: string,
  expiresAt: number,
  /** the only apps of a host for which the role counts; null: it counts for all */
  apps?: readonly string[] | null,
  /** `link`: it stands for whoever was sent a sign-in link; nobody has its secret */
  kind: 'token' | 'link',
  /** null: never */
  usedAt: number | null,
  /** the address */
  usedFrom: string | null
}
export type Tokens = ReturnType<typeof createTokens>

const COLUMNS =
  `id, name, role, created_ms AS createdAt, created_by AS createdBy, made_with AS createdWith, root, expires_ms AS expiresAt, apps,
  kind, used_ms AS usedAt, used_from AS usedFrom`

export function createTokens (db: Db) {
  const insert = db.prepare(`
    INSERT INTO tokens (hash, name, role, created_ms, created_by, made_with, root, expires_ms, apps, kind)
    VALUES (@hash, @name, @role, @createdAt, @createdBy, @createdWith, @root, @expiresAt, @apps, @kind)`)
  const byHash: Rows<Omit<Token, 'apps'> & { apps: string | null }> = db.prepare(
    `SELECT ${COLUMNS} FROM tokens WHERE hash = ?`
  )
  const byId: Rows<Omit<Token, 'apps'> & { apps: string | null }> = db.prepare(
    `SELECT ${COLUMNS} FROM tokens WHERE id = ?`
  )
  const all: Rows<Omit<Token, 'apps'> & { apps: string | null }> = db.prepare(
    `SELECT ${COLUMNS} FROM tokens ORDER BY id DESC`
  )
  const removeWithMade = db.prepare(
    `WITH RECURSIVE ended (id) AS (SELECT ? UNION SELECT tokens.id FROM tokens JOIN ended ON tokens.made_with = ended.id)
    DELETE FROM tokens WHERE id IN (SELECT id FROM ended)`
  )
  const setUsed = db.prepare('UPDATE tokens SET used_ms = ?, used_from = ? WHERE id = ?')
  const removePast = db.prepare(
    'DELETE FROM tokens WHERE expires_ms < CASE kind WHEN \'link\' THEN @now ELSE @longAgo END'
  )
  const removeOthers = db.prepare('DELETE FROM tokens WHERE root <> ?')
  const setRoot = db.prepare('UPDATE tokens SET root = ?')

  return {
    /** @returns its id */
    create (token: Omit<Token, 'id' | 'usedAt' | 'usedFrom'> & { hash: string }): number {
      return Number(insert.run(withAppsText(token)).lastInsertRowid)
    },

    /** @returns also one that has expired */
    find (hash: string): Token | null {
      return toToken(byHash.get(hash))
    },

    get (id: number): Token | null {
      return toToken(byId.get(id))
    },

    /** @returns newest first */
    list (): Token[] {
      return all.all().map(withAppNames)
    },

    /** Removes the tokens that were made with it too. Returns whether there was one. */
    remove (id: number): boolean {
      return removeWithMade.run(id).changes > 0
    },

    noteUse (id: number, { at, from }: { at: number, from: string }) {
      setUsed.run(at, from, id)
    },

    /** Removes links that had expired by `now`, and tokens that had expired by `longAgo`. */
    removePast (times: { now: number, longAgo: number }) {
      removePast.run(times)
    },

    /** Removes all that have another root. */
    keepOf (root: string) {
      removeOthers.run(root)
    },

    /** Makes all of them valid below another admin token. */
    moveTo (root: string) {
      setRoot.run(root)
    }
  }
}

function toToken (row: (Omit<Token, 'apps'> & { apps: string | null }) | undefined): Token | null {
  return row === undefined ? null : withAppNames(row)
}
