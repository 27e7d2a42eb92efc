/**
 * Keeps the alerts that somebody has added, with their secrets: the file of the database is readable for its user alone. Times
 * are ms since the epoch.
 * @typedef {object} StoredAlert
 * @property {number} id
 * @property {Record<string, any>} settings  see server/config/alert.js
 * @property {number | null} pausedAt
 * @property {number} createdAt
 * @property {string} createdBy
 * @typedef {ReturnType<typeof createAlertRows>} AlertRows
 */

/** @param {import('./open.js').Db} db */
export function createAlertRows (db) {
  const insert = db.prepare('INSERT INTO alerts (settings, paused_ms, created_ms, created_by) VALUES (?, NULL, ?, ?)')
  const update = db.prepare('UPDATE alerts SET settings = ?, paused_ms = ? WHERE id = ?')
  const remove = db.prepare('DELETE FROM alerts WHERE id = ?')
  /** @type {import('./sqlite.js').Rows<Omit<StoredAlert, 'settings'> & { settings: string }>} */
  const all = db.prepare('SELECT id, settings, paused_ms AS pausedAt, created_ms AS createdAt, created_by AS createdBy FROM alerts ORDER BY id')

  return {
    /** @param {Pick<StoredAlert, 'settings' | 'createdAt' | 'createdBy'>} alert @returns {number} its id */
    add: ({ settings, createdAt, createdBy }) => Number(insert.run(JSON.stringify(settings), createdAt, createdBy).lastInsertRowid),

    /** @param {Pick<StoredAlert, 'id' | 'settings' | 'pausedAt'>} alert */
    change ({ id, settings, pausedAt }) { update.run(JSON.stringify(settings), pausedAt, id) },

    /** @param {number} id */
    remove (id) { remove.run(id) },

    /** @returns {StoredAlert[]} oldest first */
    list: () => all.all().map((row) => ({ ...row, settings: JSON.parse(row.settings) }))
  }
}
