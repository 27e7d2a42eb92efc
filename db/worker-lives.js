/** Workers of older events have ended, as there are never so many at a time. */
const MAX_ROWS = 4000

/** @typedef {{ worker: number, slot: number, pid: number | null, release: string, startedAt: string }} WorkerLife */
/** @typedef {Omit<WorkerLife, 'startedAt'> & { type: 'worker.forked' | 'worker.exited', atMs: number }} Row */

/**
 * Reads from the events which workers have begun and ended.
 * @param {import('./open.js').Db} db
 */
export function createWorkerLives (db) {
  /** @type {import('./sqlite.js').Rows<Row>} */
  const newest = db.prepare(`
    SELECT type, worker, slot, pid, "release", at_ms AS atMs FROM events
    WHERE id >= ? AND type IN ('worker.forked', 'worker.exited') ORDER BY id DESC LIMIT ${MAX_ROWS}`)

  /**
   * @param {number} since an event's id; since then no worker's id was used twice
   * @returns {{ ended: Set<number>, open: WorkerLife[] }} `open`: begun and not ended, oldest first
   */
  return function livesSince (since) {
    /** @type {Set<number>} */
    const ended = new Set()
    /** @type {WorkerLife[]} */
    const open = []
    for (const { type, worker, slot, pid, release, atMs } of newest.all(since)) {
      if (type === 'worker.exited') ended.add(worker)
      else if (!ended.has(worker)) open.unshift({ worker, slot, pid, release, startedAt: new Date(atMs).toISOString() })
    }
    return { ended, open }
  }
}
