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

/**
 * One crash as plain data.
 * @typedef {object} CrashRecord
 * @property {string} at
 * @property {string} cause  as in the history
 * @property {'exception' | 'unhandled-rejection' | 'panic' | 'exit-code' | 'signal' | 'heap-out-of-memory' | 'kernel-out-of-memory' | 'hung' | 'boot-failure' | 'not-started'} kind
 * @property {number | null} code
 * @property {string | null} signal
 * @property {number | null} slot
 * @property {number | null} worker
 * @property {number | null} pid
 * @property {string | null} release
 * @property {number | null} rollout
 * @property {number | null} uptimeMs  since its fork
 * @property {string | null} nodeVersion  null: it was no Node program
 * @property {string | null} errorName
 * @property {string | null} errorMessage
 * @property {string | null} stack  as the process had it
 * @property {Frame[]} frames  of that stack, innermost first, with source maps applied
 * @property {{ depth: number, errorName: string, errorMessage: string, stack: string | null }[]} causes
 * @property {{ method: string, path: string, ageMs: number }[]} requests  in flight at its end
 * @property {Record<string, number> | null} memory  in bytes, at its end
 * @property {string[]} stderr  its last lines
 * @property {unknown[]} vitals  of its last minute
 *
 * One line of a stack. `file`: an absolute path, relative to the release if it is below it, or `node:…`; `isInApp`: it is neither of
 * Node or another language, nor of a package, nor of clusterdeck.
 * @typedef {{ function: string | null, file: string | null, line: number | null, column: number | null, isInApp: boolean }} Frame
 * @typedef {CrashRecord & { id: number, isCut?: true }} Sample  `isCut`: it was too long, and has no lists
 * @typedef {ReturnType<typeof briefOf>} BriefSample  without its long parts
 */

/**
 * Keeps samples of each group: its first crash, its newest, and a few of the others, chosen at random.
 * @param {import('./open.js').Db} db
 * @param {{ random: () => number }} parts
 */
