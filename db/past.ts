import { createCrashGroups } from './crash-groups.ts'
import { createEventPages } from './event-pages.ts'
import { createEventSearch } from './event-search.ts'
import { openSqlite } from './sqlite.ts'
import type { DeckEvent } from '../server/events/stream.ts'

/** What an app that does not run has left. `lines`: its last ones, oldest first; the others: newest first. */
export type Past = ReturnType<typeof readPast> & { lines: string[] }

/**
 * The newest of what an app that does not run has left: nothing is written, and nothing stays open.
 * @param limits how many of each
 * @returns newest first
 * @throws what SQLite says
 */
export function readPast (file: string,
  limits: { events: number, crashes: number }
): { events: DeckEvent[], crashes: ReturnType<ReturnType<typeof createCrashGroups>['page']>['items'] } {
  const db = openSqlite(file, { readonly: true, fileMustExist: true })
  try {
    const { page } = createEventPages(createEventSearch(db), { clock: () => performance.now() })
    return { events: page({ limit: limits.events }).items,
      crashes: createCrashGroups(db).page({ state: 'open', limit: limits.crashes }).items }
  } finally {
    db.close()
  }
}
