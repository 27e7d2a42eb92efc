import type { Db, Rows } from './sqlite.ts'
import type { Crash, Frame } from '../server/api/shapes.ts'

/** So many samples of a group are kept beside the first and the newest. */
export const RANDOM_SAMPLES = 10
const FIRST = 0
const NEWEST = 1
const RANDOM = 2
/** The rowids of the text index have room for so many places of a group. */
const PLACES = 256

// Crash texts come from the app and can have any length.
const MAX_BODY_CHARS = 200_000
const MAX_TEXT_CHARS = 8000

/** One crash as plain data. */
export type CrashRecord = Omit<Crash, 'id' | 'cause'> & {
  /** as in the history */
  cause: string,
  /** of its last minute */
  vitals: unknown[]
}
export type { Frame }
/** `isCut`: it was too long, and has no lists */
export type Sample =
  & CrashRecord
  & { id: number, isCut?: true }
/** without its long parts */
type BriefSample = ReturnType<typeof briefOf>

/** Keeps samples of each group: its first crash, its newest, and a few of the others, chosen at random. */
export function createCrashes (db: Db, { random }: { random: () => number }) {
  const insert = db.prepare(
    'INSERT INTO crashes (crash_group, place, at_ms, bytes, body) VALUES (@group, @place, @atMs, @bytes, @body)'
  )
  const move = db.prepare('UPDATE crashes SET place = @to WHERE crash_group = @group AND place = @from')
  const drop = db.prepare('DELETE FROM crashes WHERE crash_group = ? AND place = ?')
  const byId: Rows<Body> = db.prepare('SELECT id, body FROM crashes WHERE id = ? AND crash_group = ?')
  const ofGroup: Rows<Body> = db.prepare('SELECT id, body FROM crashes WHERE crash_group = ? ORDER BY id DESC')
  const newestOf: Rows<Body> = db.prepare('SELECT id, body FROM crashes WHERE crash_group = ? AND place = ?')
  const totalBytes = db.prepare('SELECT coalesce(sum(bytes), 0) FROM crashes').pluck()
  const placesOf: Rows<{ place: number, bytes: number }> = db.prepare(
    'SELECT place, bytes FROM crashes WHERE crash_group = ? AND place >= ?'
  )

  // FTS5 does not take a float as a rowid, and all numbers of JavaScript arrive as floats.
  const insertText = db.prepare(
    'INSERT INTO crash_texts (rowid, message, stack) VALUES (CAST(@row AS INTEGER), @message, @stack)'
  )
  const moveText = db.prepare(
    'UPDATE crash_texts SET rowid = CAST(@to AS INTEGER) WHERE rowid = CAST(@from AS INTEGER)'
  )
  const dropText = db.prepare('DELETE FROM crash_texts WHERE rowid = CAST(? AS INTEGER)')
  const dropTexts = db.prepare('DELETE FROM crash_texts WHERE rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)')
  const search: Rows<{ id: number }> = db.prepare(
    `SELECT DISTINCT rowid / ${PLACES} AS id FROM crash_texts WHERE crash_texts MATCH ?`
  )
  // It is summed once, not with every crash of a storm.
  let bytesKept = Number(totalBytes.get())

  return {
    get bytesKept () {
      return bytesKept
    },

    /** `count`: how many crashes the group has had, this one included. Returns its id. */
    store (group: number, count: number, record: CrashRecord): number {
      if (count > 2) makeRoom(group, count)
      const place = count === 1 ? FIRST : NEWEST
      const body = boundRecord(record)
      const bytes = Buffer.byteLength(body)
      const { lastInsertRowid } = insert.run({ group, place, atMs: Date.parse(record.at), bytes, body })
      insertText.run({ row: rowOf(group, place), message: clipText(record.errorMessage),
        stack: clipText(record.stack) })
      bytesKept += bytes
      return Number(lastInsertRowid)
    },

    find: (group: number, id: number): Sample | null => toSample(byId.get(id, group)),

    newest: (group: number): Sample | null => toSample(newestOf.get(group, NEWEST) ?? newestOf.get(group, FIRST)),

    /** @returns newest first */
    list: (group: number): BriefSample[] =>
      ofGroup.all(group).map(({ id, body }) => briefOf({ id, ...JSON.parse(body) })),

    /** `expression`: of FTS5, see toExpression. Returns ids of groups. */
    search: (expression: string): number[] => search.all(expression).map(({ id }) => id),

    /** Forgets the random samples. */
    thin (group: number) {
      for (const { place, bytes } of placesOf.all(group, RANDOM)) removeCrash(group, place, bytes)
    },

    /** Forgets all samples. */
    forget (group: number) {
      for (const { bytes } of placesOf.all(group, FIRST)) bytesKept -= bytes
      dropTexts.run(group * PLACES, group * PLACES + PLACES - 1)
    }
  }

  /** Reservoir sampling: the newest so far becomes one of the random samples, or is dropped. */
  function makeRoom (group: number, count: number) {
    const nth = count - 3
    const chosen = nth < RANDOM_SAMPLES ? nth : Math.floor(random() * (nth + 1))
    const place = chosen < RANDOM_SAMPLES ? RANDOM + chosen : NEWEST
    const old = placesOf.all(group, NEWEST).find((sample) => sample.place === place)
    if (old) removeCrash(group, place, old.bytes)
    if (place === NEWEST) return
    move.run({ group, from: NEWEST, to: place })
    moveText.run({ from: rowOf(group, NEWEST), to: rowOf(group, place) })
  }

  function removeCrash (group: number, place: number, bytes: number) {
    drop.run(group, place)
    dropText.run(rowOf(group, place))
    bytesKept -= bytes
  }
}

/**
 * Turns what somebody types into an expression of FTS5 that finds all words; the last one may be unfinished. `q`: any
 * text. Returns null: there is no word in it.
 */
export function toExpression (q: string): string | null {
  const words = q.match(/[\p{L}\p{N}_$]+/gu) ?? []
  if (words.length === 0) return null
  return words.map((word, index) => `"${word}"${index === words.length - 1 ? '*' : ''}`).join(' ')
}

function rowOf (group: number, place: number) {
  return group * PLACES + place
}

/** @returns JSON of bounded length */
function boundRecord (record: CrashRecord): string {
  const whole = JSON.stringify(record)
  if (whole.length <= MAX_BODY_CHARS) return whole
  return JSON.stringify({ ...record, stderr: [], vitals: [], requests: [], causes: [], isCut: true })
}

/** `body`: JSON of a CrashRecord */
type Body = { id: number, body: string }

function toSample (row: Body | undefined): Sample | null {
  return row === undefined ? null : { id: row.id, ...JSON.parse(row.body) }
}

function briefOf (
  { id, at, cause, code, signal, slot, worker, pid, release, rollout, uptimeMs, errorName, errorMessage }: Sample
) {
  return { id, at, cause, code, signal, slot, worker, pid, release, rollout, uptimeMs, errorName, errorMessage }
}

function clipText (text: string | null) {
  return (text ?? '').slice(0, MAX_TEXT_CHARS)
}