export function createCrashes (db, { random }) {
  const insert = db.prepare('INSERT INTO crashes (crash_group, place, at_ms, bytes, body) VALUES (@group, @place, @atMs, @bytes, @body)')
  const move = db.prepare('UPDATE crashes SET place = @to WHERE crash_group = @group AND place = @from')
  const drop = db.prepare('DELETE FROM crashes WHERE crash_group = ? AND place = ?')
  /** @type {import('./sqlite.js').Rows<Body>} */
  const byId = db.prepare('SELECT id, body FROM crashes WHERE id = ? AND crash_group = ?')
  /** @type {import('./sqlite.js').Rows<Body>} */
  const ofGroup = db.prepare('SELECT id, body FROM crashes WHERE crash_group = ? ORDER BY id DESC')
  /** @type {import('./sqlite.js').Rows<Body>} */
  const newestOf = db.prepare('SELECT id, body FROM crashes WHERE crash_group = ? AND place = ?')
  const totalBytes = db.prepare('SELECT coalesce(sum(bytes), 0) FROM crashes').pluck()
  /** @type {import('./sqlite.js').Rows<{ place: number, bytes: number }>} */
  const placesOf = db.prepare('SELECT place, bytes FROM crashes WHERE crash_group = ? AND place >= ?')

  // FTS5 does not take a float as a rowid, and all numbers of JavaScript arrive as floats.
  const insertText = db.prepare('INSERT INTO crash_texts (rowid, message, stack) VALUES (CAST(@row AS INTEGER), @message, @stack)')
  const moveText = db.prepare('UPDATE crash_texts SET rowid = CAST(@to AS INTEGER) WHERE rowid = CAST(@from AS INTEGER)')
  const dropText = db.prepare('DELETE FROM crash_texts WHERE rowid = CAST(? AS INTEGER)')
  const dropTexts = db.prepare('DELETE FROM crash_texts WHERE rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)')
  /** @type {import('./sqlite.js').Rows<{ id: number }>} */
  const search = db.prepare(`SELECT DISTINCT rowid / ${PLACES} AS id FROM crash_texts WHERE crash_texts MATCH ?`)
  // It is summed once, not with every crash of a storm.
  let bytesKept = Number(totalBytes.get())

  return {
    get bytesKept () { return bytesKept },

    /**
     * @param {number} group @param {number} count how many crashes the group has had, this one included
     * @param {CrashRecord} record
     * @returns {number} its id
     */
    store (group, count, record) {
      if (count > 2) makeRoom(group, count)
      const place = count === 1 ? FIRST : NEWEST
      const body = boundRecord(record)
      const bytes = Buffer.byteLength(body)
      const { lastInsertRowid } = insert.run({ group, place, atMs: Date.parse(record.at), bytes, body })
      insertText.run({ row: rowOf(group, place), message: clipText(record.errorMessage), stack: clipText(record.stack) })
      bytesKept += bytes
      return Number(lastInsertRowid)
    },

    /** @param {number} group @param {number} id @returns {Sample | null} */
    find: (group, id) => toSample(byId.get(id, group)),

    /** @param {number} group @returns {Sample | null} */
    newest: (group) => toSample(newestOf.get(group, NEWEST) ?? newestOf.get(group, FIRST)),

    /** @param {number} group @returns {BriefSample[]} newest first */
    list: (group) => ofGroup.all(group).map(({ id, body }) => briefOf({ id, ...JSON.parse(body) })),

    /** @param {string} expression of FTS5, see toExpression @returns {number[]} ids of groups */
    search: (expression) => search.all(expression).map(({ id }) => id),

    /** Forgets the random samples. @param {number} group */
    thin (group) { for (const { place, bytes } of placesOf.all(group, RANDOM)) removeCrash(group, place, bytes) },

    /** Forgets all samples. @param {number} group */
    forget (group) {
      for (const { bytes } of placesOf.all(group, FIRST)) bytesKept -= bytes
      dropTexts.run(group * PLACES, group * PLACES + PLACES - 1)
    }
  }

  /** Reservoir sampling: the newest so far becomes one of the random samples, or is dropped. @param {number} group @param {number} count */
  function makeRoom (group, count) {
    const nth = count - 3
    const chosen = nth < RANDOM_SAMPLES ? nth : Math.floor(random() * (nth + 1))
    const place = chosen < RANDOM_SAMPLES ? RANDOM + chosen : NEWEST
    const old = placesOf.all(group, NEWEST).find((sample) => sample.place === place)
    if (old) removeCrash(group, place, old.bytes)
    if (place === NEWEST) return
    move.run({ group, from: NEWEST, to: place })
    moveText.run({ from: rowOf(group, NEWEST), to: rowOf(group, place) })
  }

  /** @param {number} group @param {number} place @param {number} bytes */
  function removeCrash (group, place, bytes) {
    drop.run(group, place)
    dropText.run(rowOf(group, place))
    bytesKept -= bytes
  }
}

/**
 * Turns what somebody types into an expression of FTS5 that finds all words; the last one may be unfinished.
 * @param {string} q any text
 * @returns {string | null} null: there is no word in it
 */
export function toExpression (q) {
  const words = q.match(/[\p{L}\p{N}_$]+/gu) ?? []
  if (words.length === 0) return null
  return words.map((word, index) => `"${word}"${index === words.length - 1 ? '*' : ''}`).join(' ')
}

/** @param {number} group @param {number} place */
function rowOf (group, place) {
  return group * PLACES + place
}

/** @param {CrashRecord} record @returns {string} JSON of bounded length */
function boundRecord (record) {
  const whole = JSON.stringify(record)
  if (whole.length <= MAX_BODY_CHARS) return whole
  return JSON.stringify({ ...record, stderr: [], vitals: [], requests: [], causes: [], isCut: true })
}

/** @typedef {{ id: number, body: string }} Body  `body`: JSON of a CrashRecord */

/** @param {Body | undefined} row @returns {Sample | null} */
function toSample (row) {
  return row === undefined ? null : { id: row.id, ...JSON.parse(row.body) }
}

/** @param {Sample} sample */
function briefOf ({ id, at, cause, code, signal, slot, worker, pid, release, rollout, uptimeMs, errorName, errorMessage }) {
  return { id, at, cause, code, signal, slot, worker, pid, release, rollout, uptimeMs, errorName, errorMessage }
}

/** @param {string | null} text */
function clipText (text) {
  return (text ?? '').slice(0, MAX_TEXT_CHARS)
}
