/** @typedef {ReturnType<typeof createVitalsStore>} VitalsStore */
/** @typedef {{ stepS: number, at: number, seconds: number, body: Uint8Array }} VitalsStep  `at`: seconds since the epoch */

const DAY_S = 24 * 60 * 60

const KEPT_S = Object.freeze([{ stepS: 10, keptS: DAY_S }, { stepS: 60, keptS: 30 * DAY_S }])

/**
 * The vitals table has one row per step, for the cluster and all its slots.
 * @param {import('./open.js').Db} db
 */
export function createVitalsStore (db) {
  // When one master follows another, each has a part of the same step: the longer part is kept.
  const insert = db.prepare(`
    INSERT INTO vitals (step_s, at_s, seconds, body) VALUES (@stepS, @at, @seconds, @body)
    ON CONFLICT (step_s, at_s) DO UPDATE SET seconds = excluded.seconds, body = excluded.body WHERE excluded.seconds >= vitals.seconds`)
  /** @type {import('./sqlite.js').Rows<{ at: number, body: Buffer }>} */
  const range = db.prepare(`
    SELECT at_s AS at, body FROM vitals WHERE step_s = @stepS AND at_s >= @sinceS AND at_s < @untilS ORDER BY at_s LIMIT @limit`)
  const writeAll = db.transaction((/** @type {VitalsStep[]} */ steps) => { for (const step of steps) insert.run(step) })

  return {
    /** Writes all of them, or none. @param {VitalsStep[]} steps */
    write (steps) { writeAll.immediate(steps) },

    /** @param {{ stepS: number, sinceS: number, untilS: number, limit: number }} query @returns {{ at: number, body: Buffer }[]} oldest first */
    read: (query) => range.all(query)
  }
}

/**
 * @param {import('./open.js').Db} db @param {() => number} now wall clock, ms since the epoch
 * @returns {((rows: number) => number)[]} each deletes at most so many rows and returns how many it deleted
 */
export function vitalsRetention (db, now) {
  const deleteSteps = db.prepare(`
    DELETE FROM vitals WHERE step_s = @stepS AND at_s IN (SELECT at_s FROM vitals WHERE step_s = @stepS AND at_s < @before ORDER BY at_s LIMIT @rows)`)
  return KEPT_S.map(({ stepS, keptS }) => (rows) => deleteSteps.run({ stepS, before: Math.floor(now() / 1000) - keptS, rows }).changes)
}
