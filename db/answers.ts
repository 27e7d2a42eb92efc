import type { Db, Rows } from './sqlite.ts'

const MAX_KEPT = 1000

/**
 * Keeps answers, since a client may send the same request again. Times are ms since the epoch.
 * `key`, `request`: hashes; `answer`: JSON
 */
type KeptAnswer = { key: string, request: string, answer: string, at: number }
export type Answers = ReturnType<typeof createAnswers>

export function createAnswers (db: Db) {
  const insert = db.prepare(
    'INSERT OR REPLACE INTO answers (key, request, answer, at_ms) VALUES (@key, @request, @answer, @at)'
  )
  const byKey: Rows<KeptAnswer> = db.prepare('SELECT key, request, answer, at_ms AS at FROM answers WHERE key = ?')
  const removeSurplus = db.prepare(
    'DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY at_ms DESC LIMIT -1 OFFSET ?)'
  )
  const removeOld = db.prepare('DELETE FROM answers WHERE at_ms < ?')

  const keep = db.transaction((answer: KeptAnswer, oldest: number) => {
    insert.run(answer)
    removeOld.run(oldest)
    removeSurplus.run(MAX_KEPT)
  })

  return {
    /** Removes answers that are older than `oldest`. */
    keep (answer: KeptAnswer, { oldest }: { oldest: number }) {
      keep(answer, oldest)
    },

    find (key: string): KeptAnswer | null {
      return byKey.get(key) ?? null
    }
  }
}
