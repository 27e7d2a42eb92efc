import { checkKept, decodeRankCursor, encodeRankCursor } from './cursor.js'
import { createCrashHours } from './crash-hours.js'
import { createCrashNotes } from './crash-notes.js'
import { createCrashes, toExpression } from './crashes.js'

/** What a list may be sorted by, the highest first. `rank`: a number of each group; `kind`: of its cursors. */
const SORTS = Object.freeze({
  last: { kind: 'c', rank: 'last_crash' },
  count: { kind: 'n', rank: 'count' },
  first: { kind: 'f', rank: 'id' }
})
const MAX_GROUPS = 1000
const MAX_RELEASES = 50
const MAX_BYTES = 64 * 1024 * 1024
const MAX_MESSAGE_CHARS = 2000
const COLUMNS = `id, fingerprint, state, kind, cause, error_name, message, culprit, first_ms, last_ms, count, first_release,
  last_release, last_crash, state_ms, state_actor, returned_ms, assignee,
  (SELECT max(CAST(substr(release, 2) AS INTEGER)) FROM crash_releases WHERE crash_group = crash_groups.id) AS highest_release`

/** @typedef {'open' | 'resolved' | 'muted'} GroupState */
/** @typedef {keyof typeof SORTS} GroupSort */

/**
 * Crashes that are one and the same fault.
 * @typedef {object} CrashGroup
 * @property {number} id
 * @property {string} fingerprint
 * @property {GroupState} state
 * @property {string} kind
 * @property {string} cause  of its newest crash, as in the history
 * @property {string | null} errorName
 * @property {string | null} message  of its newest crash
 * @property {string | null} culprit  the topmost function of the app, `handler (src/app.js)`
 * @property {string} firstSeenAt
 * @property {string} lastSeenAt
 * @property {number} count  every one, also those of which no sample is kept
 * @property {string | null} firstRelease
 * @property {string | null} lastRelease
 * @property {number} lastCrash  id of its newest crash
 * @property {string | null} stateChangedAt
 * @property {string | null} stateChangedBy
 * @property {string | null} assignee  who takes care of it
 * @property {number | null} highestRelease  the n of the highest release `r<n>` in which it came
 * @property {string | null} returnedAt  when it came back after it was resolved; null: it has not
 */

/** @typedef {{ state?: GroupState, fingerprint?: string, q?: string, release?: string, since?: number, sort?: GroupSort, limit?: number, cursor?: string | null }} GroupQuery */

/**
 * Counts every crash in its group and keeps a few samples, within bounds that hold for any storm.
 * @param {import('./open.js').Db} db
 * @param {{ random?: () => number, limits?: { maxGroups: number, maxBytes: number } }} [parts]
 */
