import type { Db, Rows } from './sqlite.ts'

/** What a person has written about a group. */
type CrashNote = { id: number, at: string, actor: string, text: string }

export function createCrashNotes (db: Db) {
  const insert = db.prepare(
    'INSERT INTO crash_notes (crash_group, at_ms, actor, text) VALUES (@group, @atMs, @actor, @text)'
  )
  const ofGroup: Rows<Omit<CrashNote, 'at'> & { atMs: number }> = db.prepare(
    'SELECT id, at_ms AS atMs, actor, text FROM crash_notes WHERE crash_group = ? ORDER BY id'
  )
  const remove = db.prepare('DELETE FROM crash_notes WHERE crash_group = ? AND id = ?')

  return {
    /** @returns its id */
    add: (group: number, note: { atMs: number, actor: string, text: string }): number =>
      Number(insert.run({ group, ...note }).lastInsertRowid),

    /** @returns oldest first */
    list: (group: number): CrashNote[] =>
      ofGroup.all(group).map(({ atMs, ...note }) => ({ ...note, at: new Date(atMs).toISOString() })),

    /** Tells whether there was such a note */
    remove: (group: number, id: number): boolean => remove.run(group, id).changes === 1
  }
}
