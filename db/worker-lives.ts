import type { Db, Rows } from './sqlite.ts'

/** Workers of older events have ended, as there are never so many at a time. */
const MAX_ROWS = 4000

type WorkerLife = { worker: number, slot: number, pid: number | null, release: string, startedAt: string }
type Row =
  & Omit<WorkerLife, 'startedAt'>
  & { type: 'worker.forked' | 'worker.exited', atMs: number }

/** Reads from the events which workers have begun and ended. */
export function createWorkerLives (db: Db) {
  const newest: Rows<Row> = db.prepare(`
    SELECT type, worker, slot, pid, "release", at_ms AS atMs FROM events
    WHERE id >= ? AND type IN ('worker.forked', 'worker.exited') ORDER BY id DESC LIMIT ${MAX_ROWS}`)

  /**
   * @param since an event's id; since then no worker's id was used twice
   * @returns `open`: begun and not ended, oldest first
   */
  return function livesSince (since: number): { ended: Set<number>, open: WorkerLife[] } {
    const ended: Set<number> = new Set()
    const open: WorkerLife[] = []
    for (const { type, worker, slot, pid, release, atMs } of newest.all(since)) {
      if (type === 'worker.exited') ended.add(worker)
      else if (!ended.has(worker)) open.unshift({ worker, slot, pid, release, startedAt: new Date(atMs).toISOString() })
    }
    return { ended, open }
  }
}
