import { openSqlite, type Db, type Rows } from './sqlite.ts'

/**
 * Keeps the alerts that somebody has added, with their secrets: the file of the database is readable for its user
 * alone. Times are ms since the epoch.
 */
type StoredAlert = {
  id: number,
  /** see server/config/alert.ts */
  settings: Record<string, unknown>,
  pausedAt: number | null,
  createdAt: number,
  createdBy: string
}
export type AlertRows = ReturnType<typeof createAlertRows>

export function createAlertRows (db: Db) {
  const insert = db.prepare('INSERT INTO alerts (settings, paused_ms, created_ms, created_by) VALUES (?, NULL, ?, ?)')
  const update = db.prepare('UPDATE alerts SET settings = ?, paused_ms = ? WHERE id = ?')
  const remove = db.prepare('DELETE FROM alerts WHERE id = ?')
  const all: Rows<Omit<StoredAlert, 'settings'> & { settings: string }> = db.prepare(
    'SELECT id, settings, paused_ms AS pausedAt, created_ms AS createdAt, created_by AS createdBy FROM alerts ORDER BY id'
  )

  return {
    /** @returns its id */
    add: ({ settings, createdAt, createdBy }: Pick<StoredAlert, 'settings' | 'createdAt' | 'createdBy'>): number =>
      Number(insert.run(JSON.stringify(settings), createdAt, createdBy).lastInsertRowid),

    change ({ id, settings, pausedAt }: Pick<StoredAlert, 'id' | 'settings' | 'pausedAt'>) {
      update.run(JSON.stringify(settings), pausedAt, id)
    },

    remove (id: number) {
      remove.run(id)
    },

    /** @returns oldest first */
    list: (): StoredAlert[] => all.all().map((row) => ({ ...row, settings: JSON.parse(row.settings) }))
  }
}

/** Reads those of a database that is not open here, and may be another process's. @throws what SQLite says */
export function readAlerts (file: string): StoredAlert[] {
  const db = openSqlite(file, { readonly: true, timeout: 5 })
  try {
    return createAlertRows(db).list()
  } finally {
    db.close()
  }
}
