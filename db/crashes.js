/** How many samples of one group are kept beside the first and the newest. */
export const RANDOM_SAMPLES = 10
const FIRST = 0
const NEWEST = 1
const RANDOM = 2
/** Places of one group in the rowids of the text index. */
const PLACES = 256

// Crash text comes from the app. These keep one sample, and with it one answer, readable in time.
const MAX_BODY_CHARS = 200_000
const MAX_TEXT_CHARS = 8000

/** @typedef {Record<string, any> & { at: string, errorMessage: string | null, stack: string | null }} CrashRecord  plain data, see server/crashes/record.js */

/**
 * The samples of every group: its first crash, its newest, and of those between each with the same chance of being kept.
 * @param {import('./open.js').Db} db
 * @param {{ random: () => number }} parts
 */
export function createCrashes (db, { random }) {
  const insert = db.prepare('INSERT INTO crashes (crash_group, place, at_ms, bytes, body) VALUES (@group, @place, @atMs, @bytes, @body)')
  const move = db.prepare('UPDATE crashes SET place = @to WHERE crash_group = @group AND place = @from')
  const drop = db.prepare('DELETE FROM crashes WHERE crash_group = ? AND place = ?')
  const byId = db.prepare('SELECT id, crash_group, body FROM crashes WHERE id = ?')
  const ofGroup = db.prepare('SELECT id, body FROM crashes WHERE crash_group = ? ORDER BY id DESC')
  const newestOf = db.prepare('SELECT id, body FROM crashes WHERE crash_group = ? AND place = ?')
  const totalBytes = db.prepare('SELECT coalesce(sum(bytes), 0) FROM crashes').pluck()
  const placesOf = db.prepare('SELECT place, bytes FROM crashes WHERE crash_group = ? AND place >= ?')

  // FTS5 takes no number as a rowid that came as a float, as all numbers of JavaScript do.
  const insertText = db.prepare('INSERT INTO crash_texts (rowid, message, stack) VALUES (CAST(@row AS INTEGER), @message, @stack)')
  const moveText = db.prepare('UPDATE crash_texts SET rowid = CAST(@to AS INTEGER) WHERE rowid = CAST(@from AS INTEGER)')
  const dropText = db.prepare('DELETE FROM crash_texts WHERE rowid = CAST(? AS INTEGER)')
  const dropTexts = db.prepare('DELETE FROM crash_texts WHERE rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)')
  const search = db.prepare(`SELECT DISTINCT rowid / ${PLACES} FROM crash_texts WHERE crash_texts MATCH ?`).pluck()
  // Summed once: a storm must not sum it with every crash.
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

    /** @param {number} group @param {number} id @returns {Record<string, any> | null} */
    find (group, id) {
      const row = /** @type {any} */ (byId.get(id))
      return row === undefined || row.crash_group !== group ? null : { id, ...JSON.parse(row.body) }
    },

    /** @param {number} group @returns {Record<string, any> | null} */
    newest (group) {
      const row = /** @type {any} */ (newestOf.get(group, NEWEST) ?? newestOf.get(group, FIRST))
      return row === undefined ? null : { id: row.id, ...JSON.parse(row.body) }
    },

    /** @param {number} group @returns {Record<string, any>[]} newest first, without their long parts */
    list: (group) => /** @type {any[]} */ (ofGroup.all(group)).map(({ id, body }) => briefOf(id, JSON.parse(body))),

    /** @param {string} expression of FTS5, see toExpression @returns {number[]} ids of groups */
    search: (expression) => /** @type {number[]} */ (search.all(expression)),

    /** @param {number} group forgets its random samples */
    thin (group) { for (const { place, bytes } of /** @type {any[]} */ (placesOf.all(group, RANDOM))) removeCrash(group, place, bytes) },

    /** @param {number} group forgets all its samples */
    forget (group) {
      for (const { bytes } of /** @type {any[]} */ (placesOf.all(group, FIRST))) bytesKept -= bytes
      dropTexts.run(group * PLACES, group * PLACES + PLACES - 1)
    }
  }

  /** The newest of before becomes one of the random ones, or is dropped: reservoir sampling. @param {number} group @param {number} count */
  function makeRoom (group, count) {
    const nth = count - 3
    const chosen = nth < RANDOM_SAMPLES ? nth : Math.floor(random() * (nth + 1))
    const place = chosen < RANDOM_SAMPLES ? RANDOM + chosen : NEWEST
    const old = /** @type {any} */ (placesOf.all(group, NEWEST)).find((/** @type {any} */ sample) => sample.place === place)
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
 * What somebody types, as an expression of FTS5: all of the words, the last one from its beginning.
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

/** @param {number} id @param {any} record */
function briefOf (id, { at, cause, code, signal, slot, worker, pid, release, rollout, uptimeMs, errorName, errorMessage }) {
  return { id, at, cause, code, signal, slot, worker, pid, release, rollout, uptimeMs, errorName, errorMessage }
}

/** @param {string | null} text */
function clipText (text) {
  return (text ?? '').slice(0, MAX_TEXT_CHARS)
}
