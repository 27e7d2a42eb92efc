import { checkKept, decodeCursor, encodeCursor } from './cursor.ts'
import { startBudget } from './budget.ts'
import type { RolloutView } from '../server/lifecycle/rollout/record.ts'
import type { Db, Rows } from './sqlite.ts'

const CURSOR_KIND = 'r'
const MAX_LIMIT = 100
const MAX_COMPARED = 20
const MAX_SEARCHED = 100
// Every page may read so much, however long it takes: on a busy machine a short list should not come in pieces.
const FREE_CHARS = 128 * 1024

/**
 * Keeps the newest state of every rollout, with its steps, from the `rollout.*` events. `clock`: monotonic ms.
 */
export function createRollouts (db: Db, { clock }: { clock: () => number }) {
  const upsert = db.prepare(`
    INSERT INTO rollouts (id, kind, state, at_ms, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, state = excluded.state, at_ms = excluded.at_ms, body = excluded.body`)
  const unfinished: Rows<{ body: string }> = db.prepare(
    'SELECT body FROM rollouts WHERE state NOT IN (\'succeeded\', \'failed\', \'rolled-back\') ORDER BY id'
  )
  const byId: Rows<{ body: string }> = db.prepare('SELECT body FROM rollouts WHERE id = ?')
  const spans: Rows<{ startedAt: string, finishedAt: string }> = db.prepare(`
    SELECT json_extract(body, '$.startedAt') AS startedAt, json_extract(body, '$.finishedAt') AS finishedAt
    FROM (SELECT body FROM rollouts WHERE kind = @kind AND state = 'succeeded' AND id < @before ORDER BY id DESC LIMIT ${MAX_SEARCHED})
    WHERE (json_array_length(body, '$.steps') = 1) = @isOfOneSlot LIMIT ${MAX_COMPARED}`)
  const lastEnded: Rows<{ body: string }> = db.prepare(`
    SELECT body FROM (SELECT id, body FROM rollouts WHERE kind = @kind AND state IN ('succeeded', 'failed', 'rolled-back') ORDER BY id DESC LIMIT ${MAX_SEARCHED})
    WHERE json_array_length(body, '$.steps') = @slots ORDER BY id DESC LIMIT @limit`)
  const below: Rows<{ id: number, body: string }> = db.prepare(
    'SELECT id, body FROM rollouts WHERE id < ? ORDER BY id DESC LIMIT ?'
  )

  return {
    store (rollout: { id: number, kind?: string, state?: string }, atMs: number) {
      upsert.run(rollout.id, String(rollout.kind ?? ''), String(rollout.state ?? ''), atMs, JSON.stringify(rollout))
    },

    find (id: number): RolloutView | null {
      const row = byId.get(id)
      return row === undefined ? null : JSON.parse(row.body)
    },

    /**
     * How long the last successful rollouts took. One slot and all slots do not compare. `before`: a rollout's id.
     * @returns ms, newest first
     */
    durations ({ kind, before, isOfOneSlot }: { kind: string, before: number, isOfOneSlot: boolean }): number[] {
      const times = spans.all({ kind, before, isOfOneSlot: Number(isOfOneSlot) })
      return times.map(({ startedAt, finishedAt }) => Date.parse(finishedAt) - Date.parse(startedAt)).filter((ms) =>
        ms >= 0
      )
    },

    /** `slots`: how many they replaced @returns that have ended, newest first */
    lastOf: (which: { kind: string, slots: number, limit: number }): RolloutView[] =>
      lastEnded.all(which).map(({ body }) => JSON.parse(body)),

    /** @returns those whose master ended before they did, oldest first; never more than a few */
    unfinished: (): RolloutView[] => unfinished.all().map(({ body }) => JSON.parse(body)),

    /**
     * Newest first. If the rollouts are so large that the time of one call is spent, it returns fewer and a cursor.
     * `query`: `limit` 1…100.
     */
    page (
      { limit = 50, cursor }: { limit?: number, cursor?: string | null } = {}
    ): { items: RolloutView[], next: string | null } {
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const wantedBefore = decodeCursor(CURSOR_KIND, cursor)
      checkKept(wantedBefore, () => below.get(wantedBefore, 1))
      const before = Math.min(wantedBefore, Number.MAX_SAFE_INTEGER)
      const budget = startBudget(clock)
      const items = []
      let last = before
      let read = 0
      const isSpent = () => read >= FREE_CHARS && budget.isSpent()
      for (const row of below.iterate(before, wanted + 1)) {
        if (items.length === wanted || isSpent()) return { items, next: encodeCursor(CURSOR_KIND, last) }
        items.push(JSON.parse(row.body))
        last = row.id
        read += row.body.length
      }
      return { items, next: null }
    }
  }
}
