import type { Db, Rows } from './sqlite.ts'

export type VitalsStore = ReturnType<typeof createVitalsStore>
/** `at`: seconds since the epoch */
type VitalsStep = { stepS: number, at: number, seconds: number, body: Uint8Array }

const DAY_S = 24 * 60 * 60

const KEPT_S = Object.freeze([{ stepS: 10, keptS: DAY_S }, { stepS: 60, keptS: 30 * DAY_S }])

/** The vitals table has one row per step, for the cluster and all its slots. */
export function createVitalsStore (db: Db) {
  // When one master follows another, each has a part of the same step: the longer part is kept.
  const insert = db.prepare(`
    INSERT INTO vitals (step_s, at_s, seconds, body) VALUES (@stepS, @at, @seconds, @body)
    ON CONFLICT (step_s, at_s) DO UPDATE SET seconds = excluded.seconds, body = excluded.body WHERE excluded.seconds >= vitals.seconds`)
  const range: Rows<{ at: number, body: Buffer }> = db.prepare(`
    SELECT at_s AS at, body FROM vitals WHERE step_s = @stepS AND at_s >= @sinceS AND at_s < @untilS ORDER BY at_s LIMIT @limit`)
  const writeAll = db.transaction((steps: VitalsStep[]) => {
    for (const step of steps) insert.run(step)
  })

  return {
    /** Writes all of them, or none. */
    write (steps: VitalsStep[]) {
      writeAll.immediate(steps)
    },

    /** @returns oldest first */
    read: (query: { stepS: number, sinceS: number, untilS: number, limit: number }): { at: number, body: Buffer }[] =>
      range.all(query)
  }
}

/** `now`: wall clock, ms since the epoch @returns each deletes at most so many rows and returns how many it deleted */
export function vitalsRetention (db: Db, now: () => number): ((rows: number) => number)[] {
  const deleteSteps = db.prepare(`
    DELETE FROM vitals WHERE step_s = @stepS AND at_s IN (SELECT at_s FROM vitals WHERE step_s = @stepS AND at_s < @before ORDER BY at_s LIMIT @rows)`)
  return KEPT_S.map(({ stepS, keptS }) => (rows) =>
    deleteSteps.run({ stepS, before: Math.floor(now() / 1000) - keptS, rows }).changes
  )
}