export function createCrashGroups (db, { random = Math.random, limits = { maxGroups: MAX_GROUPS, maxBytes: MAX_BYTES } } = {}) {
  const crashes = createCrashes(db, { random })
  const hours = createCrashHours(db)
  const notes = createCrashNotes(db)
  const byFingerprint = db.prepare(`SELECT ${COLUMNS} FROM crash_groups WHERE fingerprint = ?`)
  const byId = db.prepare(`SELECT ${COLUMNS} FROM crash_groups WHERE id = ?`)
  const insert = db.prepare(`
    INSERT INTO crash_groups (fingerprint, state, kind, cause, error_name, message, culprit, first_ms, last_ms, count, first_release, last_release, last_crash)
    VALUES (@fingerprint, 'open', @kind, @cause, @errorName, @message, @culprit, @atMs, @atMs, 0, @release, @release, 0)`)
  const count = db.prepare(`
    UPDATE crash_groups SET count = count + 1, last_ms = max(last_ms, @atMs), last_release = @release, cause = @cause, message = @message,
      state = @state, returned_ms = @returnedMs, last_crash = @crash WHERE id = @id`)
  const countRelease = db.prepare(`
    INSERT INTO crash_releases (crash_group, release, count, first_ms, last_ms) VALUES (@id, @release, 1, @atMs, @atMs)
    ON CONFLICT (crash_group, release) DO UPDATE SET count = count + 1, last_ms = max(last_ms, @atMs)`)
  const trimReleases = db.prepare(`
    DELETE FROM crash_releases WHERE crash_group = @id AND release NOT IN
      (SELECT release FROM crash_releases WHERE crash_group = @id ORDER BY last_ms DESC LIMIT ${MAX_RELEASES})`)
  const releasesOf = db.prepare('SELECT release, count, first_ms, last_ms FROM crash_releases WHERE crash_group = ? ORDER BY last_ms DESC')
  const setState = db.prepare('UPDATE crash_groups SET state = @state, state_ms = @atMs, state_actor = @actor, returned_ms = NULL WHERE id = @id')
  const setAssignee = db.prepare('UPDATE crash_groups SET assignee = @assignee WHERE id = @id')
  const countByState = db.prepare('SELECT state, count(*) AS count FROM crash_groups GROUP BY state')
  const groupCount = db.prepare('SELECT count(*) FROM crash_groups').pluck()
  const oldest = db.prepare('SELECT id FROM crash_groups ORDER BY last_crash LIMIT 1').pluck()
  const oldestThick = db.prepare('SELECT crash_group FROM crashes WHERE place > 1 ORDER BY id LIMIT 1').pluck()
  const expired = db.prepare('SELECT id FROM crash_groups WHERE last_ms < ? ORDER BY last_crash LIMIT ?').pluck()
  const remove = db.prepare('DELETE FROM crash_groups WHERE id = ?')
  const pages = /** @type {Map<string, import('better-sqlite3').Statement>} */ (new Map())

  const store = db.transaction((/** @type {string} */ fingerprint, /** @type {import('./crashes.js').CrashRecord} */ record, /** @type {{ culprit: string | null }} */ { culprit }) => {
    const atMs = Date.parse(record.at)
    const facts = { fingerprint, kind: record.kind, cause: record.cause, errorName: record.errorName, message: clipText(record.errorMessage), culprit, release: record.release, atMs }
    const known = /** @type {any} */ (byFingerprint.get(fingerprint))
    if (!known) insert.run(facts)
    const before = known ?? byFingerprint.get(fingerprint)
    const hasReturned = before.state === 'resolved'
    const crash = crashes.store(before.id, before.count + 1, record)
    count.run({
      ...facts, id: before.id, crash, state: hasReturned ? 'open' : before.state, returnedMs: hasReturned ? atMs : before.returned_ms
    })
    hours.count(before.id, atMs)
    if (record.release !== null) {
      countRelease.run({ ...facts, id: before.id })
      trimReleases.run({ id: before.id })
    }
    makeRoom(known ? 0 : 1)
    return { crash, group: before.id, isNew: !known, hasReturned, isMuted: before.state === 'muted', count: before.count + 1 }
  })

  return {
    /**
     * Stores one crash before it returns.
     * @param {string} fingerprint @param {import('./crashes.js').CrashRecord} record @param {{ culprit: string | null }} facts
     * @returns {{ crash: number, group: number, isNew: boolean, hasReturned: boolean, isMuted: boolean, count: number }} `crash`: its id
     */
    record: (fingerprint, record, facts) => store.immediate(fingerprint, record, facts),

    /** @param {number} id @returns {CrashGroup & { releases: { release: string, count: number, firstSeenAt: string, lastSeenAt: string }[] } | null} */
    find (id) {
      const row = /** @type {any} */ (byId.get(id))
      return row === undefined ? null : { ...toGroup(row), releases: /** @type {any[]} */ (releasesOf.all(id)).map(toRelease) }
    },

    occurrences: crashes.list,
    occurrence: crashes.find,
    newest: crashes.newest,
    hours: hours.list,
    notes: notes.list,
    addNote: notes.add,
    removeNote: notes.remove,

    /**
     * @param {GroupQuery} [query] `q`: words of a message or a stack; `release`: has crashed in it; `since`: has crashed since, ms;
     *   `sort`: those that crashed last come first, unless said otherwise
     * @returns {{ items: CrashGroup[], next: string | null }}
     * @throws {import('../server/errors.js').DeckError} invalid-query
     */
    page ({ state, fingerprint, q, release, since, sort = 'last', limit = 50, cursor } = {}) {
      const { kind, rank } = SORTS[sort]
      const before = decodeRankCursor(kind, cursor)
      const place = `(${rank} < @rank OR (${rank} = @rank AND id < @id))`
      if (before) checkMore(place, before)
      const expression = q === undefined ? undefined : toExpression(q)
      if (expression === null) return { items: [], next: null }
      const conditions = [
        ...(before === null ? [] : [place]),
        ...(state === undefined ? [] : ['state = @state']),
        ...(fingerprint === undefined ? [] : ['fingerprint = @fingerprint']),
        ...(release === undefined ? [] : ['EXISTS (SELECT 1 FROM crash_releases WHERE crash_group = crash_groups.id AND release = @release)']),
        ...(since === undefined ? [] : ['last_ms >= @since']),
        ...(expression === undefined ? [] : ['id IN (SELECT value FROM json_each(@ids))'])
      ]
      const ids = expression === undefined ? undefined : JSON.stringify(crashes.search(expression))
      const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')} `
      const rows = /** @type {any[]} */ (prepareStatement(`SELECT ${COLUMNS} FROM crash_groups ${where}ORDER BY ${rank} DESC, id DESC LIMIT @limit`)
        .all({ limit: limit + 1, ...before, ...givenValues({ state, fingerprint, release, since, ids }) }))
      const last = rows.length > limit ? rows[limit - 1] : null
      return { items: rows.slice(0, limit).map(toGroup), next: last && encodeRankCursor(kind, { rank: last[rank], id: last.id }) }
    },

    /** @returns {Record<GroupState, number>} how many groups there are of each state */
    counts: () => ({ open: 0, resolved: 0, muted: 0, ...Object.fromEntries(/** @type {any[]} */ (countByState.all()).map(({ state, count }) => [state, count])) }),

    /** @param {number} id @param {{ state: GroupState, atMs: number, actor: string }} change @returns {boolean} whether there is such a group */
    setState: (id, { state, atMs, actor }) => setState.run({ id, state, atMs, actor }).changes === 1,

    /** @param {number} id @param {string | null} assignee @returns {boolean} whether there is such a group */
    setAssignee: (id, assignee) => setAssignee.run({ id, assignee }).changes === 1,

    /** Forgets groups that have not crashed for too long. @param {{ before: number, rows: number }} what @returns {number} how many */
    sweep: db.transaction((/** @type {{ before: number, rows: number }} */ { before, rows }) => {
      const ids = /** @type {number[]} */ (expired.all(before, rows))
      for (const id of ids) forgetGroup(id)
      return ids.length
    })
  }

  /** @param {number} added */
  function makeRoom (added) {
    if (added > 0 && Number(groupCount.get()) > limits.maxGroups) forgetGroup(Number(oldest.get()))
    while (crashes.bytesKept > limits.maxBytes) {
      const thick = oldestThick.get()
      if (thick !== undefined) crashes.thin(Number(thick))
      else if (Number(groupCount.get()) > 1) forgetGroup(Number(oldest.get()))
      else return
    }
  }

  /** @param {string} place @param {{ rank: number, id: number }} before @throws {import('../server/errors.js').DeckError} cursor-expired */
  function checkMore (place, before) {
    checkKept(before.id, () => prepareStatement(`SELECT 1 FROM crash_groups WHERE ${place} LIMIT 1`).get(before))
  }

  function forgetGroup (/** @type {number} */ id) {
    crashes.forget(id)
    remove.run(id)
  }

  function prepareStatement (/** @type {string} */ sql) {
    let prepared = pages.get(sql)
    if (prepared === undefined) pages.set(sql, prepared = db.prepare(sql))
    return prepared
  }
}

