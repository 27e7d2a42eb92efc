import type { DeckEvent } from '../server/events/stream.ts'
import type { Db, Rows } from './sqlite.ts'

/** So many ids share one row of `spans`. */
export const SPAN_SIZE = 1024

/** The columns of an event, in the order of its fields. */
export const COLUMNS =
  'id, at_ms, type, cause, slot, worker, pid, "release", rollout, actor, code, signal, uptime_ms, message, detail'
export type EventRow =
  & Omit<DeckEvent, 'at' | 'uptimeMs' | 'detail'>
  & { at_ms: number, uptime_ms: number | null, detail: string | null }

// Crash texts come from the app and can have any length.
const MAX_NAME_CHARS = 200
const MAX_MESSAGE_CHARS = 2000
const MAX_DETAIL_STRING_CHARS = 16_000
const MAX_DETAIL_CHARS = 64_000

export function createEvents (db: Db) {
  // Writing the same event again is no error: the recorder repeats a write whose outcome it does not know.
  const insert = db.prepare(`
    INSERT INTO events (${COLUMNS})
    VALUES (@id, @atMs, @type, @cause, @slot, @worker, @pid, @release, @rollout, @actor, @code, @signal, @uptimeMs, @message, @detail)
    ON CONFLICT (id) DO NOTHING`)
  const widenSpan = db.prepare(`
    INSERT INTO spans (span, oldest_ms, newest_ms) VALUES (@span, @atMs, @atMs)
    ON CONFLICT (span) DO UPDATE SET oldest_ms = min(oldest_ms, @atMs), newest_ms = max(newest_ms, @atMs)`)
  const countInSpan = db.prepare(`
    INSERT INTO span_counts (span, type, cause, count) VALUES (@span, @type, @cause, 1)
    ON CONFLICT (span, type, cause) DO UPDATE SET count = count + 1`)
  const byId: Rows<EventRow> = db.prepare(`SELECT ${COLUMNS} FROM events WHERE id = ?`)

  return { insert (event: DeckEvent) {
    const row = toRow(event)
    const span = Math.floor(row.id / SPAN_SIZE)
    if (insert.run(row).changes === 0) return
    widenSpan.run({ span, atMs: row.atMs })
    countInSpan.run({ span, type: row.type, cause: row.cause ?? '' })
  }, find (id: number): DeckEvent | null {
    const row = byId.get(id)
    return row === undefined ? null : toEvent(row)
  } }
}

export function toEvent ({ at_ms: atMs, uptime_ms: uptimeMs, detail, message, ...rest }: EventRow): DeckEvent {
  const { id, type, cause, slot, worker, pid, release, rollout, actor, code, signal } = rest
  return { id, at: new Date(atMs).toISOString(), type, cause, slot, worker, pid, release, rollout, actor, code, signal,
    uptimeMs, message, detail: detail === null ? null : JSON.parse(detail) }
}

function toRow (event: DeckEvent) {
  return { id: event.id, atMs: Date.parse(event.at), type: textOf(event.type, MAX_NAME_CHARS) ?? '',
    cause: textOf(event.cause, MAX_NAME_CHARS), slot: integerOf(event.slot), worker: integerOf(event.worker),
    pid: integerOf(event.pid), release: textOf(event.release, MAX_NAME_CHARS), rollout: integerOf(event.rollout),
    actor: textOf(event.actor, MAX_NAME_CHARS), code: integerOf(event.code),
    signal: textOf(event.signal, MAX_NAME_CHARS), uptimeMs: integerOf(event.uptimeMs),
    message: textOf(event.message, MAX_MESSAGE_CHARS), detail: jsonOf(withoutStory(event)) }
}

/**
 * A rollout's event carries the whole rollout. What grows with the rollout is stored once, with the rollout itself, and
 * not again with each of its events.
 */
function withoutStory ({ type, detail }: DeckEvent) {
  if (!type.startsWith('rollout.') || !detail) return detail
  const { timeline, comparisons, ...told } = detail
  if (type !== 'rollout.step') return told
  const { steps, ...rest } = told
  return rest
}

function textOf (value: unknown, maxChars: number) {
  if (value === null || value === undefined) return null
  const string = String(value)
  return string.length > maxChars ? string.slice(0, maxChars - 1) + '…' : string
}

function integerOf (value: unknown) {
  return typeof value === 'number' && Number.isSafeInteger(Math.round(value)) ? Math.round(value) : null
}

/** @returns valid JSON of bounded length, whatever the app has put into it */
function jsonOf (value: unknown): string | null {
  if (value === null || value === undefined) return null
  try {
    const whole = JSON.stringify(value)
    if (whole.length <= MAX_DETAIL_CHARS) return whole
    const cut = JSON.stringify(value, (_key, part) =>
      typeof part === 'string' ? textOf(part, MAX_DETAIL_STRING_CHARS) : part)
    return cut.length <= MAX_DETAIL_CHARS ? cut : JSON.stringify({ truncated: true, chars: whole.length })
  } catch (error) {
    // A cycle, a BigInt or a toJSON that throws is no fault of the database.
    return JSON.stringify({ unserializable: String(error) })
  }
}
