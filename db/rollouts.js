import { checkKept, decodeCursor, encodeCursor } from './cursor.js'
import { startBudget } from './budget.js'

const CURSOR_KIND = 'r'
const MAX_LIMIT = 100
const MAX_COMPARED = 20
const MAX_SEARCHED = 100
// What any page may read however long it takes, so that on a busy machine a short list does not come in pieces.
const FREE_CHARS = 128 * 1024

/**
 * The newest state of every rollout, steps included, as it came with the `rollout.*` events.
 * @param {import('./open.js').Db} db
 * @param {{ clock: () => number }} parts `clock`: monotonic ms
 */
export function createRollouts (db, { clock }) {
  const upsert = db.prepare(`
    INSERT INTO rollouts (id, kind, state, at_ms, body) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, state = excluded.state, at_ms = excluded.at_ms, body = excluded.body`)
  const unfinished = db.prepare("SELECT body FROM rollouts WHERE state NOT IN ('succeeded', 'failed', 'rolled-back') ORDER BY id").pluck()
  const byId = db.prepare('SELECT body FROM rollouts WHERE id = ?').pluck()
  const spans = db.prepare(`
    SELECT json_extract(body, '$.startedAt') AS startedAt, json_extract(body, '$.finishedAt') AS finishedAt
    FROM (SELECT body FROM rollouts WHERE kind = @kind AND state = 'succeeded' AND id < @before ORDER BY id DESC LIMIT ${MAX_SEARCHED})
    WHERE (json_array_length(body, '$.steps') = 1) = @isOfOneSlot LIMIT ${MAX_COMPARED}`)
  const below = db.prepare('SELECT id, body FROM rollouts WHERE id < ? ORDER BY id DESC LIMIT ?')

  return {
    /** @param {Record<string, any> & { id: number }} rollout @param {number} atMs */
    store (rollout, atMs) {
      upsert.run(rollout.id, String(rollout.kind ?? ''), String(rollout.state ?? ''), atMs, JSON.stringify(rollout))
    },

    /** @param {number} id @returns {import('../server/lifecycle/rollout/record.js').RolloutView | null} */
    find (id) {
      const body = /** @type {string | undefined} */ (byId.get(id))
      return body === undefined ? null : JSON.parse(body)
    },

    /**
     * How long the last ones took that have succeeded.
     * @param {{ kind: string, before: number, isOfOneSlot: boolean }} which `before`: a rollout's id; `isOfOneSlot`: one slot and all of them do not compare
     * @returns {number[]} ms, newest first
     */
    durations: ({ kind, before, isOfOneSlot }) => /** @type {{ startedAt: string, finishedAt: string }[]} */ (spans.all({ kind, before, isOfOneSlot: Number(isOfOneSlot) }))
      .map(({ startedAt, finishedAt }) => Date.parse(finishedAt) - Date.parse(startedAt)).filter((ms) => ms >= 0),

    /** @returns {Record<string, any>[]} those whose master ended before they did, oldest first; never more than a few */
    unfinished: () => unfinished.all().map((body) => JSON.parse(String(body))),

    /**
     * Newest first. Ends early, with a cursor, where they are so large that the time for one call is spent.
     * @param {{ limit?: number, cursor?: string | null }} [query] `limit` 1…100
     * @returns {{ items: import('../server/lifecycle/rollout/record.js').RolloutView[], next: string | null }}
     */
    page ({ limit = 50, cursor } = {}) {
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const wantedBefore = decodeCursor(CURSOR_KIND, cursor)
      checkKept(wantedBefore, () => below.get(wantedBefore, 1))
      const before = Math.min(wantedBefore, Number.MAX_SAFE_INTEGER)
      const budget = startBudget(clock)
      const items = []
      let last = before
      let read = 0
      const isSpent = () => read >= FREE_CHARS && budget.isSpent()
      for (const row of /** @type {Iterable<{ id: number, body: string }>} */ (below.iterate(before, wanted + 1))) {
        if (items.length === wanted || isSpent()) return { items, next: encodeCursor(CURSOR_KIND, last) }
        items.push(JSON.parse(row.body))
        last = row.id
        read += row.body.length
      }
      return { items, next: null }
    }
  }
}
