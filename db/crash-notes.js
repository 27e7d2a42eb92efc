/** What a person has written about a group. @typedef {{ id: number, at: string, actor: string, text: string }} CrashNote */

/** @param {import('./open.js').Db} db */
export function createCrashNotes (db) {
  const insert = db.prepare('INSERT INTO crash_notes (crash_group, at_ms, actor, text) VALUES (@group, @atMs, @actor, @text)')
  /** @type {import('./sqlite.js').Rows<Omit<CrashNote, 'at'> & { atMs: number }>} */
  const ofGroup = db.prepare('SELECT id, at_ms AS atMs, actor, text FROM crash_notes WHERE crash_group = ? ORDER BY id')
  const remove = db.prepare('DELETE FROM crash_notes WHERE crash_group = ? AND id = ?')

  return {
    /** @param {number} group @param {{ atMs: number, actor: string, text: string }} note @returns {number} its id */
    add: (group, note) => Number(insert.run({ group, ...note }).lastInsertRowid),

    /** @param {number} group @returns {CrashNote[]} oldest first */
    list: (group) => ofGroup.all(group).map(({ atMs, ...note }) => ({ ...note, at: new Date(atMs).toISOString() })),

    /** @param {number} group @param {number} id @returns {boolean} whether there was such a note */
    remove: (group, id) => remove.run(group, id).changes === 1
  }
}