/** @param {any} row @returns {CrashGroup} */
function toGroup (row) {
  return {
    id: row.id,
    fingerprint: row.fingerprint,
    state: row.state,
    kind: row.kind,
    cause: row.cause,
    errorName: row.error_name,
    message: row.message,
    culprit: row.culprit,
    firstSeenAt: toIso(row.first_ms) ?? '',
    lastSeenAt: toIso(row.last_ms) ?? '',
    count: row.count,
    firstRelease: row.first_release,
    lastRelease: row.last_release,
    lastCrash: row.last_crash,
    assignee: row.assignee,
    highestRelease: row.highest_release,
    stateChangedAt: toIso(row.state_ms),
    stateChangedBy: row.state_actor,
    returnedAt: toIso(row.returned_ms)
  }
}

/** @param {any} row */
function toRelease (row) {
  return { release: row.release, count: row.count, firstSeenAt: toIso(row.first_ms) ?? '', lastSeenAt: toIso(row.last_ms) ?? '' }
}

/** @param {number | null} ms */
function toIso (ms) {
  return ms === null ? null : new Date(ms).toISOString()
}

/** @param {Record<string, unknown>} values those that are defined */
function givenValues (values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

/** @param {string | null} text */
function clipText (text) {
  return text === null || text.length <= MAX_MESSAGE_CHARS ? text : `${text.slice(0, MAX_MESSAGE_CHARS - 1)}…`
}
