/** Far more than live at a time; what is older has ended. */
const MAX_ROWS = 4000

/** @typedef {{ worker: number, slot: number, pid: number | null, release: string, startedAt: string }} WorkerLife */

/**
 * Which workers have begun and ended, as far as the events tell.
 * @param {import('./open.js').Db} db
 */
export function createWorkerLives (db) {
  const newest = db.prepare(`
    SELECT type, worker, slot, pid, "release", at_ms FROM events
    WHERE id >= ? AND type IN ('worker.forked', 'worker.exited') ORDER BY id DESC LIMIT ${MAX_ROWS}`)

  /**
   * @param {number} since the event from which on no worker's id was used twice
   * @returns {{ ended: Set<number>, open: WorkerLife[] }} `open`: begun and not ended, oldest first
   */
  return function livesSince (since) {
    /** @type {Set<number>} */
    const ended = new Set()
    /** @type {WorkerLife[]} */
    const open = []
    for (const { type, worker, slot, pid, release, at_ms: atMs } of /** @type {any[]} */ (newest.all(since))) {
      if (type === 'worker.exited') ended.add(worker)
      else if (!ended.has(worker)) open.unshift({ worker, slot, pid, release, startedAt: new Date(atMs).toISOString() })
    }
    return { ended, open }
  }
}
