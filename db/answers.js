const MAX_KEPT = 1000

/**
 * Keeps answers, since a client may send the same request again. Times are ms since the epoch.
 * @typedef {{ key: string, request: string, answer: string, at: number }} KeptAnswer `key`, `request`: hashes; `answer`: JSON
 * @typedef {ReturnType<typeof createAnswers>} Answers
 */

/** @param {import('./open.js').Db} db */
export function createAnswers (db) {
  const insert = db.prepare('INSERT OR REPLACE INTO answers (key, request, answer, at_ms) VALUES (@key, @request, @answer, @at)')
  /** @type {import('./sqlite.js').Rows<KeptAnswer>} */
  const byKey = db.prepare('SELECT key, request, answer, at_ms AS at FROM answers WHERE key = ?')
  const removeSurplus = db.prepare('DELETE FROM answers WHERE key IN (SELECT key FROM answers ORDER BY at_ms DESC LIMIT -1 OFFSET ?)')
  const removeOld = db.prepare('DELETE FROM answers WHERE at_ms < ?')

  const keep = db.transaction((/** @type {KeptAnswer} */ answer, /** @type {number} */ oldest) => {
    insert.run(answer)
    removeOld.run(oldest)
    removeSurplus.run(MAX_KEPT)
  })

  return {
    /** Removes answers that are older than `oldest`. @param {KeptAnswer} answer @param {{ oldest: number }} options */
    keep (answer, { oldest }) { keep(answer, oldest) },

    /** @param {string} key @returns {KeptAnswer | null} */
    find (key) { return byKey.get(key) ?? null }
  }
}
